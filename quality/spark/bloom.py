"""Bloom filters in Spark, by the expressions that Spark has itself: built and probed inside the JVM, no row comes to Python.

The bits are those of `quality.domain.bloom.filters`, layout `spark-v1`: a filter built here is probed there and the other way round.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import and_
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
from quality.domain.bloom.filters import MAX_BITS, SPARK, FilterShape, SparkBloomFilter, decode_filter, encode_filter
from quality.domain.bloom.keys import NULL_PART, UnsupportedKeyType, hash_salt, sample_bound
from quality.spark.executor_udfs import might_contain_key

MAX_NAMED_KEYS = 100
"""So many missing keys are named."""
_CATALYST = "org.apache.spark.sql.catalyst.expressions"
_MAX_FILTER_SETTINGS = {
    "spark.sql.optimizer.runtime.bloomFilter.maxNumBits": MAX_BITS,
    "spark.sql.optimizer.runtime.bloomFilter.maxNumItems": 2**40,
}
"""Spark cuts filters down to 8 MiB unless told otherwise."""


class UnknownColumn(LookupError):
    """The key names a column that the table lacks."""


def key_column(frame: DataFrame, columns: Sequence[str]) -> Column:
    """The key of each row as `quality.domain.bloom.keys` writes it. Raises UnsupportedKeyType, UnknownColumn."""
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    for name in columns:
        if name not in kinds:
            raise UnknownColumn(f"There is no column `{name}`.{did_you_mean(name, kinds)}")
    return key_text([(name, F.col(f"`{name.replace('`', '``')}`"), kinds[name]) for name in columns])


def value_text(frame: DataFrame, name: str) -> Column:
    """One value as it is written in a key; null of a null. Raises UnsupportedKeyType."""
    return _value_text(name, F.col(f"`{name.replace('`', '``')}`"), frame.schema[name].dataType)


def has_text(kind: DataType) -> bool:
    """Whether values of this type are written alike by every engine."""
    return isinstance(
        kind,
        StringType
        | BooleanType
        | IntegralType
        | DateType
        | TimestampType
        | TimestampNTZType
        | DecimalType
        | BinaryType,
    )


def key_text(parts: Sequence[tuple[str, Column, DataType]]) -> Column:
    """The same of columns with their names and types."""
    return F.concat(*(_part_text(name, column, kind) for name, column, kind in parts))


def _part_text(name: str, column: Column, kind: DataType) -> Column:
    text = _value_text(name, column, kind)
    return F.when(column.isNull(), NULL_PART).otherwise(
        F.concat(F.octet_length(text).cast("string"), F.lit(":"), text, F.lit(","))
    )


def _value_text(name: str, column: Column, kind: DataType) -> Column:
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
            raise UnsupportedKeyType(name, kind.simpleString())


def in_sample(hashed: Column, share: float) -> Column:
    """Whether a hash belongs to a sample of `share`, as `keys.in_sample` says."""
    return F.lit(True) if share >= 1 else F.shiftrightunsigned(hashed, 32) < F.lit(sample_bound(share))


def filter_bits(spark: SparkSession, hashed: Column, shape: FilterShape) -> Column:
    """The aggregate: the serialised filter of these hashes; null of no rows."""
    for name, most in _MAX_FILTER_SETTINGS.items():
        spark.conf.set(name, str(most))
    aggregate = _java(spark).aggregate.BloomFilterAggregate(
        _expression(hashed),
        _expression(F.lit(_items_of(shape)).cast("long")),
        _expression(F.lit(shape.bits).cast("long")),
        0,
        0,
    )
    return _column(spark, aggregate.toAggregateExpression())


def _items_of(shape: FilterShape) -> int:
    """The number of keys that Spark has to be told to choose this number of hash functions."""
    ideal = shape.bits * math.log(2) / shape.hashes
    near = (max(1, math.floor(ideal)), math.ceil(ideal))
    return next(items for items in near if shape.hashes == FilterShape.hashes_for(items, shape.bits))


def might_contain(spark: SparkSession, bits: Column, hashed: Column) -> Column:
    """Whether a serialised filter (a literal or a scalar subquery) may have these hashes."""
    return _column(spark, _java(spark).BloomFilterMightContain(_expression(bits), _expression(hashed)))


@dataclass(frozen=True)
class ProbedKeys:
    """What came of holding keys against a filter: how many there are, how many it has, and the first others, each once."""

    keys: int
    matching: int
    missing: tuple[str, ...]


def build_filter(frame: DataFrame, columns: Sequence[str], shape: FilterShape, share: float = 1) -> str:
    """The portable filter of a sample of the keys: one job."""
    hashed = _sampled_keys(frame, columns, share)
    row = hashed.agg(F.count(F.lit(1)), filter_bits(frame.sparkSession, F.col("hash"), shape)).first()
    assert row is not None
    return _encode_bits(shape, row[0], row[1])


def probe_filter(
    frame: DataFrame, columns: Sequence[str], filter_text: str, share: float = 1, most: int = MAX_NAMED_KEYS
) -> ProbedKeys:
    """The keys of the sample held against a filter: one job, and another where keys are missing."""
    looked = _probe_rows(frame, columns, filter_text, share)
    counts = looked.agg(F.count(F.lit(1)), F.count_if("there")).first()
    assert counts is not None
    return ProbedKeys(counts[0], counts[1], _missing_keys(looked, most) if counts[0] > counts[1] else ())


def build_and_probe(
    frame: DataFrame,
    columns: Sequence[str],
    shape: FilterShape,
    filter_text: str,
    share: float = 1,
    most: int = MAX_NAMED_KEYS,
) -> tuple[str, ProbedKeys]:
    """Both in one job, and another where keys are missing."""
    looked = _probe_rows(frame, columns, filter_text, share)
    bits = filter_bits(frame.sparkSession, F.col("hash"), shape)
    row = looked.agg(F.count(F.lit(1)), F.count_if("there"), bits).first()
    assert row is not None
    probed_keys = ProbedKeys(row[0], row[1], _missing_keys(looked, most) if row[0] > row[1] else ())
    return _encode_bits(shape, row[0], row[2]), probed_keys


def _sampled_keys(frame: DataFrame, columns: Sequence[str], share: float) -> DataFrame:
    keys = _keys_of(frame, columns)
    return keys.withColumn("hash", F.xxhash64("key")).where(in_sample(F.col("hash"), share))


def _keys_of(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Of the rows that have a key: in none of its columns is a null."""
    key = key_column(frame, columns)
    whole = reduce(and_, (F.col(f"`{name.replace('`', '``')}`").isNotNull() for name in columns))
    return frame.where(whole).select(key.alias("key"))


