"""The columns say the same of every event as the slow, obvious model."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from pyspark.sql import DataFrame, SparkSession

from ingestion.domain.accounting import Event, RowFate, fates_of
from ingestion.domain.schema import Schema
from ingestion.domain.write_races import WrittenSince
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.loading.row_fates import (
    FATE_COLUMN,
    applied_rows,
    assign_fates,
    count_fates,
    has_each_key_once,
    rows_as_in_table,
)
from ingestion.spark.loading.staging import SEQUENCE_COLUMN
from ingestion.spark.tables.hudi import META_COLUMNS

SCHEMA = Schema.of({"case": "long", "key": "string", "ref": "long", "value": "double", "note": "string"})
CASES, SEED = 400, 20261116
Row = tuple[int, str, int | None, float | None, str | None]


@pytest.mark.parametrize("since", [None, WrittenSince("15", frozenset({"12"}))])
@pytest.mark.parametrize("reference_key", ["ref", None])
def test_spark_judges_as_the_model_does(
    spark: SparkSession, reference_key: str | None, since: WrittenSince | None
) -> None:
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    stored = [row for case in range(CASES) for row in _stored(chance, case)]
    batch = [row for case in range(CASES) for row in _batch(chance, case)]
    table = TableSpec("t", "file:///t", "file:///e", ("case", "key"), reference_key)
    frame = spark.createDataFrame(
        [(*row, place) for place, row in enumerate(batch)], f"{_ddl()}, {SEQUENCE_COLUMN} long"
    )
    judged = assign_fates(frame, table, SCHEMA, _held(spark, stored), since)
    fates_on_spark = Counter((tuple(row[name] for name in SCHEMA.names), row[FATE_COLUMN]) for row in judged.collect())
    events = [_event(row, reference_key) for row in batch]
    written_since = {(row[0], row[1]) for row in stored if since and since.includes(_instant(row))}
    fates = fates_of(events, {(row[0], row[1]): _event(row, reference_key) for row in stored}, written_since)
    assert fates_on_spark == Counter(zip(batch, map(str, fates), strict=True))
    assert set(fates) == {RowFate.APPLIED, RowFate.SUPERSEDED, RowFate.REDELIVERED}
    assert count_fates(judged, table, read=len(batch), errors=0).counts.is_balanced


@pytest.mark.parametrize(
    ("keys", "are_once"),
    [
        ([("1", "a"), ("1", "b"), ("2", "a")], True),
        ([("1", "a"), ("2", "a"), ("1", "a")], False),
        # In the table's types, in which what is judged is compared.
        ([("1", "a"), ("01", "a")], False),
        ([("1", None), ("2", None)], True),
        ([("1", None), ("1", None)], False),
    ],
)
def test_keys_that_come_twice_are_seen(spark: SparkSession, keys: list[tuple[str, str | None]], are_once: bool) -> None:
    table = TableSpec("t", "file:///t", "file:///e", ("case", "key"))
    batch = spark.createDataFrame(keys, "case string, key string")
    assert has_each_key_once(batch, table, SCHEMA, len(keys)) is are_once
    distinct = len({*keys})
    assert not has_each_key_once(batch, table, SCHEMA, len(keys) + 1)
    assert distinct == len(keys) or not has_each_key_once(batch, table, SCHEMA, distinct)


def test_numbers_that_are_equal_are_one_key(spark: SparkSession) -> None:
    table = TableSpec("t", "file:///t", "file:///e", ("key",))
    batch = spark.createDataFrame([(0.0,), (-0.0,)], "key double")
    assert not has_each_key_once(batch, table, Schema.of({"key": "double"}), 2)


def test_rows_of_which_each_is_new_are_written_as_if_they_were_judged(spark: SparkSession) -> None:
    table = TableSpec("t", "file:///t", "file:///e", ("case", "key"))
    columns = f"case long, key string, ref long, {SEQUENCE_COLUMN} long"
    batch = spark.createDataFrame([(1, "a", 7, 0), (2, "a", None, 1)], columns)
    judged = applied_rows(assign_fates(batch, table, SCHEMA, None)).drop(*META_COLUMNS)
    written = rows_as_in_table(batch, SCHEMA)
    assert written.schema == judged.schema
    assert sorted(written.collect()) == sorted(judged.collect())


def _event(row: Row, reference_key: str | None) -> Event:
    return Event((row[0], row[1]), row[2] if reference_key else None, row)


def _stored(chance: random.Random, case: int) -> list[Row]:
    return [_row(chance, case, key) for key in "ab" if chance.random() < 0.6]


def _batch(chance: random.Random, case: int) -> list[Row]:
    return [_row(chance, case, chance.choice("abc")) for _ in range(chance.randrange(6))]


def _row(chance: random.Random, case: int, key: str) -> Row:
    return (case, key, chance.randrange(3), chance.choice([None, 1.0, 2.0]), chance.choice([None, "x"]))


def _held(spark: SparkSession, rows: Sequence[Row]) -> DataFrame:
    meta = ", ".join(f"{name} string" for name in META_COLUMNS)
    others = ["m"] * (len(META_COLUMNS) - 1)
    return spark.createDataFrame([(*row, _instant(row), *others) for row in rows], f"{_ddl()}, {meta}")


def _instant(row: Row) -> str:
    """Of the commit that wrote a stored row."""
    return ("10", "12", "14", "20")[row[0] % 4]


def _ddl() -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in SCHEMA.types.items())
