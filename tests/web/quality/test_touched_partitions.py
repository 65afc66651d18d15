"""What a commit touched is tested again, debounced; what time changed is judged again; findings fail at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ingestion.models import Finding, TouchedPartition
from lakehub.catalog.models import Feed
from lakehub.kernel.interval import EVERYTHING
from quality.execution import claims, ingestion_findings, worker
from quality.generation import custom_tests
from quality.models import Category, Flip, Lane, QualityTest, Result, Unit
from quality.planning import touched_partitions, units
from quality.planning.dependents import dependent_units
from quality.state import reevaluation
from tests import factories, hudi_tables
from tests.factories import DAY, HOUR, MINUTE, NOW, day
from tests.query_plans import plans_of
from tests.web.quality.conftest import DAYS, World, rows


def touch(world: World, *days: str, where: str = "dc1") -> None:
    commit = factories.commit(world.copy(where), NOW)
    for name in days:
        span = day(name)
        TouchedPartition.objects.create(commit=commit, copy=world.copy(where), start=span.start, end=span.end, rows=1)


def test_touched_partitions_are_tested_again_after_a_pause(world: World) -> None:
    world.monitored()
    touch(world, DAYS[1])
    # Of its own copy eight, and of the other copy the three that compare themselves with it.
    assert touched_partitions.claim_touched_partitions(now=NOW + MINUTE) == 10
    unit = world.unit("duplicates", DAYS[1])
    assert (unit.due_at, unit.lane, unit.touched_at) == (NOW + 3 * MINUTE, Lane.LATE, NOW + MINUTE)
    world.run(NOW + 3 * MINUTE)
    unit.refresh_from_db()
    assert (unit.due_at, unit.touched_at, unit.retest_due_at) == (None, None, None)
    assert Result.objects.filter(unit=unit).order_by("pk").last().trigger == "late_data"  # type: ignore[union-attr]


def test_a_commit_makes_the_other_copies_compare_again(world: World) -> None:
    world.monitored()
    touch(world, DAYS[1], where="dc2")
    touched_partitions.claim_touched_partitions(now=NOW)
    assert world.unit("row_count@dc2", DAYS[1], "dc1").due_at == NOW + 2 * MINUTE
    assert world.unit("duplicates", DAYS[1], "dc1").due_at is None


def test_a_commit_during_a_run_is_not_forgotten(world: World) -> None:
    world.monitored()
    unit = world.unit("duplicates", DAYS[1])
    Unit.objects.filter(pk=unit.pk).update(due_at=NOW)
    claimed = claims.claim_due_units(now=NOW, worker="a")
    assert claimed is not None
    touch(world, DAYS[1])
    touched_partitions.claim_touched_partitions(now=NOW + MINUTE)
    worker.execute_claim(claimed, now=NOW)
    unit.refresh_from_db()
    assert (unit.due_at, unit.lane, unit.touched_at) == (NOW + 3 * MINUTE, Lane.LATE, NOW + MINUTE)


def test_a_commit_during_the_first_run_is_not_forgotten_either(world: World) -> None:
    world.planned()
    Unit.objects.filter(pk=world.unit("duplicates", DAYS[1]).pk).update(lane=Lane.REQUESTED)
    claimed = claims.claim_due_units(now=NOW, worker="a")
    assert claimed is not None
    touch(world, DAYS[1])
    touched_partitions.claim_touched_partitions(now=NOW + MINUTE)
    worker.execute_claim(claimed, now=NOW)
    unit = world.unit("duplicates", DAYS[1])
    assert unit.latest_outcome == "pass"
    assert (unit.due_at, unit.lane, unit.touched_at) == (NOW + 3 * MINUTE, Lane.LATE, NOW + MINUTE)


def test_a_commit_to_a_table_that_is_looked_into_retests_those_that_look(world: World) -> None:
    planes = factories.dataset("planes", copies=("dc1", "dc2"), by_day=False, columns=[{"name": "tailnum"}])
    for center, root in world.lakes.items():
        uri = hudi_tables.hudi_table(
            root / "planes", {None: pa.table({"tailnum": [f"N{n}" for n in range(7)]})}, key="tailnum"
        )
        planes.copies.filter(data_center__name=center).update(uri=uri)
    asked = "unmatched(this.tailnum, planes.tailnum) / rows(this) < 1%"
    custom_tests.write_custom_test(world.flights, key="tails", title="Tails", expression=asked, actor="ann", now=NOW)
    world.monitored()
    commit = factories.commit(factories.copy_of(planes), NOW)
    TouchedPartition.objects.create(commit=commit, copy=commit.copy, start=EVERYTHING.start, end=EVERYTHING.end, rows=1)
    assert touched_partitions.claim_touched_partitions(now=NOW + MINUTE) == len(DAYS)
    assert {world.unit("tails", day_name).lane for day_name in DAYS} == {Lane.LATE}
    assert {world.unit("tails", day_name, "dc2").due_at for day_name in DAYS} == {None}
    assert world.unit("duplicates", DAYS[1]).due_at is None


@pytest.mark.parametrize(
    "asked", ["matching(this, archive) > 99%", "sampled(this, archive) > 99%", "difference(this, archive) < 1%"]
)
def test_a_commit_to_the_other_side_retests_the_same_partition_only(world: World, asked: str) -> None:
    archive = factories.dataset("archive", copies=("dc1",), columns=world.flights.columns)
    custom_tests.write_custom_test(world.flights, key="kept", title="Kept", expression=asked, actor="ann", now=NOW)
    world.planned()
    Unit.objects.update(due_at=None)
    commit, span = factories.commit(factories.copy_of(archive), NOW), day(DAYS[1])
    TouchedPartition.objects.create(commit=commit, copy=commit.copy, start=span.start, end=span.end, rows=1)
    touched_partitions.claim_touched_partitions(now=NOW)
    retested = Unit.objects.filter(due_at__isnull=False).values_list("test__key", "start", "copy__data_center__name")
    assert list(retested) == [("kept", span.start, "dc1")]


def test_a_test_that_no_longer_names_a_table_is_left_alone_by_its_commits(world: World) -> None:
    planes = factories.dataset("planes", copies=("dc1",), by_day=False, columns=[{"name": "tailnum"}])
    asked = {
        "before": "unmatched(this.tailnum, planes.tailnum) < 9",
        "after": "rows(this[-1d]) > 9",
    }
    reads = {}
    for when, expression in asked.items():
        test = custom_tests.write_custom_test(
            world.flights, key="tails", title="T", expression=expression, actor="ann", now=NOW
        )
        reads[when] = set(test.reads.values_list("name", flat=True))
    assert reads == {"before": {"planes"}, "after": {"this"}}
    whole = [(EVERYTHING.start, EVERYTHING.end)]
    assert list(dependent_units(factories.copy_of(planes), whole)) == []
    assert len(list(dependent_units(world.copy(), whole))) == 1


def test_a_failure_that_has_read_the_commit_is_rerun_in_its_own_rhythm(world: World) -> None:
    world.monitored()
    hudi_tables.overwrite(
        world.table("dc1"), DAYS[1], rows(DAYS[1], 1000, doubled=9), column="flight_date", instant="20261117120000000"
    )
    touch(world, DAYS[1])
    touched_partitions.claim_touched_partitions(now=NOW)
    world.run(NOW + 2 * MINUTE)
    unit = world.unit("duplicates", DAYS[1])
    assert (unit.latest_outcome, unit.results.count()) == ("fail", 2)
    assert unit.due_at is not None
    assert NOW + 4 * MINUTE <= unit.due_at <= NOW + 5 * MINUTE


def test_more_commits_share_one_retest(world: World) -> None:
    world.monitored()
    for minute in range(3):
        touch(world, DAYS[1])
        touched_partitions.claim_touched_partitions(now=NOW + minute * MINUTE)
    assert world.unit("duplicates", DAYS[1]).due_at == NOW + 2 * MINUTE


def test_a_touched_row_is_claimed_once(world: World) -> None:
    world.monitored()
    touch(world, DAYS[0], DAYS[1])
    assert (
        touched_partitions.claim_touched_partitions(now=NOW),
        touched_partitions.claim_touched_partitions(now=NOW),
    ) == (20, 0)
    assert not TouchedPartition.objects.filter(claimed_at=None).exists()


def test_a_partition_that_is_not_due_yet_waits_for_its_own_time(world: World) -> None:
    world.monitored()
    touch(world, "2026-11-17")
    assert touched_partitions.claim_touched_partitions(now=NOW) == 0
    assert world.unit("duplicates", "2026-11-17").due_at == day("2026-11-17").end + 2 * HOUR


def test_a_failing_unit_does_not_wait_for_its_backoff_once_its_data_changed(world: World) -> None:
    world.monitored()
    unit = world.unit("duplicates", DAYS[1])
    Unit.objects.filter(pk=unit.pk).update(due_at=NOW + 30 * MINUTE)
    touch(world, DAYS[1])
    touched_partitions.claim_touched_partitions(now=NOW)
    assert world.unit("duplicates", DAYS[1]).due_at == NOW + 2 * MINUTE


def test_a_failing_unit_keeps_its_earlier_rerun(world: World) -> None:
    world.monitored()
    soon = NOW + timedelta(seconds=30)
    Unit.objects.filter(pk=world.unit("duplicates", DAYS[1]).pk).update(due_at=soon)
    touch(world, DAYS[1])
    touched_partitions.claim_touched_partitions(now=NOW)
    assert world.unit("duplicates", DAYS[1]).due_at == soon


def test_a_retest_that_does_not_come_makes_the_verdict_unknown(world: World) -> None:
    world.monitored()
    touch(world, DAYS[1])
    touched_partitions.claim_touched_partitions(now=NOW + MINUTE)
    assert world.unit("duplicates", DAYS[1]).verdict == "pass"
    assert reevaluation.reevaluate_due_units(now=NOW + 13 * MINUTE) == 10
    unit = world.unit("duplicates", DAYS[1])
    assert (unit.verdict, unit.reason, unit.reevaluate_at) == ("unknown", "retest_overdue", None)
    assert Flip.objects.filter(unit=unit).order_by("pk").last().result is None  # type: ignore[union-attr]


def test_a_test_without_a_pass_for_two_cadences_is_unknown(world: World) -> None:
    world.monitored()
    reevaluation.reevaluate_due_units(now=NOW + 30 * MINUTE)
    assert (world.unit("freshness").verdict, world.unit("freshness").reason) == ("unknown", "stale")


@pytest.mark.django_db
def test_judging_and_claiming_use_their_indexes() -> None:
    assert "unit_judge" in plans_of(lambda: reevaluation.reevaluate_due_units(now=NOW))[0]
    assert "touched_unclaimed" in plans_of(lambda: touched_partitions.claim_touched_partitions(now=NOW))[0]
    raised, cleared = plans_of(lambda: ingestion_findings.observe_findings(now=NOW))
    assert "finding_raise_unclaimed" in raised
    assert "finding_clear_unclaimed" in cleared


def test_finding_what_a_commit_touched_never_goes_through_all_units(world: World) -> None:
    touch(world.monitored(), DAYS[1])
    for plan in plans_of(lambda: touched_partitions.claim_touched_partitions(now=NOW)):
        assert "Seq Scan on quality_unit" not in plan
        assert "SCAN quality_unit" not in plan
        assert "SCAN quality_test" not in plan


def finding(world: World, **fields: object) -> Finding:
    defaults = {
        "kind": "rows_not_accounted_for",
        "start": day(DAYS[1]).start,
        "end": day(DAYS[1]).end,
        "detail": {"message": "2 rows are missing"},
        "raised_at": NOW,
    }
    return Finding.objects.create(copy=world.copy(), **{**defaults, **fields})


def test_a_finding_fails_at_once_and_passes_when_it_is_cleared(world: World) -> None:
    raised = finding(world)
    assert ingestion_findings.observe_findings(now=NOW + MINUTE) == 1
    unit = world.unit("finding:rows_not_accounted_for")
    assert (unit.verdict, unit.reason, unit.first_fail_at, unit.detail["cause"]) == (
        "fail",
        "sustained",
        NOW,
        "2 rows are missing",
    )
    assert unit.test.category == Category.INGESTION
    Finding.objects.filter(pk=raised.pk).update(cleared_at=NOW + HOUR)
    assert ingestion_findings.observe_findings(now=NOW + HOUR) == 1
    unit.refresh_from_db()
    assert (unit.verdict, [flip.becomes for flip in unit.flips.order_by("pk")]) == ("pass", ["fail", "pass"])
    assert ingestion_findings.observe_findings(now=NOW + HOUR) == 0


def test_a_captured_dataset_is_asked_before_anything_is_found(world: World) -> None:
    """Its test is the one that fails at once when something is, and passes when it is over; it goes when the dataset is captured no more."""
    tapped = factories.connection("tapped", "mysql://reader:hunter2@db/ops", plugin="mysql")
    (was,) = Feed.objects.filter(dataset=world.flights).values_list("connection", flat=True)
    Feed.objects.filter(dataset=world.flights).update(connection=tapped)
    world.monitored()
    for kind in ("copy_behind", "messages_unaccounted"):
        assert world.unit(f"finding:{kind}").verdict == "pass"
    raised = finding(world, kind="messages_unaccounted", start=EVERYTHING.start, end=EVERYTHING.end)
    ingestion_findings.observe_findings(now=NOW + MINUTE)
    assert world.unit("finding:messages_unaccounted").verdict == "fail"
    later = NOW + DAY
    world.run(later)
    assert world.unit("finding:messages_unaccounted").latest_outcome == "fail"
    Finding.objects.filter(pk=raised.pk).update(cleared_at=later + MINUTE)
    ingestion_findings.observe_findings(now=later + MINUTE)
    assert world.unit("finding:messages_unaccounted").verdict == "pass"
    assert QualityTest.objects.filter(key="finding:messages_unaccounted").count() == 1
    Feed.objects.filter(dataset=world.flights).update(connection=was)
    world.monitored(later)
    assert QualityTest.objects.get(key="finding:messages_unaccounted").retired_at == later


def test_a_finding_over_everything_has_a_unit_too(world: World) -> None:
    finding(world, kind="schema_incompatible", start=EVERYTHING.start, end=EVERYTHING.end)
    ingestion_findings.observe_findings(now=NOW)
    assert world.unit("finding:schema_incompatible").verdict == "fail"


def test_a_finding_that_is_rerun_by_hand_is_looked_up(world: World) -> None:
    raised = finding(world)
    ingestion_findings.observe_findings(now=NOW)
    unit = world.unit("finding:rows_not_accounted_for")
    for cleared_at, outcome, at in ((None, "fail", NOW + MINUTE), (NOW, "pass", NOW + 2 * MINUTE)):
        Finding.objects.filter(pk=raised.pk).update(cleared_at=cleared_at)
        Unit.objects.filter(pk=unit.pk).update(due_at=at, lane=Lane.REQUESTED)
        world.run(at)
        unit.refresh_from_db()
        assert unit.latest_outcome == outcome


def test_generating_again_keeps_the_tests_of_findings(world: World) -> None:
    finding(world)
    ingestion_findings.observe_findings(now=NOW)
    world.monitored(NOW + DAY)
    assert QualityTest.objects.get(key="finding:rows_not_accounted_for").retired_at is None


def test_what_ingestion_did_not_find_has_no_unit(world: World) -> None:
    """Nobody plans the units of a finding's test: not with the dataset's, and not when a commit touches it."""
    finding(world)
    ingestion_findings.observe_findings(now=NOW)
    test = QualityTest.objects.get(key="finding:rows_not_accounted_for")
    units.plan_units(test, now=NOW + DAY)
    touched_partitions.retest(world.copy().pk, [(day(DAYS[0]).start, day(DAYS[2]).end)], now=NOW + DAY)
    assert not test.planned
    assert [(unit.start, unit.due_at) for unit in test.units.all()] == [(day(DAYS[1]).start, None)]


def test_a_stream_of_commits_writes_each_unit_once_in_a_window_and_none_waits_for_longer(
    world: World, settings: Any
) -> None:
    world.monitored()
    settings.LAKEHUB_COMMIT_GATHER_S = 10
    planned, due, at = [], set(), NOW
    for number in range(24):
        at = NOW + number * timedelta(seconds=5)
        touch(world, DAYS[1], DAYS[2])
        with CaptureQueriesContext(connection) as asked:
            planned.append(touched_partitions.claim_touched_partitions(now=at))
        assert planned[-1] or not [sql for sql in asked.captured_queries if "UPDATE" in sql["sql"]]
        due.add(world.unit("duplicates", DAYS[1]).due_at)
        left = TouchedPartition.objects.filter(claimed_at=None).exists()
        assert touched_partitions.next_claim_at(at) == (at + timedelta(seconds=5) if left else None)
    assert [bool(units) for units in planned] == [True, False] * 12
    assert due == {NOW + 2 * MINUTE}, "a steady stream does not put the retest off"
    assert touched_partitions.claim_touched_partitions(now=at + timedelta(seconds=5))
    assert not TouchedPartition.objects.filter(claimed_at=None).exists()


def test_a_load_of_many_partitions_is_claimed_whole_however_long_the_window(
    world: World, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.monitored()
    settings.LAKEHUB_COMMIT_GATHER_S = 3600
    monkeypatch.setattr(touched_partitions, "CLAIM_BATCH", 1)
    touch(world, *DAYS)
    touched_partitions.claim_touched_partitions(now=NOW)
    assert not TouchedPartition.objects.filter(claimed_at=None).exists()


def test_without_a_window_each_commit_is_claimed_at_once(world: World, settings: Any) -> None:
    world.monitored()
    settings.LAKEHUB_COMMIT_GATHER_S = 0
    for _ in range(2):
        touch(world, DAYS[1])
        assert touched_partitions.claim_touched_partitions(now=NOW)