def _probe_rows(frame: DataFrame, columns: Sequence[str], filter_text: str, share: float) -> DataFrame:
    there = contains_key(frame.sparkSession, filter_text, F.col("key"), F.col("hash"))
    return _sampled_keys(frame, columns, share).withColumn("there", there)


def _missing_keys(looked: DataFrame, most: int) -> tuple[str, ...]:
    rows = looked.where(~F.col("there")).select("key").limit(10 * most).distinct().limit(most)
    return tuple(sorted(row[0] for row in rows.collect()))


def _encode_bits(shape: FilterShape, items: int, bits: bytes | None) -> str:
    return SparkBloomFilter(shape).encode() if bits is None else encode_filter(SPARK, shape, items, bytes(bits))


def first_keys(frame: DataFrame, columns: Sequence[str], size: int, salt: str) -> list[str]:
    """A sample: the first different keys in the order of `keys.sample_order`."""
    # Turning the sign over makes signed numbers sort as unsigned ones do.
    turn = ctypes.c_int64(hash_salt(salt) ^ (1 << 63)).value
    keys = _keys_of(frame, columns).distinct()
    return [row[0] for row in keys.orderBy(F.xxhash64("key").bitwiseXOR(F.lit(turn)), "key").limit(size).collect()]


def present_keys(frame: DataFrame, columns: Sequence[str], wanted_keys: Sequence[str]) -> list[str]:
    """Those of `wanted_keys` that are there."""
    wanted_frame = frame.sparkSession.createDataFrame([(key,) for key in wanted_keys], "key string")
    keys = (
        frame.select(key_column(frame, columns).alias("key"))
        .join(F.broadcast(wanted_frame), "key", "left_semi")
        .distinct()
    )
    return [row[0] for row in keys.collect()]


def contains_key(spark: SparkSession, filter_text: str, key: Column, hashed: Column) -> Column:
    """Whether the filter has a key: inside the JVM for its own layout, in Python, by Arrow batches, for pybloom-live's."""
    key_filter = decode_filter(filter_text)
    if isinstance(key_filter, SparkBloomFilter):
        return might_contain(spark, F.lit(bytearray(key_filter.payload())), hashed)
    return F.udf(partial(might_contain_key, key_filter), BooleanType(), useArrow=True)(key)


def _java(spark: SparkSession) -> Any:
    package: Any = spark._jvm
    for name in _CATALYST.split("."):
        package = getattr(package, name)
    return package


def _expression(column: Column) -> Any:
    return column._jc.expr()


def _column(spark: SparkSession, expression: Any) -> Column:
    java: Any = spark._jvm
    return Column(java.org.apache.spark.sql.Column(expression))
