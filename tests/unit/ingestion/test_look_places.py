"""Sources that are silent hold up nobody else for longer than a few seconds."""

from __future__ import annotations

import random

from ingestion.domain.source_access.look_places import (
    PLACES_A_CONNECTION,
    QUICK_PLACES,
    SLOW_AFTER,
    SLOW_PLACES,
    LookPlaces,
)


def begin(places: LookPlaces, *names: str, now: float = 0.0) -> list[str]:
    """Those that got a place; each is a look at a connection of its own name."""
    return [name for name in names if try_to_begin(places, name, name, now)]


def try_to_begin(places: LookPlaces, key: object, connection: str, now: float = 0.0) -> bool:
    has_place = places.has_place(connection)
    if has_place:
        places.begin(key, connection, now=now)
    return has_place


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def test_a_connection_has_two_places() -> None:
    places = LookPlaces()
    assert [try_to_begin(places, key, "ops", 0.0) for key in range(3)] == [True] * PLACES_A_CONNECTION + [False]
    assert try_to_begin(places, "other", "planes", 0.0)
    places.end(0, has_answered=True, now=1.0)
    assert try_to_begin(places, 3, "ops", 1.0)


def test_sources_that_are_silent_all_at_once_hold_the_others_for_a_moment_only() -> None:
    places = LookPlaces()
    silent = names("silent", QUICK_PLACES)
    assert begin(places, *silent) == silent
    assert begin(places, "quick") == []
    assert places.note_slow(now=SLOW_AFTER - 0.1) == []
    assert places.note_slow(now=SLOW_AFTER) == silent[SLOW_PLACES:], "no place is left for these"
    assert begin(places, *names("quick", QUICK_PLACES), now=SLOW_AFTER) == names("quick", QUICK_PLACES)


def test_a_slow_connection_has_one_place_until_it_was_quick_again() -> None:
    places = LookPlaces()
    try_to_begin(places, "a", "ops", 0.0)
    places.end("a", has_answered=True, now=SLOW_AFTER)
    assert [try_to_begin(places, key, "ops", 9.0) for key in "bc"] == [True, False]
    places.end("b", has_answered=False, now=9.5)
    assert [try_to_begin(places, key, "ops", 10.0) for key in "de"] == [True, False], "an error is no answer"
    places.end("d", has_answered=True, now=10.5)
    assert [try_to_begin(places, key, "ops", 11.0) for key in "fg"] == [True, True]


def test_slow_connections_have_no_more_than_their_places() -> None:
    places, silent = LookPlaces(), names("silent", 6)
    begin(places, *silent)
    places.note_slow(now=SLOW_AFTER)
    for name in silent:
        places.end(name, has_answered=False, now=300.0)
    assert begin(places, *silent, now=301.0) == silent[:SLOW_PLACES]
    assert begin(places, "quick", now=301.0) == ["quick"]


def test_in_any_order_no_bound_is_exceeded() -> None:
    for seed in range(200):
        _play(random.Random(seed))


def _play(chance: random.Random) -> None:
    places, now, under_way = LookPlaces(), 0.0, dict[int, tuple[str, float]]()
    for key in range(150):
        now += chance.choice((0.0, 0.5, 3.0))
        connection = chance.choice("abcdefghijklmnopqrst")
        if try_to_begin(places, key, connection, now):
            under_way[key] = connection, now
        for late in places.note_slow(now=now):
            under_way.pop(late)  # type: ignore[call-overload]  # the keys are numbers here
            places.end(late, has_answered=False, now=now)
        if under_way and chance.random() < 0.4:
            ended = chance.choice(list(under_way))
            under_way.pop(ended)
            places.end(ended, has_answered=chance.random() < 0.7, now=now)
        quick = [each for each, began in under_way.values() if now - began < SLOW_AFTER]
        assert len(quick) <= QUICK_PLACES + SLOW_PLACES
        assert len(under_way) - len(quick) <= SLOW_PLACES
        assert all(
            sum(each == name for each, _ in under_way.values()) <= PLACES_A_CONNECTION
            for name in "abcdefghijklmnopqrst"
        )
