"""The timeline of a table is listed at each look; a record that was read is kept."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import fastavro
import pytest
from pyarrow import fs

from ingestion.domain.checkpoint import Checkpoint
from ingestion.domain.schema import Schema
from ingestion.spark.contract.spec import JobSpec, SourceSpec, TableSpec
from ingestion.spark.job import Job
from ingestion.spark.jobs import incremental
from ingestion.spark.loading import rereading
from ingestion.spark.tables import timeline, unfinished_writes
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

    def commit(self, number: int, *, checkpoint: Any = None, note: str = "", run: str = "") -> None:
        extra = {"note": note, "lakehub.run": json.dumps({"run_id": run, "kind": "incremental"})}
        extra |= {} if checkpoint is None else {"lakehub.checkpoint": json.dumps(checkpoint)}
        record = {"partitionToWriteStats": {}, "extraMetadata": extra, "operationType": "UPSERT"}
        with (self.folder / f"{20261116080000000 + number}_{20261116080000500 + number}.commit").open("wb") as file:
            fastavro.writer(file, _RECORD, [record])


@pytest.fixture
def table(tmp_path: Path) -> HandMadeTable:
    return HandMadeTable(tmp_path / "orders")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file was read."""
    counted, read = Counter[str](), Timeline.read_bytes

    def count(self: Timeline, name: str) -> bytes:
        counted[name.rpartition("/")[2]] += 1
        return read(self, name)

    monkeypatch.setattr(Timeline, "read_bytes", count)
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


def test_what_came_since_a_reading_began_is_read_and_nothing_else(table: HandMadeTable, reads: Counter[str]) -> None:
    """However many commits there are: a table that is followed has tens of thousands."""
    for number in range(60):
        table.commit(number, checkpoint=number)
    start = rereading.ReadingStart(Timeline(table.uri).latest_completion(), Schema(()), Checkpoint(59, "", 0))
    table.commit(60)
    table.commit(61)
    rereading.check_reading(start, Timeline(table.uri), {"day=1"}, position=None)
    assert Timeline(table.uri).commit_of_run("unknown", after=start.began) is None
    assert reads.total() == 3, "those two, and the one that carries the checkpoint"


def test_a_reading_that_is_older_than_the_timeline_is_known_without_a_commit_more(table: HandMadeTable) -> None:
    table.commit(7, checkpoint=7)
    start = rereading.ReadingStart("20261116080000506", Schema(()), Checkpoint(7, "", 0))
    with pytest.raises(rereading.ReadAgain, match="archived"):
        rereading.check_reading(start, Timeline(table.uri), {"day=1"}, position=None)


@pytest.mark.parametrize(("newest", "own_commits"), [("follow.b", ["follow.b"]), ("follow.c", [])])
def test_a_batch_looks_for_its_own_commit_where_the_checkpoint_is(
    table: HandMadeTable, reads: Counter[str], newest: str, own_commits: list[str]
) -> None:
    """Its id is given to one launch: where another run has moved the checkpoint it goes on from there, and nothing is lost."""
    for number in range(60):
        table.commit(number, checkpoint=number, run=f"other.{number}")
    table.commit(60, checkpoint=60, run=newest)
    table.commit(61, run="backfill")
    job = Job(_spec(table, run="follow.b", one_commit=True), cast(Any, SimpleNamespace()), {})
    own = job.own_commits(incremental._commits_to_search(job, Timeline(table.uri)))
    assert [commit.run["run_id"] for commit in own] == own_commits
    assert reads.total() == 2


def test_a_run_that_may_have_committed_before_looks_for_all_its_commits(table: HandMadeTable) -> None:
    for number, run in enumerate(("a", "a#2", "other", "other#2")):
        table.commit(number, checkpoint=number, run=run)
    job = Job(_spec(table, run="a", one_commit=False), cast(Any, SimpleNamespace()), {})
    own = job.own_commits(incremental._commits_to_search(job, Timeline(table.uri)))
    assert [commit.run["run_id"] for commit in own] == ["a", "a#2"]


def _spec(table: HandMadeTable, *, run: str, one_commit: bool) -> JobSpec:
    orders = TableSpec("orders", table.uri, f"{table.uri}_errors", ("id",))
    return JobSpec(run, "incremental", orders, SourceSpec("sql", "env:URL", "orders"), one_commit=one_commit)


def test_a_commit_that_is_archived_does_not_pass_for_one_without_files(table: HandMadeTable) -> None:
    table.commit(1)
    (file,) = Timeline(table.uri).completed()
    assert Timeline(table.uri).written_files(file) == []
    next(table.folder.iterdir()).unlink()
    with pytest.raises(CommitArchived, match="20261116080000001"):
        Timeline(table.uri).written_files(file)


def test_a_listing_of_local_files_asks_for_names_only(table: HandMadeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made some ten times for a batch, of up to a hundred thousand files."""
    table.commit(1, checkpoint="first")
    monkeypatch.setattr(fs, "FileSelector", lambda *_, **__: pytest.fail("it asks for sizes"))
    assert [file.version for file in Timeline(table.uri).completed()] == [None]
    assert Timeline(f"{table.uri}/nothing").completed() == []
    assert Timeline(table.uri).latest_completion() == "20261116080000501"


def test_of_an_object_store_sizes_come_with_the_listing(
    table: HandMadeTable, reads: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There each question is a request."""
    lake = fs.SubTreeFileSystem(str(table.folder.parent.parent), fs.LocalFileSystem())
    monkeypatch.setattr(timeline, "open_storage", lambda _: (lake, ""))
    monkeypatch.setattr(timeline, "_version_of", lambda _: pytest.fail("it asks for one file"))
    for checkpoint, reads_until_then in (("first", 1), ("another", 2)):
        table.commit(1, checkpoint=checkpoint)
        for _ in range(2):
            assert [commit.checkpoint for commit in Timeline("s3://lake/orders").commits()] == [checkpoint]
            assert reads.total() == reads_until_then


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


def test_a_name_with_digits_of_other_scripts_is_no_instant(table: HandMadeTable) -> None:
    """It would be later than all others: each write takes a time behind the latest."""
    table.commit(0)
    for name in (
        "２０２６１１１６０８００００９００_２０２６１１１６０８００００９５０.commit",
        "２０２６１１１６０８０００１０００.inflight",
    ):
        (table.folder / name).write_bytes(b"")
    made_by_hand = Timeline(table.uri)
    assert (made_by_hand.latest_completion(), made_by_hand.latest_time()) == ("20261116080000500",) * 2
    assert unfinished_writes.pending_writes(made_by_hand) == {}
