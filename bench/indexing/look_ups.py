"""A look-up alone, nothing written: which rows of a batch a table has, and in which files they lie."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench.writing import rows
from bench.writing.contenders import CHANGED, HUDI_OPTIONS, Contender, Hudi, Lakehub
from bench.writing.costs import Cost, cost_of
from ingestion.spark.compiled_java import class_of, define_beside
from ingestion.spark.file_groups.batch_keys import BatchKeys
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.session import jvm
from ingestion.spark.tables.timeline import Timeline

_MARKER = "lakehub.bench.look_ups"
_CLIENT = "org.apache.hudi.client.SparkRDDReadClient"
_SOURCES = {
    "org.apache.hudi.client.BenchRecord": """
package org.apache.hudi.client;

import org.apache.hudi.common.model.EmptyHoodieRecordPayload;
import org.apache.hudi.common.model.HoodieAvroRecord;
import org.apache.hudi.common.model.HoodieKey;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.sql.Row;

public class BenchRecord implements Function {
    public Object call(Object row) {
        HoodieKey key = new HoodieKey(((Row) row).getString(0), ((Row) row).getString(1));
        return new HoodieAvroRecord(key, new EmptyHoodieRecordPayload());
    }
}
""",
    "org.apache.hudi.client.BenchIsLocated": """
package org.apache.hudi.client;

import org.apache.hudi.common.model.HoodieRecord;
import org.apache.spark.api.java.function.Function;

public class BenchIsLocated implements Function {
    public Object call(Object record) {
        return Boolean.valueOf(((HoodieRecord) record).isCurrentLocationKnown());
    }
}
""",
}


class LookUp(NamedTuple):
    """`asked_s`: until Lakehub's index has named the file groups; the rest is the keys in them. Of Hudi's the whole."""

    cost: Cost
    asked_s: float


def look_up(
    spark: SparkSession, contender: Contender, folder: Path, count: int, *, beside: Collection[int] = ()
) -> LookUp:
    """Of the `count` rows that are prepared, each of which the table has."""
    if isinstance(contender, Lakehub):
        return _by_lakehub(spark, contender, folder, count, beside)
    assert isinstance(contender, Hudi)
    return _by_hudi(spark, contender, folder, count, beside)


def _by_lakehub(spark: SparkSession, contender: Lakehub, folder: Path, count: int, beside: Collection[int]) -> LookUp:
    """As its jobs do: the index says which rows may have the keys, and those are joined with the keys."""
    index: Index = INDEXES.get(contender.index)()
    asked_s, located = 0.0, 0

    def work() -> None:
        nonlocal asked_s, located
        begun = time.perf_counter()
        keys = rows.of_parquet(spark, folder / CHANGED).select("id")
        table = contender.table(folder)
        stored = index.stored_rows(spark, table, BatchKeys(keys, count, None, table))
        asked_s = time.perf_counter() - begun
        located = stored.join(F.broadcast(keys), "id").count()

    cost = cost_of(spark, work, beside=beside)
    return _checked(LookUp(cost, asked_s), contender, located, count)


def _by_hudi(spark: SparkSession, contender: Hudi, folder: Path, count: int, beside: Collection[int]) -> LookUp:
    """`tagLocation` of its index, as its upsert begins; the records are there before."""
    java: Any = jvm(spark)
    for name, source in _SOURCES.items():
        define_beside(java, _CLIENT, source, marker=f"{_MARKER}.{name}")
    to_record, is_located = (class_of(java, name).getConstructors()[0].newInstance(None) for name in _SOURCES)
    keys = rows.of_parquet(spark, folder / CHANGED).selectExpr(
        "cast(id as string) key", "concat('day=', day) partition"
    )
    frame: Any = keys
    context: Any = spark.sparkContext
    records = frame._jdf.javaRDD().map(to_record).cache()
    records.count()
    located, parts, configuration = 0, records.getNumPartitions(), _configuration(java, contender, folder)

    def work() -> None:
        nonlocal located
        engine = java.org.apache.hudi.client.common.HoodieSparkEngineContext(context._jsc)
        client = java.org.apache.hudi.client.SparkRDDReadClient(engine, configuration)
        # An RDD of its own, as some of the indexes decide how it is kept.
        located = client.tagLocation(records.coalesce(parts)).filter(is_located).count()

    try:
        cost = cost_of(spark, work, beside=beside)
    finally:
        records.unpersist()
    return _checked(LookUp(cost, cost.seconds), contender, located, count)


def _configuration(java: Any, contender: Hudi, folder: Path) -> Any:
    properties = java.java.util.Properties()
    for name, value in {**HUDI_OPTIONS, **dict(contender.options)}.items():
        properties.setProperty(name, value)
    uri = (folder / "lake" / "orders").as_uri()
    schema = next(commit.avro_schema for commit in Timeline(uri).newest_first() if commit.avro_schema)
    built = java.org.apache.hudi.config.HoodieWriteConfig.newBuilder()
    return built.withPath(uri).withSchema(schema).withProps(properties).build()


def _checked(made: LookUp, contender: Contender, located: int, count: int) -> LookUp:
    if located != count:
        raise AssertionError(f"{contender.name} located {located:,} of {count:,} rows")
    return made
