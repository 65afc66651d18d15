"""The process of a dataset's job: it looks keys up by Spark's tasks for as long as it is told, as fast as its allowance says."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from bench.pacing.limit import limit_servers
from ingestion.domain.index_cluster.allowed_qps import even_servers
from ingestion.index.entries import FAMILIES, Entry
from ingestion.spark.contract.spec import GlobalIndexSpec, TableSpec
from ingestion.spark.file_groups import FileGroup
from ingestion.spark.file_groups.batch_keys import BatchKeys
from ingestion.spark.global_index.clients import open_client
from ingestion.spark.global_index.hbase_client.administration import open_administration
from ingestion.spark.global_index.looking_up import groups_in, locate_batch
from ingestion.spark.session import close_session, open_session

if TYPE_CHECKING:
    from ingestion.models import JobRun
    from ingestion.runs.index_use.allowances import Allowance

_WARM_UP = 2_000
"""Keys that are asked for before, at no pace: Spark starts its processes for Python with the first task."""
_GROUP = FileGroup("day=2026-11-01", "f" * 36)
_ASKS_AGAIN_S = 0.5


@dataclass(frozen=True)
class Work:
    """Of the dataset `name`, whose table of HBase has so many regions and keys. `seconds`: for how long it asks. `limit`: rows a second of each server.

    `told_times`: its share is told of so many times the servers that there are."""

    name: str
    index: GlobalIndexSpec
    regions: int
    keys: int
    seconds: float
    limit: int
    told_times: int = 1

    @property
    def table(self) -> TableSpec:
        uri = f"file:///lake/{self.name}"
        return TableSpec(self.name, uri, f"{uri}_errors", record_key=("id",), index="hbase", global_index=self.index)


@dataclass(frozen=True)
class Done:
    """`allowed`: keys a second, over the time that it asked. `seconds` of that, and the `keys` of all batches."""

    name: str
    servers: int
    allowed: float
    seconds: float
    keys: int


def run_job(work: Work, ready: Barrier, answer: Connection) -> None:
    """The whole life of the process. All jobs make their tables first; then the counters are read; then they begin."""
    import django

    django.setup()
    spark = open_session(work.name, memory="512m")
    try:
        _make_table(spark, work)
        servers = _count_servers(work)
        _ask(spark, work, _WARM_UP, None)
        ready.wait()
        ready.wait()  # the counters were read between the two
        answer.send(_look_up(spark, work, servers))
    finally:
        close_session(spark)


def _make_table(spark: SparkSession, work: Work) -> None:
    """Its regions begin evenly, and so are its keys spread."""
    limit_servers(spark, work.index.quorum, work.limit)
    starts = [_key(work.keys * number // work.regions).encode() for number in range(1, work.regions)]
    with open_administration(spark, {"hbase.zookeeper.quorum": work.index.quorum}) as hbase:
        hbase.create(work.name, work.table.uri, FAMILIES, starts)
    entry = Entry(_GROUP.partition, _GROUP.file_id, "20261101000000000")
    with closing(open_client(work.index)) as client:
        client.note({})
        client.put({_key(number): entry for number in range(work.keys)}, at_ms=1)


def _count_servers(work: Work) -> int:
    """As a job tells it to the share of its dataset."""
    from ingestion.index_shares.shares import note_table

    with closing(open_client(work.index)) as client:
        servers = even_servers(f"{region.host}:{region.port}" for region in client.regions())
    note_table(_run(work).copy, servers=servers * work.told_times)
    return servers


def _look_up(spark: SparkSession, work: Work, servers: int) -> Done:
    """In one batch that is as large as the allowance, if the table has as many keys: between two of them Spark plans, and nothing is asked."""
    allowance = _allowance(work)
    begun, might_have_asked, keys = time.monotonic(), 0.0, 0
    try:
        while (batch_begun := time.monotonic()) < begun + work.seconds:
            rate = allowance.requests_per_s()
            keys += _ask(spark, work, min(work.keys, round(rate * work.seconds)), rate)
            might_have_asked += rate * (time.monotonic() - batch_begun)
            allowance.renew()
        seconds = time.monotonic() - begun
        return Done(work.name, servers, might_have_asked / seconds, seconds, keys)
    finally:
        allowance.release()


def _ask(spark: SparkSession, work: Work, count: int, rate: float | None) -> int:
    """So many keys from all over the table, each once, at so many a second."""
    numbers = spark.range(count).selectExpr(f"lpad(cast(id * {work.keys} div {count} as string), 8, '0') as id")
    index = replace(work.index, requests_per_s=rate)
    located = locate_batch(spark, index, work.table, BatchKeys(numbers, count, None, work.table))
    assert located is not None
    assert groups_in(located) == {_GROUP}
    return count


def _allowance(work: Work) -> Allowance:
    """Once there is room. All of them begin with their whole part where the fractions have not changed."""
    from ingestion.runs.index_use.allowances import Allowance, take

    run, until = _run(work), time.monotonic() + timedelta(minutes=2).total_seconds()
    while not isinstance(allowance := take(run, f"bench:{work.name}"), Allowance):
        assert time.monotonic() < until, f"{work.name} {allowance.why if allowance else 'needs no allowance'}"
        time.sleep(_ASKS_AGAIN_S)
    return allowance


def _run(work: Work) -> JobRun:
    from ingestion.models import JobRun

    runs = JobRun.objects.select_related("copy__dataset__feed__connection", "copy__data_center")
    return runs.get(copy__dataset__name=work.name)


def _key(number: int) -> str:
    return f"{number:08}"
