"""Filters built on one engine are probed on the other; the SQL functions; Spark as a side of an exchange."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from quality.domain.bloom.filters import FilterShape, PybloomFilter, SparkBloomFilter, decode_filter
from quality.domain.bloom.keys import UnsupportedKeyType, encode_key, hash_keys
from quality.spark.bloom import ProbedKeys, build_filter, first_keys, key_column, present_keys, probe_filter
from quality.spark.sql_functions import register_bloom_functions
from tests.contracts import test_cross_source as suite
from tests.contracts.test_cross_source import ALL, DAY, SAMPLE, TENTH, flights, hudi, opened, records

AT = datetime(2013, 1, 1, 12, 0, 0, 5, tzinfo=UTC)
ROWS = [
    (1, "UA", True, date(2013, 1, 1), AT, Decimal("1.50"), Decimal("0.0000001"), bytearray(b"\x00\xff")),
    (-7, "é~,", False, date(1999, 12, 31), AT, Decimal("-10.00"), Decimal("0"), bytearray()),
    (2, None, None, None, None, None, None, None),
]
TYPES = "n int, t string, b boolean, d date, at timestamp, m decimal(10,2), tiny decimal(20,10), x binary"


def test_a_key_is_written_as_python_writes_it(spark: SparkSession) -> None:
    frame = spark.createDataFrame(ROWS, TYPES).withColumn("local", F.col("at").cast("timestamp_ntz"))
    assert [row[0].encode() for row in frame.select(key_column(frame, frame.columns)).collect()] == [
        encode_key([*row, row[4]]) for row in ROWS
    ]
    with pytest.raises(UnsupportedKeyType, match="`half` cannot be part of a key: it is double"):
        key_column(frame.withColumn("half", F.lit(0.5)), ["half"])


def test_a_filter_of_one_engine_is_probed_on_the_other(spark: SparkSession) -> None:
    known, more = spark.range(1000), spark.range(1010)
    keys = [encode_key([number]) for number in range(1010)]
    ours = SparkBloomFilter(FilterShape.for_keys(1000, 0.001))
    ours.add(hash_keys(keys[:1000]))
    theirs = build_filter(known, ["id"], ours.shape)
    assert theirs == ours.encode()
    absent = tuple(sorted(key.decode() for key in keys[1000:]))
    assert probe_filter(more, ["id"], ours.encode()) == ProbedKeys(1010, 1000, absent)
    assert [key for key in keys if not decode_filter(theirs).might_contain([key])[0]] == keys[1000:]
    pybloom = PybloomFilter.for_keys(1000, 0.001)
    pybloom.add(keys[:1000])
    assert probe_filter(more, ["id"], pybloom.encode()) == ProbedKeys(1010, 1000, absent)
    merged = decode_filter(build_filter(known.where("id < 400"), ["id"], ours.shape))
    assert isinstance(merged, SparkBloomFilter)
    rest = decode_filter(build_filter(known.where("id >= 400"), ["id"], ours.shape))
    assert isinstance(rest, SparkBloomFilter)
    assert merged.union(rest).encode() == theirs
    for keys_of_them, keys_wanted in ((3_000_000, 0.001), (10_000_000, 0.01)):
        shape = FilterShape.for_keys(keys_of_them, keys_wanted)
        assert f"bits={shape.bits};hashes={shape.hashes};" in build_filter(known, ["id"], shape)


def test_the_functions_of_sql(spark: SparkSession) -> None:
    register_bloom_functions(spark)
    register_bloom_functions(spark)
    spark.conf.set("lakehub.bloom.items", "1000")
    spark.range(1000).createOrReplaceTempView("known")
    spark.range(1003).withColumn("code", F.lit("x")).createOrReplaceTempView("more")
    text = spark.sql("SELECT build_bloom_filter(id) FROM known").first()[0]  # type: ignore[index]
    assert text == build_filter(spark.range(1000), ["id"], FilterShape.for_keys(1000, 0.001))
    absent = ['{"id":1000}', '{"id":1001}', '{"id":1002}']
    for given in (f"'{text}'", "(SELECT build_bloom_filter(id) FROM known)"):
        counts = spark.sql(f"SELECT use_bloom_filter({given}, id) AS found FROM more").groupBy("found").count()
        assert {row[0]: row[1] for row in counts.collect()} == {"exists": 1000, **dict.fromkeys(absent, 1)}
    by_code = spark.sql("SELECT id % 2 AS odd, build_bloom_filter(id) FROM known GROUP BY 1 ORDER BY 1").collect()
    assert [decode_filter(row[1]).items for row in by_code] == [500, 500]
    first = spark.sql("SELECT use_bloom_filter(CAST(NULL AS STRING), id, code, id + 1) FROM more WHERE id = 0").first()
    assert first is not None
    assert first[0] == '{"id":0,"code":"x","key3":1}'
    assert spark.sql("SELECT build_bloom_filter(id) FROM known WHERE id < 0").first()[0] is None  # type: ignore[index]
    for wrong, why in (
        ("build_bloom_filter(0.5D)", "`key1` cannot be part of a key: it is double"),
        ("use_bloom_filter('nothing', id)", "does not begin a Bloom filter"),
        ("use_bloom_filter('nothing')", "wants a filter and the columns of a key"),
        ("use_bloom_filter(STRING(id), id)", "a text or a scalar subquery"),
    ):
        with pytest.raises(Exception, match=why):
            spark.sql(f"SELECT {wrong} FROM known").collect()


def test_spark_is_a_side_like_the_others(spark: SparkSession, tmp_path: Path) -> None:
    def on_spark(folder: Path, frame: object) -> tuple[str, object]:
        return "spark", hudi(folder, frame)[1]  # type: ignore[arg-type]

    whole = flights()
    suite.test_exactly_the_records_that_are_missing_here_are_named(on_spark, tmp_path / "a")  # type: ignore[arg-type]
    suite.test_every_side_writes_the_same_key_alike(on_spark, tmp_path / "b")  # type: ignore[arg-type]
    here = opened(on_spark, tmp_path / "here", whole.iloc[40:])  # type: ignore[arg-type]
    there = opened(hudi, tmp_path / "there", whole)
    matched, sample = suite.matching(TENTH, here, there), suite.sampled(SAMPLE, here, there, salt=DAY)
    assert sorted(matched["missing"], key=str) == records(whole.iloc[:40])
    assert sample == suite.sampled(SAMPLE, opened(hudi, tmp_path / "twin", whole.iloc[40:]), there, salt=DAY)
    assert set(here.sample(50, DAY)) == set(opened(hudi, tmp_path / "more", whole.iloc[40:]).sample(50, DAY))
    of_nothing = opened(on_spark, tmp_path / "nothing", whole, "2013-11-20")  # type: ignore[arg-type]
    lost = suite.matching(ALL, of_nothing, there)
    assert (lost["keys"], lost["matching"]) == (there.count(), 0)
    frame = spark.range(5)
    assert present_keys(frame, ["id"], ["1:1,", "1:9,"]) == ["1:1,"]
    assert len(first_keys(frame, ["id"], 3, "salt")) == 3
