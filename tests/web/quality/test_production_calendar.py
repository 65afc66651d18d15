"""Partitions that are not produced: no units and no alarm, unless something is written there after all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from incidents.gate.answer import CopyQuestion, ask_gate
from ingestion.models import TouchedPartition
from lakehub.catalog.datasets.changes import update_dataset
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import Interval
from quality.generation import generate
from quality.models import GenerationStatus, Unit
from quality.planning import touched_partitions, units
from tests import factories
from tests.factories import DAY, HOUR, MINUTE, NEW_YORK, NOW, day
from tests.web.quality.conftest import World

SATURDAY, SUNDAY, MONDAY = "2026-11-14", "2026-11-15", "2026-11-16"
WORKDAYS = {"calendar": "0 6 * * mon-fri"}


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """Nothing came at the weekend, and nothing was to come."""
    return make_world(counts=(0, 0, 1000), where=("dc1",), overrides=WORKDAYS)


def planned(key: str = "duplicates") -> list[str]:
    units = Unit.objects.filter(test__key=key).order_by("start")
    return [f"{unit.start.astimezone(NEW_YORK):%a %d}" for unit in units]


def verdict(first: str, last: str) -> tuple[str, set[str]]:
    answer = ask_gate(CopyQuestion("flights", Interval(day(first).start, day(last).end), "pricing"), now=NOW).answer
    return answer.verdict, {cause.reason for cause in answer.causes}


def test_only_what_is_expected_is_planned_and_the_weekend_does_not_gate(world: World) -> None:
    world.monitored()
    assert planned() == ["Mon 16", "Tue 17"]
    assert world.unit("freshness").latest_outcome == "pass"
    assert verdict(SATURDAY, MONDAY) == ("pass", {"passing", "not_expected"})


def test_over_a_weekend_the_next_workday_is_planned(world: World) -> None:
    world.monitored()
    for night in range(1, 5):
        world.run(day("2026-11-16").end + night * DAY + 3 * HOUR)
    assert planned() == ["Mon 16", "Tue 17", "Wed 18", "Thu 19", "Fri 20", "Mon 23"]


def test_what_is_written_at_a_weekend_is_tested(world: World) -> None:
    world.monitored()
    commit = factories.commit(world.copy(), NOW)
    span = day(SUNDAY)
    TouchedPartition.objects.create(commit=commit, copy=world.copy(), start=span.start, end=span.end, rows=1)
    touched_partitions.claim_touched_partitions(now=NOW)
    assert planned() == ["Sun 15", "Mon 16", "Tue 17"]
    assert verdict(SUNDAY, SUNDAY)[0] == "unknown"
    world.run(NOW + MINUTE)
    assert world.unit("duplicates", SUNDAY).latest_outcome == "no_data"


def touch(world: World, *days: str) -> None:
    factories.commit(world.copy(), NOW, touched=[day(day_name) for day_name in days]).touched.update(claimed_at=None)


def test_a_weekend_that_holds_rows_at_the_baseline_is_tested(make_world: Callable[..., World]) -> None:
    world = make_world(counts=(0, 1000, 1000), where=("dc1",), overrides=WORKDAYS).planned()
    assert planned() == ["Sun 15", "Mon 16", "Tue 17"]
    assert verdict(SUNDAY, SUNDAY)[0] == "unknown"
    world.run(NOW)
    assert verdict(SUNDAY, SUNDAY) == ("pass", {"passing"})


def test_what_was_claimed_before_it_was_monitored_is_tested(world: World) -> None:
    generate.generate_tests(world.flights, now=NOW)
    touch(world, SATURDAY, SUNDAY)
    touched_partitions.claim_touched_partitions(now=NOW)
    assert planned() == []
    DatasetCopy.objects.update(monitored_from=day(SUNDAY).start)
    units.plan_units(world.test("duplicates"), now=NOW)
    assert planned() == ["Sun 15", "Mon 16", "Tue 17"]


def test_a_change_of_the_calendar_keeps_what_holds_rows(make_world: Callable[..., World]) -> None:
    world = make_world(counts=(1000, 0, 1000), where=("dc1",)).planned()
    touch(world, SATURDAY, MONDAY)
    changed = update_dataset(world.flights, {"overrides": WORKDAYS}, actor="ann", now=NOW)
    generate.generate_tests(changed, now=NOW)
    assert planned() == ["Sat 14", "Mon 16", "Tue 17"]
    assert verdict(SATURDAY, SATURDAY)[0] == "unknown"
    assert verdict(SUNDAY, SUNDAY)[1] == {"not_expected", "never_passed"}, "of freshness"
    world.run(NOW)
    assert verdict(SUNDAY, SUNDAY) == ("pass", {"not_expected", "passing"})


def test_rows_far_ahead_of_time_do_not_end_the_planning(world: World) -> None:
    world.monitored()
    touch(world, "2027-01-02")
    touched_partitions.claim_touched_partitions(now=NOW)
    for night in range(1, 3):
        world.run(day("2026-11-16").end + night * DAY + 3 * HOUR)
    assert planned() == ["Mon 16", "Tue 17", "Wed 18", "Thu 19", "Sat 02"]


def test_a_change_of_the_calendar_plans_what_it_lacks_and_drops_what_never_ran(world: World) -> None:
    world.monitored()
    changed = update_dataset(world.flights, {"overrides": {}}, actor="ann", now=NOW)
    generate.generate_tests(changed, now=NOW)
    assert planned() == ["Sat 14", "Sun 15", "Mon 16", "Tue 17"]
    again = update_dataset(changed, {"overrides": {**WORKDAYS, "holidays": ["2026-11-17"]}}, actor="ann", now=NOW)
    generate.generate_tests(again, now=NOW)
    assert planned() == ["Mon 16", "Wed 18"]
    assert world.test("freshness").version.expression.endswith("calendar='0 6 * * mon-fri', holidays='2026-11-17'")  # type: ignore[union-attr]


def test_a_calendar_that_cannot_be_read_is_reported_and_changes_nothing(world: World) -> None:
    world.monitored()
    type(world.flights).objects.update(overrides={"calendar": "0 6 * mon-fri"})  # of an older version
    world.flights.refresh_from_db()
    generate.generate_tests(world.flights, now=NOW)
    assert "has 4 fields; five are wanted" in GenerationStatus.objects.get().problem
    assert planned() == ["Mon 16", "Tue 17"]
