"""The lake's timeline as rows: each commit once, with its partitions and what is wrong with its sum."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ingestion.domain.checkpoint import UnfinishedSnapshot
from ingestion.lake import commits
from ingestion.models import Commit, Finding, IndexShare, JobRun, TouchedPartition
from ingestion.runs.copy_lag import has_table
from ingestion.spark.tables.timeline import Timeline
from ingestion.tasks import record_lake_commits
from lakehub.catalog.models import Dataset, DatasetCopy, Feed
from lakehub.kernel.interval import BEGINNING, FOREVER
from tests import factories as given
from tests import index_jobs
from tests.factories import NOW
from tests.web.ingestion import hudi_timeline

FIRST, SECOND = "20261117100000000", "20261117110000000"
THIRD, FOURTH = "20261117120000000", "20261117130000000"


def test_a_commit_is_taken_in_once_with_the_partitions_it_touched(copy: DatasetCopy) -> None:
    hudi_timeline.commit(copy, FIRST, {"2026-11-15": (5, 0, 0), "2026-11-16": (1, 2, 3)})
    (commit,) = commits.record_new_commits(copy, now=NOW)
    assert commits.record_new_commits(copy, now=NOW) == []
    assert (commit.instant, commit.inserts, commit.updates, commit.deletes) == (FIRST, 6, 2, 3)
    assert commit.completed_at == datetime(2026, 11, 17, 10, 0, 0, 500_000, tzinfo=UTC)
    touched = [(each.start, each.end, each.rows) for each in TouchedPartition.objects.order_by("start")]
    days = [given.day("2026-11-15"), given.day("2026-11-16")]
    assert touched == [(day.start, day.end, rows) for day, rows in zip(days, (5, 6), strict=True)]


def test_two_processes_that_take_in_at_once_write_it_down_once(copy: DatasetCopy) -> None:
    hudi_timeline.commit(copy, FIRST, {"2026-11-16": (1, 0, 0)})
    (commit,) = Timeline(copy.uri).commits()
    assert commits.record_new_commits(copy, now=NOW) != []
    assert commits.record_commit(copy, commit, now=NOW) is None
    assert TouchedPartition.objects.count() == 1


def test_a_commit_counts_once_for_the_rows_of_its_copy_in_the_index(copy: DatasetCopy) -> None:
    Feed.objects.update(options={"index": "hbase"})
    copy = DatasetCopy.objects.get(pk=copy.pk)
    index_jobs.cluster()
    hudi_timeline.commit(copy, FIRST, {"2026-11-16": (9, 2, 3)})
    (commit,) = Timeline(copy.uri).commits()
    for _ in range(2):
        commits.record_commit(copy, commit, now=NOW)
    assert IndexShare.objects.get(copy=copy).rows == 6


def test_a_load_in_several_commits_is_tested_as_a_whole(copy: DatasetCopy) -> None:
    """What the first commits touched is told once the last has made the table whole; they are commits of one run."""
    run = JobRun.objects.create(copy=copy, kind="bootstrap", due_at=NOW)
    part = UnfinishedSnapshot({"after": [5]}, rows=3, total=6).position
    for instant, number, day, checkpoint in (
        (FIRST, "", "2026-11-15", part), (SECOND, "#2", "2026-11-16", part), (THIRD, "#3", "2026-11-16", {"watermark": 7})
    ):  # fmt: skip
        mark = hudi_timeline.told_by(f"{run.key}{number}", read=2, applied=2, kind="bootstrap")
        hudi_timeline.commit(copy, instant, {day: (2, 0, 0)}, operation="BULK_INSERT", run=mark, checkpoint=checkpoint)
        (commit,) = commits.record_new_commits(copy, now=NOW)
        assert commit.run == run
        assert has_table(copy) == (instant == THIRD)
        assert TouchedPartition.objects.exists() == (instant == THIRD)
    touched = [(each.commit.instant, each.start, each.inserts) for each in TouchedPartition.objects.order_by("start")]
    assert touched == [
        (THIRD, given.day("2026-11-15").start, 2),
        (THIRD, given.day("2026-11-16").start, 4),
    ]


def test_commits_come_in_the_order_of_their_completion_and_only_new_ones(copy: DatasetCopy) -> None:
    hudi_timeline.commit(copy, SECOND, {"2026-11-16": (1, 0, 0)})
    commits.record_new_commits(copy, now=NOW)
    hudi_timeline.commit(copy, FIRST, {"2026-11-16": (1, 0, 0)})
    assert [commit.instant for commit in commits.record_new_commits(copy, now=NOW)] == [FIRST]


def test_a_commit_of_our_own_knows_its_run_and_its_sum(copy: DatasetCopy) -> None:
    run = JobRun.objects.create(copy=copy, kind="incremental", due_at=NOW)
    mark = hudi_timeline.told_by(
        str(run.key), read=4, applied=3, errors=1, source_committed_upto="2026-11-17T09:59:00+00:00"
    )
    hudi_timeline.commit(copy, FIRST, {"2026-11-16": (1, 2, 0)}, run=mark, checkpoint={"watermark": 7})
    (commit,) = commits.record_new_commits(copy, now=NOW)
    assert (commit.run, commit.read, commit.applied, commit.errors) == (run, 4, 3, 1)
    assert commit.source_committed_upto == datetime(2026, 11, 17, 9, 59, tzinfo=UTC)
    assert not Finding.objects.exists()


def test_a_commit_is_timed_by_the_platforms_clock(copy: DatasetCopy) -> None:
    hudi_timeline.commit(copy, FIRST, {}, run=hudi_timeline.told_by("x", clock_ahead_s=-3600.0))
    (commit,) = commits.record_new_commits(copy, now=NOW)
    assert commit.completed_at.hour == 9


def test_a_commit_of_a_clock_that_was_ahead_is_no_later_than_it_was_seen(copy: DatasetCopy) -> None:
    hudi_timeline.commit(copy, "20261231100000000", {})
    (commit,) = commits.record_new_commits(copy, now=NOW)
    assert commit.completed_at == NOW


def test_a_sum_that_does_not_hold_is_a_finding_over_what_it_touched(copy: DatasetCopy) -> None:
    hudi_timeline.commit(copy, FIRST, {"2026-11-16": (1, 0, 0)}, run=hudi_timeline.told_by("x", read=5, applied=3))
    commits.record_new_commits(copy, now=NOW)
    finding = Finding.objects.get(kind="rows_unaccounted")
    assert finding.start == given.day("2026-11-16").start
    assert "5 rows were read, but 3 are accounted for" in finding.detail["message"]


def test_more_keys_written_than_rows_applied_is_a_finding(copy: DatasetCopy) -> None:
    hudi_timeline.commit(copy, FIRST, {"2026-11-16": (4, 0, 0)}, run=hudi_timeline.told_by("x", read=3, applied=3))
    commits.record_new_commits(copy, now=NOW)
    assert "3 rows were applied, but 4 keys written" in Finding.objects.get().detail["message"]


def test_a_schema_that_does_not_fit_is_a_finding_until_it_does(copy: DatasetCopy) -> None:
    bad = hudi_timeline.told_by("x", schema={"conflicts": [["amount", "double", "string"]]})
    hudi_timeline.commit(copy, FIRST, {}, run=bad)
    commits.record_new_commits(copy, now=NOW)
    finding = Finding.objects.get(kind="schema_incompatible")
    assert finding.detail["message"] == "`amount` is double here and string in the source"
    hudi_timeline.commit(copy, SECOND, {}, run=hudi_timeline.told_by("y"))
    commits.record_new_commits(copy, now=NOW)
    finding.refresh_from_db()
    assert finding.cleared_at == NOW


def test_a_column_that_came_with_a_commit_reaches_the_catalog(copy: DatasetCopy, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "ops.db") as source:
        source.execute("CREATE TABLE flights (id INTEGER, gate TEXT)")
    connection = copy.dataset.feed.connection
    connection.url = f"sqlite:///{tmp_path / 'ops.db'}"
    connection.save()
    hudi_timeline.commit(
        copy, FIRST, {"2026-11-16": (1, 0, 0)}, run=hudi_timeline.told_by("x", schema={"added": ["gate"]})
    )
    commits.record_new_commits(copy, now=NOW)
    dataset = Dataset.objects.get(pk=copy.dataset.pk)
    assert [column["name"] for column in dataset.columns] == ["id", "gate"]
    assert dataset.metadata_version == 2


def test_clustering_touches_nothing(copy: DatasetCopy) -> None:
    hudi_timeline.commit(copy, FIRST, {"2026-11-16": (9, 0, 0)}, operation="CLUSTER")
    commits.record_new_commits(copy, now=NOW)
    assert Commit.objects.get().operation == "cluster"
    assert not TouchedPartition.objects.exists()


def test_a_partition_that_is_none_of_the_datasets_touches_everything(copy: DatasetCopy) -> None:
    hudi_timeline.commit(copy, FIRST, {"__HIVE_DEFAULT_PARTITION__": (1, 0, 0)})
    commits.record_new_commits(copy, now=NOW)
    touched = TouchedPartition.objects.get()
    assert (touched.start, touched.end) == (BEGINNING, FOREVER)


def test_a_table_that_is_not_there_has_no_commits(copy: DatasetCopy) -> None:
    assert commits.record_new_commits(copy, now=NOW) == []


def test_two_bad_ranges_are_two_findings(copy: DatasetCopy) -> None:
    bad = hudi_timeline.told_by("x", read=5, applied=3)
    hudi_timeline.commit(copy, FIRST, {"2026-11-15": (1, 0, 0)}, run=bad)
    hudi_timeline.commit(copy, SECOND, {"2026-11-15": (1, 0, 0), "2026-11-16": (1, 0, 0)}, run=bad)
    hudi_timeline.commit(copy, THIRD, {"2026-11-16": (1, 0, 0)}, run=bad)
    hudi_timeline.commit(copy, FOURTH, {"2026-11-16": (1, 0, 0)}, run=bad)
    commits.record_new_commits(copy, now=NOW)
    first, other = given.day("2026-11-15"), given.day("2026-11-16")
    commits_by_range = {(each.start, each.end): each.detail["commit"] for each in Finding.objects.all()}
    assert commits_by_range == {
        (first.start, first.end): FIRST,
        (first.start, other.end): SECOND,
        (other.start, other.end): FOURTH,
    }


def test_only_what_the_timeline_still_holds_is_compared(copy: DatasetCopy) -> None:
    """A table of years has commits by the thousand, and a timeline of some eighty."""
    given.commit(copy, instant=FIRST)
    hudi_timeline.commit(copy, SECOND, {})
    with CaptureQueriesContext(connection) as asked:
        commits.record_new_commits(copy, now=NOW)
    first = asked.captured_queries[0]["sql"]
    assert SECOND in first
    assert FIRST not in first
    assert '"instant" >=' in first


def test_a_table_that_cannot_be_read_holds_up_no_other(copy: DatasetCopy, caplog: pytest.LogCaptureFixture) -> None:
    watched = given.dataset("watched", ingested=False)
    watched.copies.update(uri="")
    copy.dataset.copies.exclude(pk=copy.pk).delete()
    broken = given.copy_of(given.dataset("broken"))
    broken.uri = "gopher://nowhere"
    broken.save()
    last = given.copy_of(given.dataset("last"))
    hudi_timeline.commit(last, FIRST, {})
    record_lake_commits()
    assert Commit.objects.get().copy == last
    assert "Taking in the timeline of broken@dc1 at gopher://nowhere failed" in caplog.text
    assert "watched" not in caplog.text


def test_rows_whose_cursor_has_no_place_are_told_until_they_are_corrected(copy: DatasetCopy) -> None:
    cursors = {"column": "score", "rows": 2, "sample": ["nan"]}
    for instant, kind, rows in ((FIRST, "incremental", 2), (SECOND, "backfill", 0), (THIRD, "incremental", 0)):
        facts = hudi_timeline.told_by("", kind=kind, unusable_cursors=cursors | {"rows": rows})
        hudi_timeline.commit(copy, instant, {"2026-11-16": (1, 0, 0)}, run=facts)
        commits.record_new_commits(copy, now=NOW)
        finding = Finding.objects.get(kind="cursor_unusable")
        assert (finding.cleared_at is not None) == (instant == THIRD)
    assert (
        "2 rows have a value in the cursor column `score` that has no place in its order (nan)"
        in finding.detail["message"]
    )


def test_a_limit_of_the_index_is_told_until_a_commit_of_a_job_that_knows_says_that_it_is_none(
    copy: DatasetCopy,
) -> None:
    for instant, facts in ((FIRST, {"index_limitation": "Too many."}), (SECOND, {}), (THIRD, {"index_limitation": ""})):
        hudi_timeline.commit(copy, instant, {"2026-11-16": (1, 0, 0)}, run=hudi_timeline.told_by("", **facts))
        commits.record_new_commits(copy, now=NOW)
        finding = Finding.objects.get(kind="index_limited")
        assert (finding.cleared_at is not None) == (instant == THIRD)
    assert finding.detail["message"].startswith("Too many. Until then the whole table is read for each batch")


WHOLE_SOURCE = {"rows": 9, "digest": "00000000000000ff"}


@pytest.mark.parametrize(
    ("kind", "checkpoint", "read", "ends"),
    [
        ("bootstrap", None, 9, True),
        ("incremental", {"watermark": 7}, 9, False),
        ("incremental", WHOLE_SOURCE, 9, True),
        ("incremental", WHOLE_SOURCE, 0, False),
        ("backfill", WHOLE_SOURCE, 9, False),
    ],
    ids=["first load", "changes since", "no cursor", "stamped again", "backfill"],
)
def test_values_that_are_no_partition_are_a_finding_until_a_reading_of_the_whole_source_has_none(
    copy: DatasetCopy, kind: str, checkpoint: dict[str, Any] | None, read: int, ends: bool
) -> None:
    odd = hudi_timeline.told_by("x", kind="incremental", misplaced={"2026-13-45": 300})
    hudi_timeline.commit(copy, FIRST, {"2026-11-16": (1, 0, 0)}, run=odd)
    commits.record_new_commits(copy, now=NOW)
    good = hudi_timeline.told_by("y", read=read, applied=read, kind=kind, misplaced={})
    hudi_timeline.commit(copy, SECOND, {"2026-11-16": (read, 0, 0)}, run=good, checkpoint=checkpoint)
    commits.record_new_commits(copy, now=NOW)
    finding = Finding.objects.get(kind="partition_unreadable")
    assert "'2026-13-45' (300 rows)" in finding.detail["message"]
    assert (finding.cleared_at is not None) == ends


def test_a_batch_adds_the_values_that_it_saw_to_those_that_are_known(copy: DatasetCopy) -> None:
    batches = ({"2026-13-45": 300}, {"2026-13-45": 2, "garbage": 5}, {"garbage": 7})
    for instant, misplaced in zip((FIRST, SECOND, THIRD), batches, strict=True):
        facts = hudi_timeline.told_by("x", kind="incremental", misplaced=misplaced)
        hudi_timeline.commit(copy, instant, {"2026-11-16": (1, 0, 0)}, run=facts)
        commits.record_new_commits(copy, now=NOW)
    detail = Finding.objects.get(kind="partition_unreadable", cleared_at=None).detail
    assert detail["rows"] == 307
    assert {each["value"]: each["rows"] for each in detail["sample"]} == {"2026-13-45": 300, "garbage": 7}


def load_of(copy: DatasetCopy, instant: str, rows: dict[str, int], kind: str = "incremental") -> dict[str, Any]:
    """What the open finding says after a load that met these rows, of which its commit names the 20 most frequent values."""
    named = sorted(rows, key=lambda value: -rows[value])[:20]
    totals = {"values": len(rows), "rows": sum(rows.values())}
    misplaced: dict[str, Any] = {"misplaced": {value: rows[value] for value in named}, "misplaced_totals": totals}
    hudi_timeline.commit(
        copy, instant, {"2026-11-16": (1, 0, 0)}, run=hudi_timeline.told_by("x", kind=kind, read=9, **misplaced)
    )
    commits.record_new_commits(copy, now=NOW)
    detail: dict[str, Any] = Finding.objects.get(kind="partition_unreadable", cleared_at=None).detail
    return detail


MANY = {f"garbage {number}": 10 for number in range(500)}


def test_a_bad_row_more_adds_to_all_that_a_first_load_met_and_not_to_those_that_are_named(copy: DatasetCopy) -> None:
    """500 values in 5,000 rows, of which 20 are named: after one more row it said 21 values in 201 rows."""
    first = load_of(copy, FIRST, MANY, kind="bootstrap")
    assert (first["values"], first["rows"], len(first["sample"])) == (500, 5_000, 20)
    assert "and 497 more values (5,000 rows in all)" in first["message"]
    for instant in (SECOND, THIRD):  # the same row again, as a load without progress reads it
        more = load_of(copy, instant, {"new": 1})
        assert (more["values"], more["rows"], len(more["sample"])) == (501, 5_001, 20)
    assert "and 498 more values (5,001 rows in all)" in more["message"]


def test_a_look_at_the_whole_source_may_say_fewer(copy: DatasetCopy) -> None:
    load_of(copy, FIRST, MANY, kind="bootstrap")
    fewer = load_of(copy, SECOND, {"garbage 1": 3}, kind="bootstrap")
    assert (fewer["values"], fewer["rows"]) == (1, 3)


def test_values_that_later_loads_meet_are_added_once_each(copy: DatasetCopy) -> None:
    load_of(copy, FIRST, {f"old {number}": 5 for number in range(30)})
    load_of(copy, SECOND, {f"new {number}": 1 for number in range(20)})
    detail = load_of(copy, THIRD, {"new 7": 3, "old 2": 4, "x" * 5_000: 1})
    assert (detail["values"], detail["rows"]) == (51, 150 + 20 + 2 + 1)
    assert len(json.dumps(detail)) < 10_000


def test_of_values_that_a_part_does_not_name_only_the_excess_is_new(copy: DatasetCopy) -> None:
    """Nobody knows whether they are the known ones."""
    load_of(copy, FIRST, {f"old {number}": 5 for number in range(30)})
    detail = load_of(copy, SECOND, {f"other {number}": 9 for number in range(200)})
    assert (detail["values"], detail["rows"]) == (200, 1_800)


@pytest.mark.parametrize(
    ("operation", "change", "left"),
    [
        ("UPSERT", (0, 0, 5), None),
        ("UPSERT", (0, 0, 2), 3),
        ("UPSERT", (0, 5, 0), 5),
        ("UPSERT", (2, 0, 0), 7),
        ("INSERT_OVERWRITE_TABLE", (0, 0, 0), None),
        ("INSERT_OVERWRITE_TABLE", (4, 0, 0), 4),
    ],
    ids=["deleted", "some deleted", "updated", "more", "replaced without", "replaced"],
)
def test_rows_of_the_future_are_counted_without_those_that_are_gone(
    copy: DatasetCopy, operation: str, change: tuple[int, int, int], left: int | None
) -> None:
    hudi_timeline.commit(copy, FIRST, {"2026-11-16": (1, 0, 0), "2031-01-01": (5, 0, 0)})
    commits.record_new_commits(copy, now=NOW)
    hudi_timeline.commit(copy, SECOND, {"2031-01-01": change}, operation=operation)
    commits.record_new_commits(copy, now=NOW)
    finding = Finding.objects.get(kind="partition_ahead")
    assert (finding.cleared_at is not None) == (left is None)
    assert finding.detail["rows"] == (left or 5)


@pytest.mark.parametrize("kind", ["incremental", "follow"])
def test_a_row_that_is_moved_out_of_the_future_is_a_finding_no_longer(copy: DatasetCopy, kind: str) -> None:
    """Also where both batches share a row of what they touched."""
    run = JobRun.objects.create(copy=copy, kind=kind, due_at=NOW)
    batch = hudi_timeline.told_by(f"{run.key}", read=1, applied=1, kind="incremental")
    hudi_timeline.commit(copy, FIRST, {"2031-01-01": (1, 0, 0)}, run=batch)
    commits.record_new_commits(copy, now=NOW)
    assert Finding.objects.filter(kind="partition_ahead", cleared_at=None).exists()
    moving = hudi_timeline.told_by(f"{run.key}#2", read=1, applied=1, kind="incremental", moved=1)
    hudi_timeline.commit(copy, "20261117100100000", {"2031-01-01": (0, 0, 1), "2026-11-15": (1, 0, 0)}, run=moving)
    commits.record_new_commits(copy, now=NOW)
    assert not Finding.objects.filter(cleared_at=None).exists()
    ahead = TouchedPartition.objects.filter(start=given.day("2031-01-01").start)
    assert [row.deletes for row in ahead.order_by("pk")] == ([1] if kind == "follow" else [0, 1])


def test_rows_of_the_future_that_were_there_before_the_first_known_commit_are_a_finding(copy: DatasetCopy) -> None:
    hudi_timeline.commit(copy, FIRST, {"2031-01-01": (0, 5, 0)})
    commits.record_new_commits(copy, now=NOW)
    finding = Finding.objects.get(kind="partition_ahead", cleared_at=None)
    assert finding.detail["rows"] is None


def test_rows_that_lie_in_the_future_are_a_finding_until_that_day_comes(copy: DatasetCopy) -> None:
    hudi_timeline.commit(copy, FIRST, {"2026-11-16": (1, 0, 0), "2026-11-25": (3, 0, 0)})
    commits.record_new_commits(copy, now=NOW)
    finding = Finding.objects.get(kind="partition_ahead", cleared_at=None)
    assert (finding.start, finding.detail["rows"]) == (given.day("2026-11-25").start, 3)
    hudi_timeline.commit(copy, SECOND, {"2026-11-16": (1, 0, 0)})
    commits.record_new_commits(copy, now=given.day("2026-11-24").start)
    assert not Finding.objects.filter(cleared_at=None).exists()
