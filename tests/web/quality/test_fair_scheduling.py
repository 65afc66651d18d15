"""Nobody is kept waiting by much work of others: lanes, tiers, teams and copies take turns; what is scarce has slots."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count
from types import SimpleNamespace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from lakehub.kernel.interval import EVERYTHING, Interval
from quality.execution import claims, worker
from quality.execution.claims import Claim, ClaimQueue
from quality.generation import custom_tests
from quality.models import ConcurrencySlot, Lane, QualityTest, Unit
from quality.planning import run_requests
from tests import factories
from tests.factories import DAY, HOUR, NOW, day
from tests.web.quality.conftest import World

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def always_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker looks again before each claim, as it otherwise does every second."""
    monkeypatch.setattr(claims, "REFRESH_AFTER_S", -1)


def a_test(tier: int = 2, team: str = "flight-ops", name: str = "") -> QualityTest:
    made = factories.dataset(name, tier=tier, team=factories.team(team))
    return factories.test(made, expression="gt(rows(this), 0)", cadence=None)


def due(test: QualityTest, count: int = 1, lane: Lane = Lane.DUE, uses: str = "duckdb") -> None:
    """Units of as many days, of which the last was yesterday."""
    copy, last = test.dataset.copies.get(), day("2026-11-16").start
    ranges = [Interval(last - (number + 1) * DAY, last - number * DAY) for number in range(count)]
    Unit.objects.bulk_create(
        [
            Unit(test=test, copy=copy, start=over.start, end=over.end, due_at=NOW - HOUR, lane=lane, resource=uses)
            for over in ranges
        ]
    )


def claim_repeatedly(line: ClaimQueue, most: int, limit: int = 200) -> Iterator[Claim]:
    for _ in range(most):
        claimed = line.claim(now=NOW, limit=limit)
        if claimed is None:
            return
        yield claimed


def served(line: ClaimQueue, most: int, limit: int = 200) -> list[str]:
    return [claim.units[0].copy.dataset.name for claim in claim_repeatedly(line, most, limit)]


def test_a_flood_of_late_partitions_keeps_tier_0_waiting_for_one_claim_only() -> None:
    for number in range(12):
        due(a_test(tier=0, name=f"late{number}"), 50, Lane.LATE)
    line = ClaimQueue("a")
    assert len(served(line, 3)) == 3
    due(a_test(tier=0, name="urgent"))
    assert served(line, 1) == ["urgent"]


def test_what_is_due_of_a_lower_tier_goes_before_late_data_of_tier_0() -> None:
    due(a_test(tier=0, name="late"), 5, Lane.LATE)
    due(a_test(tier=5, name="due"))
    assert served(ClaimQueue("a"), 2) == ["due", "late"]


def test_ten_thousand_units_of_one_dataset_take_turns_with_the_others() -> None:
    due(a_test(name="big"), 10_000)
    for number in range(3):
        due(a_test(name=f"small{number}"), 2)
    due(a_test(tier=0, name="urgent"))
    line = ClaimQueue("a")
    assert served(line, 3) == ["urgent", "big", "small0"]
    assert served(line, 4) == ["small1", "small2", "big", "big"]


def test_a_team_with_one_dataset_is_served_as_often_as_one_with_many() -> None:
    for number in range(4):
        due(a_test(team="many", name=f"many{number}"))
    due(a_test(team="one", name="one"), 9)
    assert served(ClaimQueue("a"), 6, limit=3) == ["many0", "one", "many1", "one", "many2", "one"]


def test_workers_share_one_line() -> None:
    for number in range(4):
        due(a_test(name=f"set{number}"), 2)
    first, second = ClaimQueue("a"), ClaimQueue("b")
    order = [name for _ in range(4) for line in (first, second) for name in served(line, 1, limit=1)]
    assert order == ["set0", "set1", "set2", "set3"] * 2


def test_a_claim_takes_from_a_later_lane_what_is_tested_on_the_same_range() -> None:
    test = a_test(name="flights")
    due(test, 1, Lane.DUE)
    due(factories.test(test.dataset, expression="gt(rows(this), 1)", cadence=None), 3, Lane.LATE)
    first, second = claim_repeatedly(ClaimQueue("a"), 2)
    assert [unit.lane for unit in first.units] == [Lane.DUE, Lane.LATE]
    assert len({unit.start for unit in first.units}) == 1
    assert [unit.lane for unit in second.units] == [Lane.LATE, Lane.LATE]


def test_a_waiting_spark_test_does_not_block_the_others(settings: Settings) -> None:
    settings.LAKEHUB_ENGINE_LIMITS = {"spark": 1}
    for number in range(3):
        due(a_test(tier=0, name=f"spark{number}"), uses="spark")
    mixed = a_test(tier=0, name="spark9")
    due(mixed, uses="spark")
    due(factories.test(mixed.dataset, expression="gt(rows(this), 1)", cadence=None), uses="duckdb")
    due(a_test(tier=5, name="duck"))
    assert served(ClaimQueue("a"), 9, limit=1) == ["spark0", "spark9", "duck"]
    assert Unit.objects.filter(resource="spark", leased_by="").count() == 3


def test_a_slot_comes_back_when_the_results_are_stored_or_its_worker_is_dead(settings: Settings, world: World) -> None:
    settings.LAKEHUB_ENGINE_LIMITS = {"duckdb": 1}
    world.monitored()
    Unit.objects.filter(test__key="duplicates", end__lt=NOW).update(due_at=NOW, lane=Lane.DUE)
    first = claims.claim_due_units(now=NOW, worker="a")
    assert first is not None
    assert claims.claim_due_units(now=NOW, worker="b") is None
    worker.execute_claim(first, now=NOW)
    assert claims.claim_due_units(now=NOW, worker="b") is not None
    ConcurrencySlot.objects.update(leased_until=NOW - 9999 * DAY)
    assert claims.full_resources() == []


