"""A small shop in SQLite, its table in a lake, and the jobs between them."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pyspark.sql import SparkSession

from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import GlobalIndexSpec, JobSpec, SourceSpec, TableSpec
from ingestion.spark.execute import execute
from ingestion.spark.tables.timeline import Timeline
from tests.conftest import require
from tests.requirements import Service

SECRET = "SHOP_URL"
Row = tuple[Any, ...]


class Orders:
    """orders(id, day, amount, updated_at): the key is (id, day), a partition is a day."""

    def __init__(self, folder: Path, *, index: str = "simple") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.database = folder / "shop.db"
        self.table = TableSpec(
            name="orders",
            uri=(folder / "lake" / "orders").as_uri(),
            error_uri=(folder / "lake" / "_errors" / "orders").as_uri(),
            record_key=("id", "day"),
            reference_key="updated_at",
            partition_column="day",
            index=index,
            global_index=global_index_of(folder) if index == "hbase" else None,
        )
        self.source = SourceSpec(plugin="sql", url_ref=f"env:{SECRET}", object="orders", cursor_column="updated_at")
        if not self.database.exists():
            self.sql("create table orders(id integer, day text, amount real, updated_at timestamp)")

    @property
    def secrets(self) -> dict[str, str]:
        return {SECRET: f"sqlite:///{self.database}"}

    @property
    def timeline(self) -> Timeline:
        return Timeline(self.table.uri)

    def sql(self, statement: str, rows: Iterable[Sequence[Any]] = ()) -> None:
        with sqlite3.connect(self.database) as connection:
            connection.executemany(statement, rows) if rows else connection.execute(statement)
        connection.close()

    def add(self, *rows: Row) -> None:
        self.sql(f"insert into orders values ({', '.join('?' * len(rows[0]))})", rows)

    def fill(self, count: int, *, days: int = 3, at: str = "2026-11-16 08:00:00") -> None:
        self.add(*((number, f"2026-11-{number % days + 1:02}", float(number), at) for number in range(count)))

    def change(self, number: int, amount: object, at: str) -> None:
        self.sql("update orders set amount = ?, updated_at = ? where id = ?", [(amount, at, number)])

    def spec(self, kind: str, run: str, **fields: Any) -> JobSpec:
        fields = {"source": self.source, "table": self.table, "lock_wait_s": 30.0, **fields}
        return JobSpec(run_id=run, kind=kind, **fields)

    def run(self, spark: SparkSession, kind: str, run: str, **fields: Any) -> JobReport:
        return execute(self.spec(kind, run, **fields), spark=spark, secrets=self.secrets)

    def rows(self, spark: SparkSession, *columns: str) -> list[Row]:
        """What the table holds, in order."""
        wanted = columns or ("id", "day", "amount")
        return sorted((tuple(row) for row in read(spark, self.table.uri).select(*wanted).collect()), key=str)

    def source_rows(self) -> list[Row]:
        with sqlite3.connect(self.database) as connection:
            stored_rows = connection.execute("select id, day, amount from orders").fetchall()
        connection.close()
        return sorted(stored_rows, key=str)

    def errors(self, spark: SparkSession) -> list[Row]:
        """(column, reason) of each rejected row, whatever was appended for it how often."""
        error_rows = read(spark, self.table.error_uri).select("error_key", "column", "reason").distinct().collect()
        return sorted((row["column"], row["reason"]) for row in error_rows)


def global_index_of(folder: Path) -> GlobalIndexSpec:
    """A table of its own in the HBase of the tests, whose region servers read files of this machine."""
    url = urlsplit(require(Service.HBASE))
    quorum = parse_qs(url.query)["quorum"][0]
    name = f"lakehub_test_{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
    return GlobalIndexSpec(thrift=url.netloc, quorum=quorum, staging_uri=(folder / "staging").as_uri(), table=name)


def read(spark: SparkSession, uri: str) -> Any:
    return spark.read.format("hudi").load(uri)


def changed_rows(spark: SparkSession, uri: str, after: str) -> list[tuple[str, dict[str, Any]]]:
    """What a reader of increments is told of what was completed after an instant: the operation, and the row, of a removed one as it was."""
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": after,
    }
    rows = spark.read.format("hudi").options(**options).load(uri).collect()
    return [(row["op"], json.loads(row["before"] if row["op"] == "d" else row["after"])) for row in rows]


def loaded_by_id(spark: SparkSession, folder: Path, index: str, *, days: int = 3) -> Orders:
    """Thirty orders, whose key does not say their day."""
    shop = Orders(folder, index=index)
    shop.table = replace(shop.table, record_key=("id",))
    shop.fill(30, days=days)
    assert shop.run(spark, "bootstrap", "b").error is None
    return shop
