"""Which files take the rows of a commit of many, and what the tasks that write them get."""

from __future__ import annotations

import random
from itertools import groupby, pairwise
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestion.spark.file_groups import BaseFile, FileGroup
from ingestion.spark.file_groups.many_rows.changed_keys import NEW
from ingestion.spark.file_groups.many_rows.stored_files import StoredFile, groups_for_new_rows, smallest_files
from ingestion.spark.file_groups.many_rows.tasks import (
    FILE_ID,
    PARTITION,
    PlannedRewrite,
    TableRewrite,
    groups_of,
    task_of,
)
from ingestion.spark.file_groups.rewriting import KEY, REMOVED
from tests.fuzz_seed import REPEAT, SEED

MIB = 2**20
INSTANT = "20261129120000000"


def stored(partition: str, file_id: str, size: int, rows: int = 100, bloom: str = "") -> StoredFile:
    file = BaseFile(FileGroup(partition, file_id), f"{file_id}_0_1.parquet", size)
    return StoredFile(file, rows, (bloom, "SIMPLE") if bloom else ())


def test_new_rows_go_to_the_smallest_file_of_their_partition_where_all_find_room() -> None:
    files = [
        stored("day=a", "one", 3 * MIB),
        stored("day=a", "two", 2 * MIB),
        stored("day=b", "three", MIB),
        stored("day=d", "four", MIB),
    ]
    new_rows = {"day=a": 10, "day=b": 10, "day=c": 10}
    smallest = {*smallest_files([each.file for each in files], new_rows).values()}
    chosen = [each for each in files if each.file in smallest]
    assert groups_for_new_rows(new_rows, chosen, largest=32 * MIB) == {
        "day=a": FileGroup("day=a", "two"),
        "day=b": FileGroup("day=b", "three"),
    }


@pytest.mark.parametrize(
    "full",
    [
        stored("day=a", "half", 16 * MIB),
        stored("day=a", "few rows of many bytes", MIB, rows=3),
        stored("day=a", "with a filter that other writers ask", MIB, bloom="x" * 100),
    ],
    ids=lambda each: each.file.group.file_id,
)
def test_a_file_without_room_takes_none(full: StoredFile) -> None:
    assert groups_for_new_rows({"day=a": 100}, [full], largest=32 * MIB) == {}


def test_rows_of_a_group_come_together_however_they_were_cut() -> None:
    randomly = random.Random(SEED)
    rows = sorted((randomly.choice("abc"), randomly.choice("xyz"), number) for number in range(200))
    cuts = [0, *sorted(randomly.sample(range(200), 12)), 200]
    batches = [
        pa.RecordBatch.from_pydict(
            dict(zip((PARTITION, FILE_ID, "n"), map(list, zip(*rows[a:b], strict=True)), strict=True))
        )
        for a, b in pairwise(cuts)
        if a < b
    ]
    empty = batches[0].slice(0, 0)
    met = [(group, table["n"].to_pylist()) for group, table in groups_of([empty, *batches])]
    expected = [(FileGroup(*place), [row[2] for row in some]) for place, some in groupby(rows, key=lambda row: row[:2])]
    assert met == expected, REPEAT
    assert [*groups_of([empty])] == []


def test_a_task_writes_its_files_and_tells_hudi_which_keys(tmp_path: Path) -> None:
    meta = ("_hoodie_commit_time", "_hoodie_commit_seqno", KEY, "_hoodie_partition_path", "_hoodie_file_name")
    (tmp_path / "day=a").mkdir()
    old = {name: ["1", "2"] if name == KEY else ["x", "x"] for name in meta} | {"fare": [1, 2]}
    pq.write_table(pa.table(old), tmp_path / "day=a" / "f_old.parquet")
    columns = pa.schema([("fare", pa.int64())])
    plan = PlannedRewrite(7, "f_old.parquet", "f_new.parquet")
    table = TableRewrite(
        tmp_path.as_uri(), (tmp_path / "scratch").as_uri(), INSTANT, columns, {FileGroup("day=a", "f"): plan}
    )
    rows = {
        PARTITION: ["day=a"] * 3,
        FILE_ID: ["f"] * 3,
        KEY: ["3", "2", "1"],
        NEW: [True, False, False],
        REMOVED: [False, False, True],
        "fare": [30, 20, None],
    }
    attempts = [next(iter(task_of(table)([pa.RecordBatch.from_pydict(rows)]))) for _ in range(2)]
    written, again = (batch.to_pylist()[0] for batch in attempts)
    assert (written["number"], written["rows"]) == (7, 2)
    assert {written["file"], written["changes"]}.isdisjoint({again["file"], again["changes"]}), (
        "each attempt has its own"
    )
    assert [path.name for path in (tmp_path / "day=a").iterdir()] == ["f_old.parquet"]
    file, changes = (Path(written[name].removeprefix("file://")) for name in ("file", "changes"))
    new = pq.ParquetFile(file).read().to_pylist()
    assert [(row[KEY], row["fare"], row["_hoodie_commit_time"]) for row in new] == [
        ("2", 20, INSTANT),
        ("3", 30, INSTANT),
    ]
    with changes.open("rb") as opened:
        told_keys = [*fastavro.reader(opened)]
    assert told_keys == [
        {"key": "3", "is_new": True, "is_removed": False},
        {"key": "2", "is_new": False, "is_removed": False},
        {"key": "1", "is_new": False, "is_removed": True},
    ]
