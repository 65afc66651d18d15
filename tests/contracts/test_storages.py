"""Every storage says the same of the same table."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehub.catalog.metadata import ColumnType, KeyEvidence, MetadataUnavailable, NoSuchTable
from lakehub.catalog.storages import STORAGES, Storage

ROWS = [
    {"tailnum": "N1", "seats": 55, "speed": 1.5},
    {"tailnum": "N2", "seats": 149, "speed": 2.5},
    {"tailnum": "N2", "seats": 182, "speed": 3.5},
    {"tailnum": None, "seats": 2, "speed": 4.5},
]


def sql(folder: Path) -> tuple[str, str, str]:
    with sqlite3.connect(folder / "ops.db") as db:
        db.execute("CREATE TABLE planes (tailnum TEXT, seats INTEGER, speed REAL)")
        db.executemany("INSERT INTO planes VALUES (:tailnum, :seats, :speed)", ROWS)
    return "sql", f"sqlite:///{folder / 'ops.db'}", "planes"


def csv_files(folder: Path) -> tuple[str, str, str]:
    for at, part in enumerate((ROWS[:2], ROWS[2:])):
        with (folder / f"{at}.csv").open("w", newline="") as out:
            writer = csv.DictWriter(out, list(ROWS[0]))
            writer.writeheader()
            writer.writerows(part)
    return "files", folder.as_uri(), "*.csv"


def json_lines(folder: Path) -> tuple[str, str, str]:
    (folder / "planes.jsonl").write_text("\n".join(json.dumps(row) for row in ROWS))
    return "files", folder.as_uri(), "*.jsonl"


def parquet(folder: Path) -> tuple[str, str, str]:
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "planes.parquet")
    return "files", folder.as_uri(), "*.parquet"


def avro(folder: Path) -> tuple[str, str, str]:
    kinds = {"tailnum": ["null", "string"], "seats": "long", "speed": "double"}
    fields = [{"name": name, "type": kind} for name, kind in kinds.items()]
    with (folder / "planes.avro").open("wb") as out:
        fastavro.writer(out, {"type": "record", "name": "plane", "fields": fields}, ROWS)
    return "files", folder.as_uri(), "*.avro"


@pytest.fixture(params=[sql, csv_files, json_lines, parquet, avro], ids=lambda made: made.__name__)
def at(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Storage, str]:
    make: Callable[[Path], tuple[str, str, str]] = request.param
    plugin, url, table = make(tmp_path)
    return STORAGES.get(plugin)(url), table


def test_columns_and_their_types(at: tuple[Storage, str]) -> None:
    storage, table = at
    types = {column.name: column.type for column in storage.describe(table).columns}
    assert types == {"tailnum": ColumnType.STRING, "seats": ColumnType.INTEGER, "speed": ColumnType.FLOAT}


def test_the_table_is_listed(at: tuple[Storage, str]) -> None:
    storage, table = at
    assert list(storage.tables(10)) == [table]
    assert list(storage.tables(0)) == []


def test_evidence_counts_rows_values_and_nulls(at: tuple[Storage, str]) -> None:
    storage, table = at
    assert storage.key_evidence(table, ["tailnum"]) == KeyEvidence(rows=4, distinct=2, nulls=1)
    assert storage.key_evidence(table, ["tailnum", "seats"]) == KeyEvidence(rows=4, distinct=3, nulls=1)


def test_a_table_that_is_not_there_is_named(at: tuple[Storage, str]) -> None:
    storage, _ = at
    with pytest.raises(NoSuchTable, match="boats"):
        storage.describe("boats*")


@pytest.mark.parametrize(
    ("plugin", "url", "table"),
    [
        ("sql", "sqlite:////nowhere/ops.db", "planes"),
        ("files", "file:///nowhere", "*.csv"),
        ("hudi", "file:///nowhere", "flights"),
    ],
)
def test_a_storage_out_of_reach_does_not_say_that_a_table_is_gone(plugin: str, url: str, table: str) -> None:
    with pytest.raises(MetadataUnavailable) as caught:
        STORAGES.get(plugin)(url).describe(table)
    assert not isinstance(caught.value, NoSuchTable)


def test_a_glob_cannot_leave_its_folder(tmp_path: Path) -> None:
    with pytest.raises(MetadataUnavailable, match="leaves the folder"):
        STORAGES.get("files")(tmp_path.as_uri()).describe("../*.csv")


def test_a_folder_that_is_not_a_hudi_table_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "flights").mkdir()
    with pytest.raises(NoSuchTable, match="flights is not a Hudi table"):
        STORAGES.get("hudi")(tmp_path.as_uri()).describe("flights")
