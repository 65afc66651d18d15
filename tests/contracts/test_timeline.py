"""The timeline of a table is listed at each look; a record that was read is kept."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import fastavro
import pytest

from ingestion.spark.tables import timeline
from ingestion.spark.tables.timeline import CommitArchived, Timeline

_STATS = {"type": "map", "values": {"type": "array", "items": "long"}}
_RECORD = {
    "type": "record",
    "name": "HoodieCommitMetadata",
    "fields": [
        {"name": "partitionToWriteStats", "type": _STATS},
        {"name": "extraMetadata", "type": {"type": "map", "values": "string"}},
        {"name": "operationType", "type": "string"},
    ],
}


class HandMadeTable:
    """A table of which only the timeline is there."""

    def __init__(self, folder: Path) -> None:
        self.uri, self.folder = folder.as_uri(), folder / ".hoodie" / "timeline"
        self.folder.mkdir(parents=True)

    def commit(self, number: int, *, checkpoint: Any = None, note: str = "") -> None:
        extra = {"note": note} | ({} if checkpoint is None else {"lakehub.checkpoint": json.dumps(checkpoint)})
        record = {"partitionToWriteStats": {}, "extraMetadata": extra, "operationType": "UPSERT"}
        with (self.folder / f"{20261116080000000 + number}_{20261116080000500 + number}.commit").open("wb") as file:
            fastavro.writer(file, _RECORD, [record])


@pytest.fixture
def table(tmp_path: Path) -> HandMadeTable:
    return HandMadeTable(tmp_path / "orders")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file was read."""
    counted, read = Counter[str](), Timeline._read_bytes

    def count(self: Timeline, name: str) -> bytes:
        counted[name.rpartition("/")[2]] += 1
        return read(self, name)

    monkeypatch.setattr(Timeline, "_read_bytes", count)
    return counted


def test_a_look_reads_only_what_is_new(table: HandMadeTable, reads: Counter[str]) -> None:
    for number in range(60):
        table.commit(number, checkpoint=number)
    assert Timeline(table.uri).commit_of_run("unknown") is None
    assert Timeline(table.uri).checkpoint() is not None
    assert (len(reads), reads.total()) == (60, 60)
    table.commit(60, checkpoint="new")
    checkpoint = Timeline(table.uri).checkpoint()
    assert checkpoint is not None
    assert (checkpoint.position, checkpoint.commits_since) == ("new", 0)
    assert (len(reads), reads.total()) == (61, 61)


def test_a_commit_that_is_archived_does_not_pass_for_one_without_files(
    table: HandMadeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.commit(1)
    instant = "20261116080000001"
    assert Timeline(table.uri).written_files(instant) == []
    with monkeypatch.context() as patched, pytest.raises(CommitArchived, match=instant):
        listed = Timeline(table.uri)._completed()
        patched.setattr(Timeline, "_completed", lambda _: listed)
        next(table.folder.iterdir()).unlink()
        Timeline(table.uri).written_files(instant)
    with pytest.raises(CommitArchived, match=instant):
        Timeline(table.uri).written_files(instant)


def test_a_table_that_was_made_anew_is_read_anew(table: HandMadeTable) -> None:
    table.commit(1, checkpoint="first")
    assert [commit.checkpoint for commit in Timeline(table.uri).commits()] == ["first"]
    table.commit(1, checkpoint="other")
    assert [commit.checkpoint for commit in Timeline(table.uri).commits()] == ["other"]


def test_a_commit_over_thousands_of_partitions_is_not_kept(table: HandMadeTable, reads: Counter[str]) -> None:
    table.commit(1, note="x" * timeline._MAX_BYTES_KEPT)
    for _ in range(2):
        Timeline(table.uri).commits()
    assert reads.total() == 2
