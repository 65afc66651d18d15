"""A source that has each key several times, older and newer, is loaded as if its rows had come one by one."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ingestion.domain.accounting import RowCounts
from ingestion.spark.contract.spec import SourceSpec
from ingestion.spark.indexes import INDEXES
from tests.fuzz_seed import REPEAT, SEED
from tests.polling import scaled
from tests.spark.job_processes import start
from tests.spark.order_shop import SECRET, Orders

HISTORIES, LONGEST = 20, 8
COLUMNS = pa.schema([("id", pa.string()), ("day", pa.string()), ("amount", pa.float64()), ("version", pa.int64())])
HEAP_MB, RESERVED_MB, FRACTION = 640, 300, 0.05
"""Spark keeps the reserve for itself, and gives its tasks the fraction of what is left."""
WITHIN_S = 120


class Update(NamedTuple):
    """`version`: the reference key; a row in which it is null is an error."""

    id: str
    day: str
    amount: float
    version: int | None


class Inbox(Orders):
    """Files of rows. The key is `id` alone, so a row may move between days."""

    def __init__(self, folder: Path, *, index: str = "simple") -> None:
        super().__init__(folder, index=index)
        self.table = replace(self.table, record_key=("id",), reference_key="version")
        self.source = SourceSpec("files", f"env:{SECRET}", "*.parquet")
        self.inbox = folder / "inbox"
        self.inbox.mkdir()

    @property
    def secrets(self) -> dict[str, str]:
        return {SECRET: self.inbox.as_uri()}

    def put(self, number: int, rows: pa.Table) -> None:
        """Files are read in the order of their times."""
        file = self.inbox / f"{number:04}.parquet"
        pq.write_table(rows, file)
        os.utime(file, (1_000_000_000 + number,) * 2)


def histories() -> list[list[Update]]:
    """Each of keys of its own: several versions, in any order, some twice, in any of three days."""
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    return [
        [
            Update(
                f"{history}{chance.choice('abc')}",
                f"2026-11-{chance.randrange(1, 4):02}",
                float(chance.randrange(2)),
                chance.choice([None, 0, 1, 1, 2, 3]),
            )
            for _ in range(chance.randrange(1, LONGEST + 1))
        ]
        for history in range(HISTORIES)
    ]


def after(updates: Sequence[Update]) -> list[tuple[Any, ...]]:
    """What is left of them, one by one: the greater version stands, and of equals the later."""
    rows: dict[str, Update] = {}
    for update in updates:
        stored = rows.get(update.id)
        if update.version is not None and (stored is None or update.version >= (stored.version or 0)):
            rows[update.id] = update
    return sorted((tuple(row) for row in rows.values()), key=str)


def steps(all_updates: Sequence[Sequence[Update]]) -> list[list[Update]]:
    """The first update of each history, then the second of each, and so on: as their keys differ, they do not meet."""
    return [[updates[at] for updates in all_updates if at < len(updates)] for at in range(LONGEST)]


def table_of(updates: Sequence[Update]) -> pa.Table:
    return pa.Table.from_pylist([update._asdict() for update in updates], COLUMNS)


def is_accounted(counts: RowCounts, updates: Sequence[Update]) -> bool:
    nulls = sum(update.version is None for update in updates)
    return counts.is_balanced and (counts.read, counts.errors) == (len(updates), nulls) and counts.superseded > 0


@pytest.mark.parametrize("index", list(INDEXES))
def test_a_load_in_one_commit_leaves_the_newest_of_each_key(spark: SparkSession, tmp_path: Path, index: str) -> None:
    shop, updates = Inbox(tmp_path, index=index), steps(histories())
    for number, step in enumerate(updates):
        shop.put(number, table_of(step))
    in_order = [update for step in updates for update in step]
    report = shop.run(spark, "bootstrap", "b")
    assert report.error is None
    assert shop.rows(spark, *COLUMNS.names) == after(in_order), REPEAT
    assert is_accounted(report.counts, in_order)
    assert (report.counts.applied, report.written.inserts) == (len(after(in_order)),) * 2
    verified = shop.run(spark, "verify_index", "v", source=None).output
    assert (verified["rows"], {*verified["problems"].values()}) == (len(after(in_order)), {0})
    shop.put(LONGEST, table_of([Update("0a", "2026-11-09", 5.0, 9), Update("new", "2026-11-09", 5.0, 9)]))
    assert shop.run(spark, "incremental", "i").error is None
    newest = {*in_order, Update("0a", "2026-11-09", 5.0, 9), Update("new", "2026-11-09", 5.0, 9)}
    assert shop.rows(spark, *COLUMNS.names) == after(sorted(newest, key=in_order_of(in_order))), REPEAT


def in_order_of(updates: Sequence[Update]) -> Any:
    places: Mapping[Update, int] = {update: place for place, update in enumerate(updates)}
    return lambda update: places.get(update, len(updates))


def test_updates_one_by_one_leave_the_same(spark: SparkSession, tmp_path: Path) -> None:
    shop, updates = Inbox(tmp_path, index="memory"), steps(histories())
    for number, step in enumerate(updates):
        shop.put(number, table_of(step))
        assert shop.run(spark, "incremental" if number else "bootstrap", f"r{number}").error is None
    assert shop.rows(spark, *COLUMNS.names) == after([update for step in updates for update in step]), REPEAT


def test_a_load_in_several_commits_has_each_key_in_one_of_them(spark: SparkSession, tmp_path: Path) -> None:
    """A range ends behind all rows of its last key."""
    shop, in_order = Orders(tmp_path), [update for step in steps(histories()) for update in step]
    shop.table = replace(shop.table, record_key=("id",), reference_key="version")
    shop.source = replace(shop.source, cursor_column=None, commit_rows=9, chunk_rows=4)
    shop.sql("drop table orders")
    shop.sql("create table orders(id text, day text, amount real, version integer)")
    shop.add(*in_order)
    report = shop.run(spark, "bootstrap", "b")
    assert report.error is None
    assert len(shop.timeline.commits()) > 3
    assert shop.rows(spark, *COLUMNS.names) == after(in_order), REPEAT
    assert is_accounted(report.counts, in_order)


def test_ten_times_the_memory_is_loaded_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a job in a process of its own, whose tasks have 17 MB for all that they sort and group."""
    memory, each = int((HEAP_MB - RESERVED_MB) * FRACTION * 2**20), 4096
    rows = 10 * memory // each
    shop, events = Inbox(tmp_path), tmp_path / "events"
    events.mkdir()
    for number, version in enumerate((2, 1)):
        shop.put(number, _large_rows(rows // 2, each, version))
    (tmp_path / "spark-defaults.conf").write_text(
        # One task at a time: where two ask for the last of so little at once, Spark ends the JVM.
        f"spark.memory.fraction {FRACTION}\nspark.task.cpus 2\nspark.eventLog.enabled true\nspark.eventLog.dir {events.as_uri()}\n"
    )
    for name, value in {"SPARK_CONF_DIR": str(tmp_path), "LAKEHUB_SPARK_MEMORY": f"{HEAP_MB}m"}.items():
        monkeypatch.setenv(name, value)
    assert start(shop, "bootstrap", "b").wait(scaled(WITHIN_S)) == 0, (tmp_path / "b.log").read_text()[-3000:]
    report = json.loads((tmp_path / "b.report.json").read_text())
    assert report["counts"] == RowCounts(rows // 2 * 2, rows // 2, superseded=rows // 2).__dict__
    assert _spilled_bytes(events) > 10 * memory, "It had room for its rows."


def _large_rows(rows: int, size: int, version: int) -> pa.Table:
    """Whose texts do not get smaller. The first versions lie in other days, and half of them are of one key."""
    chance = random.Random(version)
    keys = [0 if version == 1 and number % 2 else number for number in range(rows)]
    columns: dict[str, Any] = {"id": [f"{key}" for key in keys]}
    columns |= {"day": [f"2026-11-{number % 3 + version:02}" for number in range(rows)], "version": [version] * rows}
    return pa.table({**columns, "text": [chance.randbytes(size // 2).hex() for _ in range(rows)]})


def _spilled_bytes(events: Path) -> int:
    """By the metrics of all tasks that Spark has logged."""
    logged = (json.loads(line) for file in events.glob("*") for line in file.read_text().splitlines())
    return sum(event.get("Task Metrics", {}).get("Disk Bytes Spilled", 0) for event in logged)
