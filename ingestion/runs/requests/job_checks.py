"""Which jobs make sense on a copy, whoever asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingestion.index_shares.standing import HBASE, standing_index, wanted_index
from ingestion.models import JobKind
from ingestion.runs.requests.index_jobs import check_repairs
from ingestion.runs.requests.params import check_params
from ingestion.runs.requests.replicas import check_replica
from ingestion.runs.requests.source_checks import check_rereading, check_source
from ingestion.spark.contract.job_kinds import READING_KINDS
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.errors import Refused
from lakehub.kernel.partitions import parse_partition_name


def check_request(copy: DatasetCopy, kind: str, params: dict[str, Any]) -> None:
    """Raises Refused for a job that makes no sense on this copy, whoever asks for it."""
    dataset = copy.dataset
    if dataset.offboarded_at is not None and kind != JobKind.DROP:
        raise Refused(f"Dataset `{dataset.name}` is off-boarded: its copies can only be dropped.")
    if not dataset.ingested:
        raise Refused(f"Dataset `{dataset.name}` is monitored where it lies: Lakehub does not write it.")
    check_replica(copy, kind)
    check_work(dataset, kind, params)
    check_repairs(copy, params)
    if kind in READING_KINDS and dataset.feed.paused:
        raise Refused(f"Ingestion of `{dataset.name}` is {dataset.feed.pause_text}. Resume it first.")
    is_of_partitions = kind == JobKind.BACKFILL and not params.get("keys")
    if is_of_partitions and bool(params.get("partitions")) != bool(dataset.partition_column):
        raise Refused("A backfill names `partitions` where the dataset has them, and only there.")
    for name in params.get("partitions", ()):
        _check_partition(copy, name)
    if kind == JobKind.DROP_INDEX and HBASE in (wanted_index(copy), standing_index(copy)):
        raise Refused(
            f"The jobs of {copy} use the index `{HBASE}`, or it is being built for them: choose another first."
        )
    if kind == JobKind.DELETE and bool(params.get("keys")) == bool(params.get("share")):
        raise Refused("A delete needs `keys` or `share`, one of the two.")


def check_work(dataset: Dataset, kind: str, params: Mapping[str, Any]) -> None:
    """Raises Refused for what no job can do. It is also asked when a run begins: its dataset may be another than when the run was asked for."""
    check_params(kind, params)
    check_source(dataset, kind)
    check_rereading(dataset, kind, params)


def _check_partition(copy: DatasetCopy, name: str) -> None:
    try:
        parse_partition_name(name, copy.layout.partition_grain, copy.layout.zone)
    except ValueError as problem:
        raise Refused(str(problem)) from None
