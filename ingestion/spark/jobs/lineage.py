"""The newest lineage from events in the form of OpenLineage: of each job the newest run that completed, as edges.

Events are JSON text: the lines of `.jsonl` files, whole `.json` files (one event or a list), or the column `event` of
Parquet files or of a Hudi table. Nothing is written; the edges are in the report.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import reduce

from pyarrow import fs
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from ingestion.spark.contract.report import SUCCEEDED, JobReport
from ingestion.spark.job import Job, JobError
from ingestion.spark.tables.timeline import Timeline, open_storage

EVENTS_TYPE = """array<struct<
    eventType: string, eventTime: string, run: struct<runId: string>, job: struct<namespace: string, name: string>,
    inputs: array<struct<namespace: string, name: string, facets: struct<lakehub: struct<one_to_one: boolean>>>>,
    outputs: array<struct<namespace: string, name: string,
        facets: struct<lifecycleStateChange: struct<lifecycleStateChange: string>>>>
>>"""
MAX_ROWS = 200_000
"""Links or tables; a report must fit into memory."""


def run(job: Job) -> JobReport:
    upto = job.spec.upto_at or job.started_at
    with job.phase("read"):
        events = parse_events(read_events(job.spark, job.table.uri))
        reject_invalid_events(events)
        recent = completed_runs(events, since=upto - timedelta(days=job.spec.window_days)).cache()
    try:
        with job.phase("aggregate"):
            gone = dropped_tables(recent)
            output = {
                "links": [
                    {
                        "upstream": [row.up.namespace, row.up.name],
                        "downstream": [row.down.namespace, row.down.name],
                        "one_to_one": row.one_to_one,
                    }
                    for row in collect_bounded(lineage_links(newest_run_per_job(recent), gone))
                ],
                "dropped": [[row.at.namespace, row.at.name] for row in collect_bounded(gone)],
            }
    finally:
        recent.unpersist()
    return JobReport(run_id=job.spec.run_id, status=SUCCEEDED, output=output)


def read_events(spark: SparkSession, uri: str) -> DataFrame:
    """One column `event`: JSON text."""
    if Timeline(uri).exists:
        return spark.read.format("hudi").load(uri).select("event")
    endings = file_endings(uri)
    parts = (
        [spark.read.option("recursiveFileLookup", True).parquet(uri).select("event")] if ".parquet" in endings else []
    )
    for ending, whole in ((".json", True), (".jsonl", False)):
        if ending in endings:
            text = spark.read.option("recursiveFileLookup", True).option("pathGlobFilter", f"*{ending}")
            parts.append(text.text(uri, wholetext=whole).select(F.col("value").alias("event")))
    if not parts:
        raise JobError(
            f"There are no events at {uri}: neither a Hudi table, nor files that end in .parquet, .json or .jsonl."
        )
    return reduce(DataFrame.unionByName, parts).where(F.trim("event") != "")


def file_endings(uri: str) -> set[str]:
    filesystem, path = open_storage(uri)
    entries = filesystem.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    return {f".{entry.extension}" for entry in entries if entry.type == fs.FileType.File}


def parse_events(raw: DataFrame) -> DataFrame:
    parsed = raw.select("event", F.explode_outer(F.from_json("event", EVENTS_TYPE)).alias("e"))
    return parsed.select(
        F.substring("event", 1, 200).alias("text"),
        F.col("e.run.runId").alias("number"),
        F.col("e.job").alias("job"),
        F.try_to_timestamp("e.eventTime").alias("at"),
        (F.col("e.eventType") == "COMPLETE").alias("complete"),
        F.coalesce("e.inputs", F.array()).alias("inputs"),
        F.coalesce("e.outputs", F.array()).alias("outputs"),
    )


def reject_invalid_events(events: DataFrame) -> None:
    needed = ("number", "job.namespace", "job.name", "at")
    lacks = reduce(lambda either, other: either | other, (F.col(name).isNull() for name in needed))
    bad = events.where(lacks).select("text").first()
    if bad is not None:
        raise JobError(
            f"This is no lineage event: {bad.text}. "
            "It needs eventType, eventTime, run.runId, job.namespace and job.name, as in OpenLineage."
        )


def completed_runs(events: DataFrame, *, since: datetime) -> DataFrame:
    """The runs that completed after `since`; what their events said, together."""
    ended = F.max(F.when(F.col("complete"), F.col("at"))).alias("ended_at")
    together = (F.flatten(F.collect_list(side)).alias(side) for side in ("inputs", "outputs"))
    grouped = events.groupBy("number").agg(F.min("job").alias("job"), ended, *together)
    return grouped.where(F.col("ended_at") > F.lit(since))


def newest_run_per_job(recent: DataFrame) -> DataFrame:
    """Of each job one run."""
    first = Window.partitionBy("job").orderBy(F.desc("ended_at"), F.desc("number"))
    return recent.withColumn("place", F.row_number().over(first)).where("place = 1").drop("place")


def lineage_links(latest: DataFrame, gone: DataFrame) -> DataFrame:
    """(up, down, one_to_one), each pair once."""
    outputs = latest.select("inputs", F.explode("outputs").alias("out")).where(~_is_dropped("out"))
    pairs = outputs.select(_table_struct("out").alias("down"), F.explode("inputs").alias("in"))
    mapped = F.coalesce(F.col("in.facets.lakehub.one_to_one"), F.lit(False))
    ends = pairs.select(_table_struct("in").alias("up"), "down", mapped.alias("mapped")).where("up != down")
    alive = ends.join(gone, ends.up == gone.at, "left_anti").join(gone, ends.down == gone.at, "left_anti")
    return alive.groupBy("up", "down").agg(F.max("mapped").alias("one_to_one")).orderBy("up", "down")


def dropped_tables(recent: DataFrame) -> DataFrame:
    """(at): the tables of which the last word is that they were dropped."""
    words = recent.select("number", "ended_at", F.explode("outputs").alias("out"))
    drops_by_run = words.groupBy("number", "ended_at", _table_struct("out").alias("at")).agg(
        F.max(_is_dropped("out")).alias("dropped")
    )
    last = drops_by_run.groupBy("at").agg(F.max_by("dropped", F.struct("ended_at", "number")).alias("dropped"))
    return last.where("dropped").select("at").orderBy("at")


def collect_bounded(rows: DataFrame) -> list[Row]:
    collected = rows.limit(MAX_ROWS + 1).collect()
    if len(collected) > MAX_ROWS:
        raise JobError(
            f"There are more than {MAX_ROWS:,} links or tables: read a part of the events, in a folder of their own."
        )
    return collected


def _table_struct(column: str) -> Column:
    return F.struct(f"{column}.namespace", f"{column}.name")


def _is_dropped(column: str) -> Column:
    change = F.col(f"{column}.facets.lifecycleStateChange.lifecycleStateChange")
    return F.coalesce(change == "DROP", F.lit(False))
