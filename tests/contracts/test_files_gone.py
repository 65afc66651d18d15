"""Files that leave the folder of a source, and those that come back: a position is not as long as the history, and nothing is read for nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.checkpoint import Position
from ingestion.sources import SourceConfig
from ingestion.sources.files.source import GONE_KEPT, FilesSource

NOW = datetime(2026, 11, 16, 8, tzinfo=UTC)
DAY = timedelta(days=1)


class Folder:
    """Files of one row each; `read` goes on from where it was, as a job does: a look that finds nothing leaves the position as it is."""

    def __init__(self, path: Path) -> None:
        self.path, self.now = path, NOW
        self.position: Position = {"files": {}, "schema": {}}

    def put(self, name: str, value: int = 0, *, mtime: int = 1000) -> None:
        (self.path / name).write_text(json.dumps({"id": value}) + "\n")
        os.utime(self.path / name, (mtime, mtime))

    def take(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def read(self) -> list[int]:
        source = FilesSource(SourceConfig(self.path.as_uri(), "*.jsonl"))
        reading = source.changes(json.loads(json.dumps(self.position)), upto=self.now)
        ids = [row for batch in reading.batches for row in batch.columns["id"]]
        if ids:
            self.position = reading.position()
        return ids

    def read_after(self, time: timedelta, new_file: str) -> list[int]:
        self.now += time
        self.put(new_file, 99)
        return [row for row in self.read() if row != 99]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.put("a.jsonl", 1)
    folder.put("b.jsonl", 2)
    assert folder.read() == [1, 2]
    return folder


def test_a_name_is_dropped_when_its_file_has_been_gone_for_long(folder: Folder) -> None:
    folder.take("a.jsonl")
    folder.read_after(DAY, "c.jsonl")
    assert folder.position["gone"] == {"a.jsonl": (NOW + DAY).isoformat()}
    folder.read_after(GONE_KEPT - DAY, "d.jsonl")
    assert set(folder.position["files"]) == {"a.jsonl", "b.jsonl", "c.jsonl", "d.jsonl"}
    folder.read_after(DAY, "e.jsonl")
    assert set(folder.position["files"]) == {"b.jsonl", "c.jsonl", "d.jsonl", "e.jsonl"}
    assert "gone" not in folder.position


def test_a_file_that_comes_back_as_it_was_is_not_read_again(folder: Folder) -> None:
    """As where a folder was not mounted for a while. Without a reference key its rows would take the place of newer ones."""
    folder.take("a.jsonl")
    folder.read_after(DAY, "c.jsonl")
    folder.put("a.jsonl", 1)
    assert folder.read_after(2 * GONE_KEPT, "d.jsonl") == []
    assert "gone" not in folder.position
    assert "a.jsonl" in folder.position["files"]


def test_a_file_that_comes_back_with_another_time_is_read(folder: Folder) -> None:
    folder.take("a.jsonl")
    folder.read_after(DAY, "c.jsonl")
    folder.put("a.jsonl", 3, mtime=2000)
    assert folder.read_after(DAY, "d.jsonl") == [3]


def test_a_file_that_comes_back_when_it_is_forgotten_is_read(folder: Folder) -> None:
    folder.take("a.jsonl")
    folder.read_after(DAY, "c.jsonl")
    folder.read_after(GONE_KEPT, "d.jsonl")
    folder.put("a.jsonl", 1)
    assert folder.read_after(DAY, "e.jsonl") == [1]


def test_without_a_time_no_name_is_dropped(folder: Folder) -> None:
    folder.take("a.jsonl")
    folder.read_after(DAY, "c.jsonl")
    source = FilesSource(SourceConfig(folder.path.as_uri(), "*.jsonl"))
    assert "a.jsonl" in source.changes(folder.position).position()["files"]


STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "take"]), st.sampled_from(["a.jsonl", "b.jsonl"]), st.integers(0, 20)),
    max_size=12,
)


@given(STEPS)
def test_each_content_that_is_there_when_it_is_read_comes(
    tmp_path_factory: pytest.TempPathFactory, steps: Sequence[tuple[str, str, int]]
) -> None:
    """Whatever is gone for however long: never is a file taken for one that was read while its content is another."""
    folder, last = Folder(tmp_path_factory.mktemp("files")), dict[str, int]()
    for number, (how, name, days) in enumerate(steps):
        folder.now += days * DAY
        if how == "put":
            folder.put(name, number, mtime=1000 + number)
        else:
            folder.take(name)
        there = {path.name: json.loads(path.read_text())["id"] for path in folder.path.iterdir()}
        assert set(folder.read()) == {value for file, value in there.items() if last.get(file) != value}
        last |= there
