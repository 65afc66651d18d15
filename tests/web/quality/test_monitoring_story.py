"""The main job on a small lake: tests come from the metadata, history is tested, a fault goes WARN, FAIL and is healed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from lakehub.kernel.interval import EVERYTHING
from quality.models import Flip, QualityTest, Result, SkippedCheck, Unit
from quality.planning import touched_partitions
from tests import factories, hudi_tables
from tests.factories import HOUR, MINUTE, NOW, day
from tests.web.quality.conftest import DAYS, World, rows


def test_tests_are_generated_and_history_is_tested(world: World) -> None:
    world.monitored()
    assert set(QualityTest.objects.values_list("key", flat=True)) == {
        "freshness",
        "completeness",
        "duplicates",
        "row_count@dc1",
        "row_count@dc2",
        "bloom@dc1",
        "bloom@dc2",
        "difference@dc1",
        "difference@dc2",
        "sample",
        "volume",
    }
    assert world.copy().monitored_from == day(DAYS[0]).start
    for key in ("completeness", "duplicates", "sample", "volume"):
        assert world.outcomes(key) == dict.fromkeys(DAYS, "pass")
    for key in ("row_count@dc1", "bloom@dc1", "difference@dc1"):
        assert world.outcomes(key, "dc2") == dict.fromkeys(DAYS, "pass")
        assert world.outcomes(key, "dc1") == {}
    assert {result.trigger for result in Result.objects.all()} == {"baseline", "schedule"}


def test_a_unit_carries_what_was_seen_and_at_which_commit(world: World) -> None:
    unit = world.monitored().unit("completeness", DAYS[1])
    assert (unit.verdict, unit.observed, unit.threshold, unit.tested_instant) == (
        "pass",
        1.0,
        "> 99.9%",
        hudi_tables.INSTANT,
    )
    assert unit.detail["behind"] == "1,000 of 1,000"
    assert unit.detail["formula"] == "rows(this) / rows(upstream) > 99.9% and rows(this) / rows(upstream) < 100.1%"


def test_the_day_that_is_going_on_is_not_due_yet(world: World) -> None:
    unit = world.monitored().unit("duplicates", "2026-11-17")
    assert (unit.due_at, unit.latest_at, unit.verdict) == (day("2026-11-17").end + 2 * HOUR, None, "unknown")


def test_missing_rows_warn_then_fail_then_heal(world: World) -> None:
    world.monitored()
    hudi_tables.overwrite(
        world.table("dc2"), DAYS[1], rows(DAYS[1], 990), column="flight_date", instant="20261117120000000"
    )
    unit = world.unit("row_count@dc1", DAYS[1], "dc2")
    broken_at = NOW + MINUTE
    Unit.objects.filter(pk=unit.pk).update(due_at=broken_at)

    world.run(broken_at)
    unit.refresh_from_db()
    assert (unit.verdict, unit.reason, unit.detail["behind"]) == ("warn", "in_sustain", "990 of 1,000")
    assert unit.due_at is not None
    assert broken_at + 2 * MINUTE <= unit.due_at <= broken_at + 3 * MINUTE

    clock = broken_at
    while unit.verdict == "warn" and clock < NOW + 3 * HOUR:
        clock = unit.due_at or clock
        world.run(clock)
        unit.refresh_from_db()
    assert (unit.verdict, unit.reason, clock) == ("fail", "sustained", broken_at + 30 * MINUTE)
    flip = Flip.objects.get(unit=unit, becomes="fail")
    assert (flip.was, flip.failing_since, flip.result.trigger) == ("warn", broken_at, "rerun")

    hudi_tables.overwrite(
        world.table("dc2"), DAYS[1], rows(DAYS[1], 1000), column="flight_date", instant="20261117130000000"
    )
    healed = unit.due_at
    world.run(healed)
    unit.refresh_from_db()
    assert (unit.verdict, unit.due_at, unit.attempt) == ("pass", None, 0)
    assert [flip.becomes for flip in Flip.objects.filter(unit=unit).order_by("pk")] == ["pass", "warn", "fail", "pass"]


def test_the_copy_that_lacks_rows_fails_whichever_side_it_is(world: World) -> None:
    hudi_tables.overwrite(
        world.table("dc1"), DAYS[0], rows(DAYS[0], 990), column="flight_date", instant="20261117120000000"
    )
    world.monitored()
    assert world.outcomes("row_count@dc2", "dc1")[DAYS[0]] == "fail"
    assert world.outcomes("row_count@dc1", "dc2")[DAYS[0]] == "pass"


@pytest.mark.parametrize(("hole", "outcome"), [(DAYS[1], "pass"), (DAYS[2], "fail")])
def test_freshness_is_the_front_and_completeness_the_holes(world: World, hole: str, outcome: str) -> None:
    """Two days of late rows: the one that is the newest is late, the one before it is a hole."""
    hudi_tables.overwrite(world.table("dc2"), hole, rows(hole, 990), column="flight_date", instant="20261117120000000")
    world.monitored()
    unit = world.unit("freshness", where="dc2")
    assert (unit.start, unit.end) == (EVERYTHING.start, EVERYTHING.end)
    front = day(DAYS[2]).start if hole == DAYS[2] else day(DAYS[2]).end
    assert (unit.latest_outcome, unit.affected_from) == (outcome, front)
    assert world.unit("freshness", where="dc1").latest_outcome == "pass"
    assert world.outcomes("completeness", "dc2")[hole] == "fail"


def test_a_day_that_does_not_come_fails_and_comes_late(world: World) -> None:
    """Of nothing there are no repeated keys: that test has nothing to say, until rows come."""
    world.monitored()
    tomorrow = day("2026-11-17").end + 2 * HOUR
    world.run(tomorrow)
    volume, duplicates = (world.unit(key, "2026-11-17") for key in ("volume", "duplicates"))
    assert (volume.latest_outcome, volume.verdict, volume.detail["facts"]) == ("fail", "warn", {"rows(this)": "0"})
    assert volume.due_at is not None
    assert tomorrow < volume.due_at < tomorrow + timedelta(minutes=5)
    assert (duplicates.latest_outcome, duplicates.verdict, duplicates.due_at) == ("", "unknown", None)
    late = rows("2026-11-17", 1000)
    hudi_tables.commit(world.table(), {"2026-11-17": late}, column="flight_date", instant="20261118120000000")
    commit = factories.commit(world.copy(), tomorrow, touched=[day("2026-11-17")])
    commit.touched.update(claimed_at=None)
    touched_partitions.claim_touched_partitions(now=tomorrow)
    world.run(tomorrow + HOUR)
    assert [world.unit(key, "2026-11-17").latest_outcome for key in ("volume", "duplicates")] == ["pass", "pass"]


def test_the_next_partition_is_planned_when_the_newest_is_due(world: World) -> None:
    world.monitored()
    world.run(day("2026-11-19").start + 3 * HOUR)
    assert world.unit("duplicates", "2026-11-19").due_at == day("2026-11-19").end + 2 * HOUR


def test_what_cannot_be_tested_is_listed(make_world: Callable[..., World]) -> None:
    lonely = make_world(where=("dc1",), primary_key=[])
    lonely.monitored()
    skipped = dict(SkippedCheck.objects.values_list("check_name", "reason"))
    assert skipped == {
        "duplicates": "no primary key",
        "null_keys": "no primary key",
        "repeated_keys": "no primary key",
        "sampling": "no primary key",
        "row_count_cross_dc": "a copy in one data center only",
        "bloom_cross_dc": "a copy in one data center only",
        "difference": "a copy in one data center only",
    }
