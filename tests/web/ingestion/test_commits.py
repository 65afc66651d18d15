"""The lake's timeline as rows: each commit once, with its partitions and what is wrong with its sum."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ingestion.lake import commits
from ingestion.models import Commit, Finding, JobRun, TouchedPartition
from ingestion.spark.tables.timeline import Timeline
from ingestion.tasks import record_lake_commits
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.interval import BEGINNING, FOREVER
from tests import factories as given
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


def test_commits_come_in_the_order_of_their_completion_and_only_new_ones(copy: DatasetCopy) -> None:
    hudi_timeline.commit(copy, SECOND, {"2026-11-16": (1, 0, 0)})
    commits.record_new_commits(copy, now=NOW)
    hudi_timeline.commit(copy, FIRST, {"2026-11-16": (1, 0, 0)})
    assert [commit.instant for commit in commits.record_new_commits(copy, now=NOW)] == [FIRST]


def test_a_commit_of_our_own_knows_its_run_its_sum_and_its_checkpoint(copy: DatasetCopy) -> None:
    run = JobRun.objects.create(copy=copy, kind="incremental", due_at=NOW)
    mark = hudi_timeline.told_by(
        str(run.key), read=4, applied=3, errors=1, source_committed_upto="2026-11-17T09:59:00+00:00"
    )
    hudi_timeline.commit(copy, FIRST, {"2026-11-16": (1, 2, 0)}, run=mark, checkpoint={"watermark": 7})
    (commit,) = commits.record_new_commits(copy, now=NOW)
    assert (commit.run, commit.read, commit.applied, commit.errors) == (run, 4, 3, 1)
    assert commit.checkpoint == {"watermark": 7}
    assert commit.source_committed_upto == datetime(2026, 11, 17, 9, 59, tzinfo=UTC)
    assert not Finding.objects.exists()


def test_a_commit_is_timed_by_the_platforms_clock(copy: DatasetCopy) -> None:
    hudi_timeline.commit(copy, FIRST, {}, run=hudi_timeline.told_by("x", clock_ahead_s=-3600.0))
    (commit,) = commits.record_new_commits(copy, now=NOW)
    assert commit.completed_at.hour == 9


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
    assert '"instant" IN' in first


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
