"""Partitions that are not produced: no units and no alarm, unless something is written there after all."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from incidents.gate.answer import CopyQuestion, ask_gate
from incidents.lifecycle import intake, resolution
from incidents.models import Incident, Span
from ingestion.models import TouchedPartition
from lakehub.catalog.datasets.changes import update_dataset
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Conflict
from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain, partition_at
from quality.generation import generate
from quality.models import GenerationStatus, Unit
from quality.planning import touched_partitions, units
from quality.state.populated_partitions import awaited_among
from tests import factories
from tests.factories import DAY, HOUR, MINUTE, NEW_YORK, NOW, day
from tests.web.quality.conftest import World, fill

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
    # It has held rows, says the commit: that there are none now is a loss.
    assert world.unit("volume", SUNDAY).latest_outcome == "fail"
    assert world.outcomes("duplicates")[SUNDAY] == "skipped"


def test_rows_that_upstream_has_of_a_weekend_are_missing_here(world: World) -> None:
    fill(world.source, SATURDAY, 1000)
    world.monitored()
    failing = Unit.objects.filter(start=day(SATURDAY).start, latest_outcome="fail").values_list("test__key", flat=True)
    assert set(failing) >= {"completeness", "volume"}
    assert verdict(SATURDAY, SATURDAY)[0] != "pass"


@pytest.mark.parametrize("one_to_one", [True, False])
def test_what_is_written_upstream_at_a_weekend_is_awaited_here(world: World, one_to_one: bool) -> None:
    world.monitored()
    world.flights.feed.delete()
    raw = factories.dataset("raw", copies=("dc1",))
    factories.edge(raw, world.flights, one_to_one=one_to_one)
    factories.commit(factories.copy_of(raw), NOW, touched=[day(SATURDAY)]).touched.update(claimed_at=None)
    touched_partitions.claim_touched_partitions(now=NOW)
    assert planned() == (["Sat 14", "Mon 16", "Tue 17"] if one_to_one else ["Mon 16", "Tue 17"])


def test_of_several_upstreams_only_the_one_that_is_read_makes_units(world: World) -> None:
    world.monitored()
    world.flights.feed.delete()
    gone, read, second = (factories.dataset(name, copies=("dc1",)) for name in ("gone", "read", "second"))
    for upstream in (gone, read, second):
        factories.edge(upstream, world.flights, one_to_one=True)
    type(gone).objects.filter(pk=gone.pk).update(offboarded_at=NOW)
    for upstream, days in ((second, ["Mon 16", "Tue 17"]), (read, ["Sat 14", "Mon 16", "Tue 17"])):
        factories.commit(factories.copy_of(upstream), NOW, touched=[day(SATURDAY)]).touched.update(claimed_at=None)
        touched_partitions.claim_touched_partitions(now=NOW)
        assert planned() == days, upstream.name


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


def in_days(number: int) -> Interval:
    return partition_at(day(MONDAY).start + number * DAY + DAY / 2, Grain.DAY, NEW_YORK)


def test_many_days_that_come_at_once_show_the_holes_between_them_with_as_few_queries_as_two_days(
    make_world: Callable[..., World],
) -> None:
    """A unit within the hole was planned when its day came; the hole before it has its units, or is known to need none."""
    world = make_world(counts=(1000, 1000, 1000), where=("dc1",)).planned()
    later, selects = NOW + 400 * DAY, []
    for days in ([2, 4], [20], [*range(9, 17), *range(24, 124)]):
        with CaptureQueriesContext(connection) as queries:
            units.plan_partitions(world.copy(), [in_days(number) for number in days], now=later)
        selects.append(sum(query["sql"].startswith("SELECT") for query in queries))
    starts = Unit.objects.filter(test__key="duplicates", start__gt=day(MONDAY).start).values_list("start", flat=True)
    assert set(starts) == {in_days(number).start for number in range(1, 124)}
    assert selects[2] == selects[0]


def test_a_day_that_came_shows_no_hole_before_what_is_tested_already(make_world: Callable[..., World]) -> None:
    world = make_world(counts=(1000, 1000, 1000), where=("dc1",)).planned()
    for number in (8, 10):
        over = in_days(number)
        Unit.objects.create(test=world.test("duplicates"), copy=world.copy(), start=over.start, end=over.end)
    units.plan_partitions(world.copy(), [in_days(3), in_days(12)], now=NOW + 400 * DAY)
    starts = Unit.objects.filter(test__key="volume", start__gt=day(MONDAY).start).values_list("start", flat=True)
    assert set(starts) == {in_days(number).start for number in (1, 2, 3, 11, 12)}


@pytest.mark.parametrize(("onboarded", "holes"), [(-100, 64), (0, 0)], ids=["awaited since", "onboarded after"])
def test_a_wide_gap_in_the_past_shows_no_holes_but_each_day_since_onboarding_is_awaited(
    make_world: Callable[..., World], onboarded: int, holes: int
) -> None:
    """A stray row of long ago is tested, and the next day that comes late is one of 65 days later."""
    world = make_world(counts=(1000, 1000, 1000), where=("dc1",)).planned()
    type(world.flights).objects.update(onboarded_at=in_days(onboarded).start)
    DatasetCopy.objects.update(monitored_from=in_days(-90).start)
    units.plan_partitions(world.copy(), [in_days(-90)], now=NOW)
    units.plan_partitions(world.copy(), [in_days(-25)], now=NOW)
    between = Unit.objects.filter(test__key="volume", start__gt=in_days(-90).start, start__lt=in_days(-25).start)
    assert between.count() == holes


def test_a_change_of_the_calendar_plans_what_it_lacks_and_drops_what_never_ran(world: World) -> None:
    world.monitored()
    changed = update_dataset(world.flights, {"overrides": {}}, actor="ann", now=NOW)
    generate.generate_tests(changed, now=NOW)
    assert planned() == ["Sat 14", "Sun 15", "Mon 16", "Tue 17"]
    again = update_dataset(changed, {"overrides": {**WORKDAYS, "holidays": ["2026-11-17"]}}, actor="ann", now=NOW)
    generate.generate_tests(again, now=NOW)
    assert planned() == ["Mon 16", "Wed 18"]
    assert world.test("freshness").version.expression.endswith("calendar='0 6 * * mon-fri', holidays='2026-11-17'")  # type: ignore[union-attr]


ALL_BUT_SUNDAYS = {"calendar": "0 6 * * mon-sat"}
LATER = NOW + DAY


def override(world: World, now: datetime, **overrides: object) -> None:
    flights = type(world.flights).objects.get(pk=world.flights.pk)
    generate.generate_tests(update_dataset(flights, {"overrides": overrides}, actor="ann", now=now), now=now)
    intake.process_flips(now=now)


def incidents_of_sunday(world: World) -> list[tuple[int, bool]]:
    """Each with whether the volume of that day fails in it now."""
    spans = Span.objects.filter(unit=world.unit("volume", SUNDAY)).order_by("pk")
    return [(span.incident_id, span.ended_at is None) for span in spans]


@pytest.fixture
def failing_sunday(make_world: Callable[..., World]) -> World:
    """Nobody produces on Sundays, and no calendar says so: the volume of one has failed for a day."""
    world = make_world(counts=(1000, 0, 1000), where=("dc1",)).monitored()
    world.run(LATER)
    intake.process_flips(now=LATER)
    assert world.unit("volume", SUNDAY).verdict == "fail"
    assert Incident.objects.get(category="completeness").resolved_at is None
    return world


def test_a_calendar_that_comes_after_the_failures_ends_them(failing_sunday: World) -> None:
    override(failing_sunday, LATER, **ALL_BUT_SUNDAYS)
    incident = Incident.objects.get(category="completeness")
    assert (incident.state, incident.resolution, incident.false_positive) == (
        "resolved",
        "false_positive",
        "wrong_test",
    )
    assert incident.spans.get().ended_at == LATER, "its history stays"
    sundays = Unit.objects.filter(start=day(SUNDAY).start)
    assert set(sundays.values_list("test__key", "verdict", "reason", "due_at")) == {
        ("volume", "pass", "not_expected", None)
    }, "what never had an answer is gone"
    assert verdict(SUNDAY, SUNDAY)[1] >= {"not_expected"}
    assert planned("volume") == ["Sat 14", "Sun 15", "Mon 16", "Tue 17", "Wed 18"]
    assert planned() == ["Sat 14", "Mon 16", "Tue 17", "Wed 18"]


def test_what_a_calendar_let_go_stays_so_under_a_new_version_of_its_test(failing_sunday: World) -> None:
    override(failing_sunday, LATER, **ALL_BUT_SUNDAYS)
    before = failing_sunday.test("volume").version
    override(failing_sunday, LATER + HOUR, **ALL_BUT_SUNDAYS, sustain="3h")
    assert failing_sunday.test("volume").version != before
    ((incident, _),) = incidents_of_sunday(failing_sunday)
    with pytest.raises(Conflict, match="Nothing of"):
        resolution.undo_resolution(incident, actor="ann", now=LATER + HOUR)
    failing_sunday.run(LATER + 2 * HOUR)
    intake.process_flips(now=LATER + 2 * HOUR)
    assert failing_sunday.unit("volume", SUNDAY).reason == "not_expected"
    assert incidents_of_sunday(failing_sunday) == [(incident, False)]


def test_what_a_calendar_let_go_is_tested_anew_once_it_is_written(failing_sunday: World) -> None:
    override(failing_sunday, LATER, **ALL_BUT_SUNDAYS)
    touch(failing_sunday, SUNDAY)
    touched_partitions.claim_touched_partitions(now=LATER)
    assert planned() == ["Sat 14", "Sun 15", "Mon 16", "Tue 17", "Wed 18"]
    assert failing_sunday.unit("volume", SUNDAY).verdict == "unknown", "no failure of before counts"
    failing_sunday.run(LATER + HOUR)
    # It has held rows, says the commit: that there are none now is a loss.
    assert failing_sunday.unit("volume", SUNDAY).latest_outcome == "fail"


def test_without_the_calendar_what_it_let_go_fails_again(failing_sunday: World) -> None:
    override(failing_sunday, LATER, **ALL_BUT_SUNDAYS)
    override(failing_sunday, LATER + HOUR)
    assert planned() == ["Sat 14", "Sun 15", "Mon 16", "Tue 17", "Wed 18"]
    for run_at in (LATER + 2 * HOUR, LATER + DAY):
        failing_sunday.run(run_at)
    intake.process_flips(now=LATER + DAY)
    assert failing_sunday.unit("volume", SUNDAY).verdict == "fail"
    assert [fails for _, fails in incidents_of_sunday(failing_sunday)] == [False, True]
    # Not run since it began anew: still what it failed in is not forgotten.
    for overrides in (ALL_BUT_SUNDAYS, {}, ALL_BUT_SUNDAYS):
        override(failing_sunday, LATER + DAY, **overrides)
    assert [fails for _, fails in incidents_of_sunday(failing_sunday)] == [False, False]


def test_that_a_day_failed_is_no_proof_that_it_held_rows(failing_sunday: World) -> None:
    copy = failing_sunday.copy()
    assert awaited_among(copy, {day(SATURDAY), day(SUNDAY)}) == {day(SATURDAY)}, "volume passes with rows only"
    type(failing_sunday.flights).objects.update(overrides=ALL_BUT_SUNDAYS)  # as if its units were not planned anew
    failing_sunday.run(LATER + DAY)
    assert failing_sunday.outcomes("volume")[SUNDAY] == "no_data"


def test_rows_that_upstream_has_fail_on_whatever_calendar_comes(failing_sunday: World) -> None:
    fill(failing_sunday.source, SUNDAY, 500)
    touched_partitions.retest(failing_sunday.copy().pk, [(day(SUNDAY).start, day(SUNDAY).end)], now=LATER)
    failing_sunday.run(LATER + HOUR)
    override(failing_sunday, LATER + HOUR, **ALL_BUT_SUNDAYS)
    for run_at in (LATER + 2 * HOUR, LATER + DAY):
        failing_sunday.run(run_at)
    assert {failing_sunday.unit(key, SUNDAY).verdict for key in ("volume", "completeness")} == {"fail"}
    assert failing_sunday.outcomes("volume")[SUNDAY] == "fail"


def test_a_calendar_that_cannot_be_read_is_reported_and_changes_nothing(world: World) -> None:
    world.monitored()
    type(world.flights).objects.update(overrides={"calendar": "0 6 * mon-fri"})  # of an older version
    world.flights.refresh_from_db()
    generate.generate_tests(world.flights, now=NOW)
    assert "has 4 fields; five are wanted" in GenerationStatus.objects.get().problem
    assert planned() == ["Mon 16", "Tue 17"]
