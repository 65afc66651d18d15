"""Datasets whose index is in a cluster, and jobs of theirs that want to look keys up there."""

from __future__ import annotations

from ingestion.index_shares.clusters import add_cluster, note_benchmark
from ingestion.models import IndexCluster, JobKind, JobRun, JobState
from lakehub.catalog.models import DatasetCopy, Feed
from tests import factories as given
from tests.factories import NOW

ADDRESS = "hbase://thrift:9090?quorum=zk1:2181,zk2:2181&staging=hdfs://nn/hfiles"


def cluster(name: str = "main", where: str = "dc1", qps: int | None = 6_000) -> IndexCluster:
    given.data_center(where)
    made = add_cluster(name=name, data_center=where, url=ADDRESS, actor="ana", now=NOW)
    if qps is not None:
        note_benchmark(made, qps, actor="ana", now=NOW)
    return made


def indexed(name: str, index: str = "hbase", **fields: object) -> DatasetCopy:
    dataset = given.dataset(name, **fields)  # type: ignore[arg-type]
    given.feed(dataset, options={"index": index})
    return given.copy_of(dataset)


def uses_another_index(copy: DatasetCopy) -> None:
    Feed.objects.filter(dataset=copy.dataset_id).update(options={"index": "simple"})


def job(copy: DatasetCopy, kind: JobKind = JobKind.BACKFILL, state: JobState = JobState.RUNNING) -> JobRun:
    run = given.run(copy, kind, state, started_at=None, ended_at=None)
    return JobRun.objects.select_related("copy__dataset__feed__connection", "copy__data_center").get(pk=run.pk)
