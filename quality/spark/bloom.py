"""Bloom filters in Spark, by the expressions that Spark has itself: built and probed inside the JVM, no row comes to Python.

The bits are those of `quality.domain.bloom`, layout `spark-v1`: a filter built here is probed there and the other way round.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from lakehub.kernel.suggest import did_you_mean
from quality.domain.bloom import MOST_BITS, SPARK, Bloom, Shape, read, written
from quality.domain.bloom_keys import NULL, NoKey, below, salt_of

MOST_NAMED = 100
"""So many missing keys are named."""
_CATALYST = "org.apache.spark.sql.catalyst.expressions"
_MOST = {
    "spark.sql.optimizer.runtime.bloomFilter.maxNumBits": MOST_BITS,
    "spark.sql.optimizer.runtime.bloomFilter.maxNumItems": 2**40,
}
"""Spark cuts filters down to 8 MiB unless told otherwise."""


class UnknownColumn(LookupError):
    """The key names a column that the table lacks."""


def key_of(frame: DataFrame, columns: Sequence[str]) -> Column:
    """The key of each row as `quality.domain.bloom_keys` writes it. Raises NoKey, UnknownColumn."""
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    for name in columns:
        if name not in kinds:
            raise UnknownColumn(f"There is no column `{name}`.{did_you_mean(name, kinds)}")
    return key_text([(name, F.col(f"`{name.replace('`', '``')}`"), kinds[name]) for name in columns])


def key_text(parts: Sequence[tuple[str, Column, DataType]]) -> Column:
    """The same of columns with their names and types."""
    return F.concat(*(_part(name, column, kind) for name, column, kind in parts))


def _part(name: str, column: Column, kind: DataType) -> Column:
    text = _written(name, column, kind)
    return F.when(column.isNull(), NULL).otherwise(
        F.concat(F.octet_length(text).cast("string"), F.lit(":"), text, F.lit(","))
    )


def _written(name: str, column: Column, kind: DataType) -> Column:
    match kind:
        case StringType():
            return column
        case BooleanType() | IntegralType() | DateType():
            return column.cast("string")
        case TimestampType() | TimestampNTZType():
            return F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")
        case DecimalType():
            # A cast to text would write the smallest ones with an exponent.
            digits = F.replace(F.format_number(column, kind.scale), F.lit(","), F.lit(""))
            return F.regexp_replace(digits, r"\.?0+$", "") if kind.scale else digits
        case BinaryType():
            return F.lower(F.hex(column))
        case _:
            raise NoKey(name, kind.simpleString())


def in_sample(hashed: Column, share: float) -> Column:
    """Whether a hash belongs to a sample of `share`, as `bloom_keys.chosen` says."""
    return F.lit(True) if share >= 1 else F.shiftrightunsigned(hashed, 32) < F.lit(below(share))


def bits_of(spark: SparkSession, hashed: Column, shape: Shape) -> Column:
    """The aggregate: the serialised filter of these hashes; null of no rows."""
    for name, most in _MOST.items():
        spark.conf.set(name, str(most))
    made = _java(spark).aggregate.BloomFilterAggregate(
        _expression(hashed),
        _expression(F.lit(_items_of(shape)).cast("long")),
        _expression(F.lit(shape.bits).cast("long")),
        0,
        0,
    )
    return _column(spark, made.toAggregateExpression())


def _items_of(shape: Shape) -> int:
    """The number of keys that Spark has to be told to choose this number of hash functions."""
    ideal = shape.bits * math.log(2) / shape.hashes
    near = (max(1, math.floor(ideal)), math.ceil(ideal))
    return next(items for items in near if shape.hashes == Shape.hashes_for(items, shape.bits))


def has(spark: SparkSession, bits: Column, hashed: Column) -> Column:
    """Whether a serialised filter (a literal or a scalar subquery) may have these hashes."""
    return _column(spark, _java(spark).BloomFilterMightContain(_expression(bits), _expression(hashed)))


@dataclass(frozen=True)
class Held:
    """What came of holding keys against a filter: how many there are, how many it has, and the first others, each once."""

    keys: int
    matching: int
    missing: tuple[str, ...]


def built(frame: DataFrame, columns: Sequence[str], shape: Shape, share: float = 1) -> str:
    """The portable filter of a sample of the keys: one job."""
    hashed = _keys(frame, columns, share)
    found = hashed.agg(F.count(F.lit(1)), bits_of(frame.sparkSession, F.col("hash"), shape)).first()
    assert found is not None
    return _portable(shape, found[0], found[1])


def probed(
    frame: DataFrame, columns: Sequence[str], filter_text: str, share: float = 1, most: int = MOST_NAMED
) -> Held:
    """The keys of the sample held against a filter: one job, and another where keys are missing."""
    looked = _looked(frame, columns, filter_text, share)
    counts = looked.agg(F.count(F.lit(1)), F.count_if("there")).first()
    assert counts is not None
    return Held(counts[0], counts[1], _missing(looked, most) if counts[0] > counts[1] else ())


def built_and_probed(
    frame: DataFrame, columns: Sequence[str], shape: Shape, filter_text: str, share: float = 1, most: int = MOST_NAMED
) -> tuple[str, Held]:
    """Both in one job, and another where keys are missing."""
    looked = _looked(frame, columns, filter_text, share)
    bits = bits_of(frame.sparkSession, F.col("hash"), shape)
    found = looked.agg(F.count(F.lit(1)), F.count_if("there"), bits).first()
    assert found is not None
    held = Held(found[0], found[1], _missing(looked, most) if found[0] > found[1] else ())
    return _portable(shape, found[0], found[2]), held


def _keys(frame: DataFrame, columns: Sequence[str], share: float) -> DataFrame:
    keys = frame.select(key_of(frame, columns).alias("key"))
    return keys.withColumn("hash", F.xxhash64("key")).where(in_sample(F.col("hash"), share))


def _looked(frame: DataFrame, columns: Sequence[str], filter_text: str, share: float) -> DataFrame:
    there = present(frame.sparkSession, filter_text, F.col("key"), F.col("hash"))
    return _keys(frame, columns, share).withColumn("there", there)


def _missing(looked: DataFrame, most: int) -> tuple[str, ...]:
    rows = looked.where(~F.col("there")).select("key").limit(10 * most).distinct().limit(most)
    return tuple(sorted(row[0] for row in rows.collect()))


def _portable(shape: Shape, items: int, bits: bytes | None) -> str:
    return Bloom(shape).text() if bits is None else written(SPARK, shape, items, bytes(bits))


def first_keys(frame: DataFrame, columns: Sequence[str], size: int, salt: str) -> list[str]:
    """A sample: the first different keys in the order of `bloom_keys.order_of`."""
    # Turning the sign over makes signed numbers sort as unsigned ones do.
    turn = ctypes.c_int64(salt_of(salt) ^ (1 << 63)).value
    keys = frame.select(key_of(frame, columns).alias("key")).distinct()
    return [row[0] for row in keys.orderBy(F.xxhash64("key").bitwiseXOR(F.lit(turn)), "key").limit(size).collect()]


def present_keys(frame: DataFrame, columns: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Those of `wanted` that are there."""
    asked = frame.sparkSession.createDataFrame([(key,) for key in wanted], "key string")
    keys = frame.select(key_of(frame, columns).alias("key")).join(F.broadcast(asked), "key", "left_semi").distinct()
    return [row[0] for row in keys.collect()]


def present(spark: SparkSession, filter_text: str, key: Column, hashed: Column) -> Column:
    """Whether the filter has a key: inside the JVM for its own layout, in Python, by Arrow batches, for pybloom-live's."""
    held = read(filter_text)
    if isinstance(held, Bloom):
        return has(spark, F.lit(bytearray(held.payload())), hashed)
    there = F.udf(lambda key: bool(held.has([key.encode()])[0]), BooleanType(), useArrow=True)
    return there(key)


def _java(spark: SparkSession) -> Any:
    found: Any = spark._jvm
    for name in _CATALYST.split("."):
        found = getattr(found, name)
    return found


def _expression(column: Column) -> Any:
    return column._jc.expr()


def _column(spark: SparkSession, expression: Any) -> Column:
    java: Any = spark._jvm
    return Column(java.org.apache.spark.sql.Column(expression))
