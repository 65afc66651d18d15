"""The rows that all contenders write: orders, by day."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

FIRST_DAY = date(2026, 1, 1)
LOADED_AT = datetime(2026, 7, 2, tzinfo=UTC)
COLUMNS = "id bigint, day string, customer string, amount double, note string, changed_at timestamp"
_CUSTOMERS = 5000


class Order(NamedTuple):
    id: int
    day: str
    customer: str
    amount: float
    note: str
    changed_at: datetime


def loaded(spark: SparkSession, rows: int, *, days: int) -> DataFrame:
    """All rows of a table of this size. An order's day follows from its id, so a changed one stays where it is."""
    day = f"date_format(date_add('{FIRST_DAY}', cast(id * {days} div {rows} as int)), 'yyyy-MM-dd') as day"
    customer = f"concat('customer ', cast(pmod(hash(id), {_CUSTOMERS}) as string)) as customer"
    amount = "cast(pmod(hash(id, 1), 100000) as double) / 100 as amount"
    note = "concat('order ', cast(id as string), ' ', substring(md5(cast(id as string)), 1, 20)) as note"
    changed_at = f"timestamp '{LOADED_AT:%Y-%m-%d %H:%M:%S}' as changed_at"
    return spark.range(rows).selectExpr("id", day, customer, amount, note, changed_at)


def changed(rows: int, count: int, *, days: int, spread: bool, number: int, last_days: int = 2) -> list[Order]:
    """`count` orders of a table of `rows`, changed for the `number`th time: anywhere, or in the last days."""
    randomly = random.Random(f"{rows}-{count}-{spread}-{number}")
    first = 0 if spread else rows - last_days * (rows // days)
    ids = sorted(randomly.sample(range(first, rows), min(count, rows - first)))
    at = LOADED_AT + timedelta(hours=number)
    return [
        Order(id_, f"{FIRST_DAY + timedelta(days=id_ * days // rows)}", "customer 1", number + 0.5, "changed", at)
        for id_ in ids
    ]


def to_shop(database: Path, orders: Sequence[Order]) -> None:
    """The source's table, with these orders and no others."""
    with sqlite3.connect(database) as connection:
        connection.execute("drop table if exists orders")
        connection.execute(
            "create table orders(id integer, day text, customer text, amount real, note text, changed_at timestamp)"
        )
        rows = [(*order[:-1], f"{order.changed_at:%Y-%m-%d %H:%M:%S}") for order in orders]
        connection.executemany("insert into orders values (?, ?, ?, ?, ?, ?)", rows)
    connection.close()


def to_parquet(file: Path, orders: Sequence[Order]) -> None:
    pq.write_table(pa.Table.from_pylist([order._asdict() for order in orders]), file, coerce_timestamps="us")


def of_parquet(spark: SparkSession, file: Path) -> DataFrame:
    return spark.read.schema(COLUMNS).parquet(str(file))
