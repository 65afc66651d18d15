"""The stored rows of a few keys: the right ones whatever the file looks like, and no more of it read than has to be."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestion.spark.file_groups import BaseFile, FileGroup
from ingestion.spark.file_groups import stored_rows as module
from ingestion.spark.file_groups.stored_rows import FILE_ID, INSTANT, KEY, LOCATION, PARTITION, read_stored_rows

COLUMNS = pa.schema([("id", pa.int64()), ("note", pa.string())])


def base_file(
    folder: Path, rows: pa.Table, *, partition: str = "day=1", group_rows: int = 2, **options: Any
) -> BaseFile:
    """A file as the table format writes it: its own columns first, rows in the order of their keys."""
    path = folder / partition / "f-0_0-0-0_20261116.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    keys = pa.array([str(value) for value in rows["id"].to_pylist()], pa.string())
    constants = {PARTITION: partition, INSTANT: "20261116"}
    meta = pa.table({KEY: keys} | {name: [value] * rows.num_rows for name, value in constants.items()})
    columns = {name: table[name] for table in (meta, rows) for name in table.column_names}
    pq.write_table(pa.table(columns), path, row_group_size=group_rows, **options)
    return BaseFile(FileGroup(partition, "f-0"), path.name, path.stat().st_size)


def numbered(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "note": [f"row {number}" for number in ids]})


def test_the_rows_of_the_keys_with_where_they_lie(tmp_path: Path) -> None:
    files = [base_file(tmp_path, numbered(1, 2, 3, 4)), base_file(tmp_path, numbered(5, 6), partition="day=2")]
    rows = read_stored_rows(tmp_path.as_uri(), files, ["6", "3", "9"], COLUMNS).to_pylist()
    assert rows == [
        {KEY: "3", PARTITION: "day=1", INSTANT: "20261116", FILE_ID: "f-0", "id": 3, "note": "row 3"},
        {KEY: "6", PARTITION: "day=2", INSTANT: "20261116", FILE_ID: "f-0", "id": 6, "note": "row 6"},
    ]


def test_no_file_and_no_key_are_no_rows_with_all_columns(tmp_path: Path) -> None:
    for rows in (
        read_stored_rows(tmp_path.as_uri(), [], ["1"], COLUMNS),
        read_stored_rows(tmp_path.as_uri(), [base_file(tmp_path, numbered(1))], [], COLUMNS),
    ):
        assert (rows.num_rows, rows.column_names) == (0, [*LOCATION.names, "id", "note"])


def test_a_partition_and_a_key_that_look_like_something_else(tmp_path: Path) -> None:
    partition = "day=50%41 ü,'x'"
    rows = pa.table({"id": ["a\nb", "%", "é", "z\u0001"], "note": ["1", "2", "3", "4"]})
    file = base_file(tmp_path, rows, partition=partition)
    columns = pa.schema([("id", pa.string()), ("note", pa.string())])
    stored = read_stored_rows(tmp_path.as_uri(), [file], ["a\nb", "é"], columns)
    assert stored["note"].to_pylist() == ["1", "3"]


def test_a_row_group_without_a_key_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, read = base_file(tmp_path, numbered(*range(100, 120))), []
    real = pq.ParquetFile

    class Watched(real):  # type: ignore[misc, valid-type]
        def read_row_group(self, group: int, columns: Any = None, **options: Any) -> pa.Table:
            read.append((group, len(columns)))
            return super().read_row_group(group, columns=columns, **options)

    monkeypatch.setattr(module.pq, "ParquetFile", Watched)
    assert read_stored_rows(tmp_path.as_uri(), [file], ["103", "1035"], COLUMNS)["id"].to_pylist() == [103]
    assert read == [(1, 1), (1, 5)]


def test_without_statistics_every_row_group_is_looked_at(tmp_path: Path) -> None:
    file = base_file(tmp_path, numbered(7, 3, 9, 1), write_statistics=False)
    assert read_stored_rows(tmp_path.as_uri(), [file], ["1", "9"], COLUMNS)["id"].to_pylist() == [9, 1]


def test_an_older_file_lacks_a_column_or_has_a_narrower_one(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([1], pa.int32()), "price": pa.array([Decimal("1.5")], pa.decimal128(5, 1))})
    columns = pa.schema([("id", pa.int64()), ("price", pa.decimal128(10, 2)), ("note", pa.string())])
    stored = read_stored_rows(tmp_path.as_uri(), [base_file(tmp_path, rows)], ["1"], columns)
    assert stored.drop_columns(LOCATION.names).to_pylist() == [{"id": 1, "price": Decimal("1.50"), "note": None}]


def test_a_timestamp_of_another_unit_is_the_same_instant(tmp_path: Path) -> None:
    at = datetime(1850, 1, 1, 12, 30, tzinfo=UTC)
    rows = pa.table({"id": pa.array([1], pa.int64()), "at": pa.array([at], pa.timestamp("ms", "UTC"))})
    columns = pa.schema([("at", pa.timestamp("us", "UTC"))])
    assert read_stored_rows(tmp_path.as_uri(), [base_file(tmp_path, rows)], ["1"], columns)["at"].to_pylist() == [at]


def test_a_column_that_cannot_become_the_tables_is_an_error_of_arrow(tmp_path: Path) -> None:
    columns = pa.schema([("note", pa.float64())])
    with pytest.raises(pa.ArrowInvalid):
        read_stored_rows(tmp_path.as_uri(), [base_file(tmp_path, numbered(1))], ["1"], columns)
