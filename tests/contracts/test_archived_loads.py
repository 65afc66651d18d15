"""A load of so many commits that the archive has taken the first ones, and its next attempt. Only Hudi's writing is left out: the timeline is a real one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError

from ingestion.domain.checkpoint import UnfinishedSnapshot
from ingestion.domain.schema import Schema, SchemaEvolution
from ingestion.spark.job import Job
from ingestion.spark.jobs import bootstrap, incremental
from ingestion.spark.loading import write_path
from ingestion.spark.loading.committing import CommitPlan
from ingestion.spark.loading.staging import StagedBatch
from ingestion.spark.tables import hudi
from tests.spark.order_shop import Orders

ROWS, COMMITS, KEPT = 110, 100, 60
_RECORD = {
    "type": "record",
    "name": "HoodieCommitMetadata",
    "fields": [
        {"name": "extraMetadata", "type": {"type": "map", "values": "string"}},
        {"name": "operationType", "type": "string"},
    ],
}


class FailedWrite(Py4JJavaError):
    """What the bridge to Java raises, without a bridge."""

    def __init__(self) -> None:
        self.java_exception = "java.io.IOException: No space left on device"

    def __str__(self) -> str:
        return str(self.java_exception)


class LongLoad:
    """Of one row a commit, by the runs that `run_of` names for the number of a commit; the last commits are on the timeline."""

    def __init__(self, folder: Path, run_of: Callable[[int], str] = lambda _: "b") -> None:
        self.orders = Orders(folder)
        self.orders.fill(ROWS)
        self.orders.source = replace(self.orders.source, commit_rows=1)
        self._table = folder / "lake" / "orders" / ".hoodie"
        (self._table / "timeline").mkdir(parents=True)
        (self._table / "hoodie.properties").write_text(
            "hoodie.table.version=9\nhoodie.table.recordkey.fields=id,day\nhoodie.table.partition.fields=day\n"
        )
        for number in range(COMMITS - KEPT + 1, COMMITS + 1):
            self.write(f"{run_of(number)}#{number}", number, _position_after(number))

    def write(self, commit_id: str, number: int, position: Any, kind: str = "bootstrap") -> None:
        run = {"run_id": commit_id, "kind": kind, "counts": {"read": 1, "applied": 1}, "schema": {}}
        extra = {"lakehub.run": json.dumps(run | {"source_committed_from": None, "source_committed_upto": None})}
        instant = 20261116000000000 + number * 10
        with (self._table / "timeline" / f"{instant}_{instant + 1}.commit").open("wb") as file:
            extra["lakehub.checkpoint"] = json.dumps(position)
            fastavro.writer(file, _RECORD, [{"extraMetadata": extra, "operationType": "BULK_INSERT"}])

    def job(self, kind: str, run: str) -> Job:
        job = Job(self.orders.spec(kind, run), SimpleNamespace(), self.orders.secrets)  # type: ignore[arg-type]
        job.may_write = True
        return job


def _position_after(number: int) -> Any:
    key = [{"type": "int", "value": str(number - 1)}, {"type": "str", "value": f"2026-11-{(number - 1) % 3 + 1:02}"}]
    changes = {"watermark": None, "seen": []}
    after = {"after": key, "changes": changes, "unusable": {"rows": 0, "sample": []}}
    return UnfinishedSnapshot(after, rows=number, total=ROWS, commits=number).position


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Sequence[int]]]:
    """(id of the commit, ids of its rows), of all that were tried. Each of them fails."""
    tried: list[tuple[str, Sequence[int]]] = []

    def fail(job: Job, batch: StagedBatch, plan: CommitPlan) -> None:
        tried.append((job.spec.run_id, pq.read_table(batch.rows_uri.removeprefix("file://"))["id"].to_pylist()))
        raise FailedWrite

    types = {"id": "long", "day": "string", "amount": "double", "updated_at": "timestamp"}
    monkeypatch.setattr(hudi, "stored_schema", lambda *_: Schema.of(types))
    monkeypatch.setattr(write_path, "commit_once", fail)
    return tried


def test_a_load_whose_first_commits_are_archived_gives_no_number_again(
    tmp_path: Path, writes: list[tuple[str, Sequence[int]]]
) -> None:
    """Else a write that failed would pass for the commit that had the number, and its range of keys would be lost."""
    load = LongLoad(tmp_path)
    with pytest.raises(FailedWrite):
        bootstrap.run(load.job("bootstrap", "b"))
    assert writes == [("b#101", [100])]


@pytest.mark.parametrize("run", ["b", "another"])
def test_a_load_that_other_runs_have_worked_on_counts_their_commits(
    tmp_path: Path, writes: list[tuple[str, Sequence[int]]], run: str
) -> None:
    """Those of the run's own may all be archived."""
    load = LongLoad(tmp_path, lambda number: "b" if number <= COMMITS - KEPT else "c")
    with pytest.raises(FailedWrite):
        bootstrap.run(load.job("bootstrap", run))
    assert writes == [(f"{run}#101", [100])]


def test_a_commit_from_before_the_write_is_not_what_was_written(
    tmp_path: Path, writes: list[tuple[str, Sequence[int]]]
) -> None:
    job = LongLoad(tmp_path).job("bootstrap", "b#77")
    batch = StagedBatch(tmp_path.as_uri(), Schema(()))
    (tmp_path / "rows").mkdir()
    pq.write_table(pa.table({"id": [7]}), tmp_path / "rows" / "0.parquet")
    with pytest.raises(FailedWrite):
        write_path.commit_batch(job, batch, CommitPlan("bulk_insert", SchemaEvolution(Schema(())), False, None))
    assert writes == [("b#77", [7])]


def test_an_incremental_whose_first_commit_is_archived_has_committed(
    tmp_path: Path, writes: list[tuple[str, Sequence[int]]]
) -> None:
    """It gives no number again, and the run that follows reads on."""
    load = LongLoad(tmp_path)
    load.write("i#2", 101, {"watermark": None, "seen": []}, "incremental")
    load.write("i#3", 102, {"watermark": None, "seen": []}, "incremental")
    report = incremental.run(load.job("incremental", "i"))
    assert (report.counts.read, report.has_more, writes) == (2, True, [])
