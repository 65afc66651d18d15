"""A timeline whose folder is as it was is not listed, and no commit is missed for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ingestion import tasks
from ingestion.lake.timeline_changes import SETTLED_AFTER_S, TAKEN_IN_AGAIN_AFTER_S, TimelineChanges
from ingestion.models import Commit
from ingestion.spark.tables.timeline import Timeline
from lakehub.catalog.models import DatasetCopy
from lakehub.catalog.storages import local_path
from tests.web.ingestion import hudi_timeline

FIRST, SECOND = "20261117100000000", "20261117110000000"


class Looks:
    """At the timelines of all copies, as the task makes them, each `after` so many seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at, self.listings, completed = 0.0, 0, Timeline.completed

        def count(timeline: Timeline) -> object:
            self.listings += 1
            return completed(timeline)

        monkeypatch.setattr(Timeline, "completed", count)
        monkeypatch.setattr(tasks, "_timeline_changes", TimelineChanges(lambda: self.at))

    def look(self, *, after: float = 10.0) -> int:
        """How often a timeline was listed."""
        self.at += after
        before = self.listings
        tasks.record_lake_commits()
        return self.listings - before


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    return Looks(monkeypatch)


def folder_of(copy: DatasetCopy) -> Path:
    return local_path(copy.uri) / ".hoodie" / "timeline"


def test_a_quiet_timeline_is_listed_twice_after_a_commit_and_then_no_more(copy: DatasetCopy, looks: Looks) -> None:
    hudi_timeline.commit(copy, FIRST, {})
    assert [looks.look() for _ in range(5)] == [1, 1, 0, 0, 0]
    hudi_timeline.commit(copy, SECOND, {})
    assert [looks.look() for _ in range(5)] == [1, 1, 0, 0, 0]
    assert Commit.objects.count() == 2


def test_a_commit_at_the_same_time_of_files_is_not_missed(copy: DatasetCopy, looks: Looks) -> None:
    """A file system of whole seconds, or of two: both changes have one time."""
    hudi_timeline.commit(copy, FIRST, {})
    changed = folder_of(copy).stat()
    looks.look()
    hudi_timeline.commit(copy, SECOND, {})
    os.utime(folder_of(copy), ns=(changed.st_atime_ns, changed.st_mtime_ns))
    assert looks.look(after=SETTLED_AFTER_S / 2) == 1
    assert Commit.objects.count() == 2
    assert [looks.look(after=SETTLED_AFTER_S / 2) for _ in range(2)] == [1, 0]


def test_what_could_not_be_taken_in_is_looked_at_again(copy: DatasetCopy, looks: Looks) -> None:
    """A record that is still being written: the folder has its name already, and does not change any more."""
    hudi_timeline.commit(copy, FIRST, {})
    (record,) = folder_of(copy).iterdir()
    whole = record.read_bytes()
    record.write_bytes(b"")
    for _ in range(3):
        looks.look()
    record.write_bytes(whole)
    looks.look()
    assert Commit.objects.count() == 1


def test_a_timeline_is_listed_once_an_hour_whatever_its_folder_says(copy: DatasetCopy, looks: Looks) -> None:
    hudi_timeline.commit(copy, FIRST, {})
    assert [looks.look(), looks.look(), looks.look()] == [1, 1, 0]
    assert [looks.look(after=TAKEN_IN_AGAIN_AFTER_S), looks.look()] == [1, 0]


def test_a_lake_that_is_not_on_files_is_listed_each_time(copy: DatasetCopy) -> None:
    copy.uri = "s3://lake/flights"
    changes, calls = TimelineChanges(lambda: 0.0), list[int]()
    for _ in range(3):
        changes.take_in(copy, lambda: calls.append(1))
    assert len(calls) == 3
