"""Callers take turns, and no caller has all places."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lakehub.processes.web_server.fair_queue import FairQueue


def take_all(queue: FairQueue[str]) -> list[str]:
    return list(iter(queue.take, None))


def line(queue: FairQueue[str], *items: str) -> None:
    """An item is called like its caller, with a number behind it."""
    for item in items:
        queue.add(item, item[0])


def test_one_caller_leaves_a_place_to_others() -> None:
    queue = FairQueue[str](4)
    line(queue, "a1", "a2", "a3", "a4", "a5")
    assert take_all(queue) == ["a1", "a2", "a3"]
    line(queue, "b1", "b2")
    assert take_all(queue) == ["b1"]


def test_callers_take_turns() -> None:
    queue = FairQueue[str](3)
    line(queue, "a1", "a2", "a3", "a4")
    assert take_all(queue) == ["a1", "a2"]
    line(queue, "b1", "b2", "b3", "c1")
    assert take_all(queue) == ["b1"]
    for freed, taken in (("b1", "c1"), ("c1", "b2"), ("a1", "a3"), ("b2", "b3"), ("a2", "a4")):
        queue.give_back(freed)
        assert take_all(queue) == [taken]


def test_a_caller_with_a_long_request_gets_another_place_while_others_keep_coming() -> None:
    queue, number = FairQueue[str](4), 0
    line(queue, "a1", "a2", "b0", "c0", "d0", "e0")
    taken = take_all(queue)
    while "a2" not in taken:
        number += 1
        assert number < 20
        freed = next(item for item in taken if item != "a1")
        queue.give_back(freed)
        taken.remove(freed)
        line(queue, f"{freed[0]}{number}")
        taken += take_all(queue)


def test_of_too_many_the_newest_of_the_longest_line_goes() -> None:
    queue = FairQueue[str](1)
    for item in ("a1", "b1", "b2", "b3"):
        queue.add(item, item[0], 10)
    assert [queue.drop(), queue.drop(), queue.size] == ["b3", "b2", 20]
    assert take_all(queue) == ["a1"]
    assert (queue.size, queue.drop(), queue.drop(), queue.is_empty) == (10, "b1", None, True)


def test_a_single_place_is_anybodys() -> None:
    queue = FairQueue[str](1)
    line(queue, "a1", "a2", "b1")
    assert take_all(queue) == ["a1"]
    queue.give_back("a1")
    assert take_all(queue) == ["b1"]


STEPS = st.lists(st.one_of(st.sampled_from("abc"), st.integers(0, 9)), max_size=60)


@given(st.integers(1, 5), STEPS)
def test_whoever_waits_is_served_once_and_no_place_stays_free_that_somebody_may_have(
    places: int, steps: list[str | int]
) -> None:
    """A letter comes; a number has its place back."""
    queue, has_place, served, number = FairQueue[str](places), list[str](), list[str](), 0
    for step in steps:
        if isinstance(step, str):
            number += 1
            line(queue, f"{step}{number}")
        elif has_place:
            queue.give_back(has_place.pop(step % len(has_place)))
        taken = take_all(queue)
        has_place += taken
        served += taken
        assert len(has_place) <= places
        shares = {caller: sum(item[0] == caller for item in has_place) for caller in "abc"}
        assert max(shares.values()) <= queue.most_of_one
        waiting = {item[0] for line in queue._waiting.values() for item, _ in line}
        assert len(has_place) == places or all(shares[caller] == queue.most_of_one for caller in waiting)
    while has_place:
        queue.give_back(has_place.pop())
        taken = take_all(queue)
        has_place += taken
        served += taken
    assert len(served) == len(set(served)) == number
    for caller in "abc":
        own = [int(item[1:]) for item in served if item[0] == caller]
        assert own == sorted(own), "each caller's requests come in their order"
