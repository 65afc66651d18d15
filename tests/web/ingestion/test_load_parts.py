"""What a first load in several commits touched is told when the table is whole, however long it took."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from ingestion.domain.checkpoint import UnfinishedSnapshot, commit_id_of
from ingestion.lake import commits
from ingestion.models import Commit, JobRun, TouchedPartition
from lakehub.catalog.models import DatasetCopy
from tests import factories as given
from tests.factories import NOW
from tests.web.ingestion import hudi_timeline

FIRST, SECOND = "20261117100000000", "20261117110000000"
THIRD = "20261117120000000"
UNFINISHED = UnfinishedSnapshot({"after": [5]}, rows=3, total=6).position
WHOLE = {"watermark": 7}


def commit_part(copy: DatasetCopy, instant: str, number: int, day: str, *, is_last: bool = False) -> None:
    run, _ = JobRun.objects.get_or_create(copy=copy, kind="bootstrap", due_at=NOW)
    mark = hudi_timeline.told_by(commit_id_of(str(run.key), number), read=2, applied=2, kind="bootstrap")
    checkpoint = WHOLE if is_last else UNFINISHED
    hudi_timeline.commit(copy, instant, {day: (2, 0, 0)}, operation="BULK_INSERT", run=mark, checkpoint=checkpoint)
    commits.record_new_commits(copy, now=NOW)


def archive(copy: DatasetCopy, instant: str) -> None:
    (file,) = Path(unquote(urlsplit(copy.uri).path)).glob(f".hoodie/timeline/{instant}_*")
    file.unlink()


def days_touched() -> dict[object, int]:
    return {row.start: row.inserts for row in TouchedPartition.objects.order_by("start")}


def test_parts_that_the_archive_has_taken_are_tested_too(copy: DatasetCopy) -> None:
    commit_part(copy, FIRST, 1, "2026-11-15")
    commit_part(copy, SECOND, 2, "2026-11-16")
    assert not TouchedPartition.objects.exists()
    archive(copy, FIRST)
    archive(copy, SECOND)
    commit_part(copy, THIRD, 3, "2026-11-16", is_last=True)
    assert days_touched() == {given.day("2026-11-15").start: 2, given.day("2026-11-16").start: 4}
    assert Commit.objects.get(instant=THIRD).touched_count == 2
    assert not Commit.objects.filter(touched_of_part__isnull=False).exists()


def test_a_load_that_was_given_up_is_no_part_of_the_next(copy: DatasetCopy) -> None:
    commit_part(copy, FIRST, 1, "2026-11-14")
    archive(copy, FIRST)  # with the table that was dropped
    commit_part(copy, SECOND, 1, "2026-11-15")
    commit_part(copy, THIRD, 2, "2026-11-16", is_last=True)
    assert days_touched() == {given.day("2026-11-15").start: 2, given.day("2026-11-16").start: 2}


def test_a_load_in_one_commit_ends_what_was_given_up(copy: DatasetCopy) -> None:
    commit_part(copy, FIRST, 1, "2026-11-14")
    archive(copy, FIRST)
    commit_part(copy, SECOND, 1, "2026-11-15", is_last=True)
    assert days_touched() == {given.day("2026-11-15").start: 2}
    assert not Commit.objects.filter(touched_of_part__isnull=False).exists()


def test_a_part_that_is_taken_in_twice_forgets_nothing(copy: DatasetCopy) -> None:
    """Two processes look at a timeline at once."""
    commit_part(copy, FIRST, 1, "2026-11-14")
    (first,) = commits.Timeline(copy.uri).commits()
    commit_part(copy, SECOND, 2, "2026-11-15")
    assert commits.record_commit(copy, first, now=NOW) is None
    commit_part(copy, THIRD, 3, "2026-11-16", is_last=True)
    assert list(days_touched()) == [given.day(f"2026-11-{day}").start for day in (14, 15, 16)]