def test_slots_that_fill_up_meanwhile_are_noticed_once_not_at_each_copy(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "REFRESH_AFTER_S", 3600)
    settings.LAKEHUB_ENGINE_LIMITS = {"sqlalchemy": 1}
    due(a_test(tier=0, name="first"))
    for number in range(60):
        due(a_test(tier=1, name=f"set{number}"), uses="sqlalchemy")
    due(a_test(tier=5, name="duck"))
    line = ClaimQueue("a")
    assert served(line, 1) == ["first"]
    assert claims.claim_due_units(now=NOW, worker="b") is not None
    with CaptureQueriesContext(connection) as capture:
        assert served(line, 1) == ["duck"]
    assert sum(query["sql"].startswith("SAVEPOINT") for query in capture.captured_queries) == 2


def test_what_is_more_urgent_is_seen_while_a_worker_walks_past_what_others_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = count(step=0.2)
    monkeypatch.setattr(claims, "REFRESH_AFTER_S", 1.0)
    monkeypatch.setattr(claims, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    monkeypatch.setattr(claims, "PREFETCHED_COPIES", 1)
    for number in range(20):
        due(a_test(tier=1, name=f"set{number}"))
    due(a_test(tier=5, name="last"))
    line = ClaimQueue("a")
    assert served(line, 1) == ["set0"]
    Unit.objects.filter(test__dataset__tier=1).update(leased_by="b", leased_until=NOW + 9999 * DAY)
    due(a_test(tier=0, name="urgent"))
    assert served(line, 2) == ["urgent", "last"]


def test_one_connection_serves_so_many_workers_and_no_more(settings: Settings) -> None:
    settings.LAKEHUB_CONNECTION_LIMIT = 1
    for number, name in enumerate(("ops", "ops", "noaa")):
        due(a_test(name=f"set{number}"), uses=f"sqlalchemy:{name}")
    assert served(ClaimQueue("a"), 9) == ["set0", "set2"]


def test_a_lease_that_is_extended_keeps_its_slots(settings: Settings) -> None:
    settings.LAKEHUB_ENGINE_LIMITS = {"spark": 1}
    due(a_test(), uses="spark")
    claimed = claims.claim_due_units(now=NOW, worker="a")
    assert claimed is not None
    ConcurrencySlot.objects.update(leased_until=NOW - 9999 * DAY)
    claims.extend_lease(claimed)
    assert claims.full_resources() == ["spark"]
    claims.release_claim(claimed)
    assert (claims.full_resources(), Unit.objects.exclude(leased_by="").count()) == ([], 0)


def test_a_unit_knows_the_scarcest_thing_that_it_uses(world: World) -> None:
    written = "rows(this) > 0 with engine=spark"
    custom_tests.write_custom_test(world.flights, key="big", title="Big", expression=written, actor="ann", now=NOW)
    world.planned()
    resources = {key: set(Unit.objects.filter(test__key=key).values_list("resource", flat=True)) for key in KEYS}
    assert resources == {
        "freshness": {"sqlalchemy:ops"},
        "completeness": {"sqlalchemy:ops"},
        "duplicates": {"duckdb"},
        "row_count@dc1": {"duckdb"},
        "big": {"spark"},
    }


KEYS = ("freshness", "completeness", "duplicates", "row_count@dc1", "big")


def test_a_copy_that_was_never_served_goes_first_and_then_in_its_turn() -> None:
    old = a_test(name="old")
    due(old, 3)
    line = ClaimQueue("a")
    assert served(line, 1, limit=1) == ["old"]
    due(a_test(name="new"), 2)
    assert served(line, 3, limit=1) == ["new", "old", "new"]


def test_whoever_asks_for_years_of_history_keeps_tier_0_waiting_for_one_claim_only() -> None:
    history = a_test(tier=5, name="history")
    due(history, 800)
    Unit.objects.update(due_at=None)
    due(a_test(tier=0, name="urgent"))
    ask = partial(
        run_requests.request_tests, history.dataset, tests=(), data_center="", over=EVERYTHING, actor="ann", now=NOW
    )
    assert ask() == 800
    newest = Unit.objects.filter(test=history).order_by("-end")
    assert [unit.lane for unit in newest] == [Lane.REQUESTED] * 50 + [Lane.LATE] * 750
    assert ask() == 0
    assert newest.filter(lane=Lane.REQUESTED).count() == 50
    line = ClaimQueue("a")
    first = line.claim(now=NOW)
    assert first is not None
    assert {unit.pk for unit in first.units} == {unit.pk for unit in newest[:50]}
    assert served(line, 2) == ["urgent", "history"]


def test_what_is_due_within_the_hour_is_not_put_behind_the_late_ones() -> None:
    history = a_test(name="history")
    due(history, 60)
    oldest = Unit.objects.order_by("end")[0]
    Unit.objects.update(due_at=None)
    Unit.objects.filter(pk=oldest.pk).update(due_at=NOW + HOUR / 2)
    assert (
        run_requests.request_tests(history.dataset, tests=(), data_center="", over=EVERYTHING, actor="ann", now=NOW)
        == 60
    )
    oldest.refresh_from_db()
    assert (oldest.lane, oldest.due_at) == (Lane.DUE, NOW + HOUR / 2)
