"""From a run in the database to the spec of its job. The connection's URL goes beside the spec, by reference."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypedDict
from uuid import UUID

from django.conf import settings

from ingestion.captures.beginning import is_captured_feed
from ingestion.domain.index_cluster.address import read_address
from ingestion.index_shares.standing import HBASE, standing_index, wanted_index
from ingestion.lake.error_rows import ErrorFilters, read_error_keys
from ingestion.lake.files.small_files import PLANNED
from ingestion.lake.readers import least_retention_hours, retention_hours
from ingestion.models import IndexCluster, JobKind, JobRun, ReplayRequest
from ingestion.pipelines.specs import pipeline_spec_of
from ingestion.runs.index_choice.changing import may_have_table_in_hbase
from ingestion.runs.requests.job_checks import check_work
from ingestion.runs.requests.job_source import reading_of
from ingestion.runs.requests.replicas import check_replica, replication_spec
from ingestion.runs.requests.source_checks import is_landed_feed
from ingestion.spark.contract.job_kinds import READING_KINDS
from ingestion.spark.contract.spec import (
    ClusterSpec,
    DeleteSpec,
    GlobalIndexSpec,
    JobSpec,
    LogMoveSpec,
    PartitionSpec,
    PipelineSpec,
    RawSpec,
    ReplaySpec,
    ReplicationSpec,
    TableSpec,
    VerifySpec,
)
from lakehub.catalog.datasets.feed_options import KEY_STAYS, ON_MOVE, checked_options
from lakehub.catalog.models import Dataset, DatasetCopy, DatasetKind
from lakehub.kernel.errors import Busy, Refused

MAX_REPLAYED = 10_000
"""Rows of the error table that one run tries again."""
BATCH_READ_S, BATCH_LEASE_WAIT_S = 60.0, 10.0
"""After how long a batch ends its reading where it can, and how long it waits for its copy before it is put off: the process that follows the copy
has others to follow."""
BATCH_DEADLINE_S = 180.0
"""After how long a batch is stopped wherever it is: a large file, or many rows that share a value of the cursor, are read in one piece."""
BATCH_SEPARATOR = "."
"""Between the key of a follow run and the batch, in the id of a job."""


class _Work(TypedDict):
    """What a run was asked to do, as fields of JobSpec."""

    pipeline: PipelineSpec | None
    partitions: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    delete: DeleteSpec | None
    replay: ReplaySpec | None
    log_move: LogMoveSpec | None
    cluster: ClusterSpec
    verify: VerifySpec
    raw: RawSpec | None
    replication: ReplicationSpec | None
    replace: bool


def job_spec_of(
    run: JobRun,
    *,
    staging: str,
    ahead: timedelta,
    now: datetime,
    batch: str = "",
    readers: int = 1,
    index_requests_per_s: float | None = None,
) -> tuple[JobSpec, dict[str, str]]:
    """The spec and its secrets. `staging`: the URI of a folder for rows on their way. Raises Refused or a ValueError that says what is wrong.

    `readers`: how many connections it may read at once. `index_requests_per_s`: what it may ask of an index cluster. `batch`: which batch of a follow run it is. Each is an incremental job, and commits once. A follow run without one only looks.
    """
    is_followed = run.kind == JobKind.FOLLOW
    kind, is_look = JobKind.INCREMENTAL if is_followed else run.kind, is_followed and not batch
    check_work(run.copy.dataset, kind, run.params)
    options = _options_of(run, kind, is_look=is_look)
    hours = least_retention_hours() if is_look else retention_hours(run.copy, now=now, wall=now - ahead)
    reading = reading_of(run, kind, is_look=is_look, now=now - ahead)
    index = _global_index_spec(run.copy, kind, options["index"], index_requests_per_s)
    deadline_s = float(options["deadline_s"])
    spec = JobSpec(
        run_id=f"{run.key}{BATCH_SEPARATOR}{batch}" if batch else str(run.key),
        kind=kind,
        table=replace(table_spec_of(run.copy, options, retention_hours=hours), global_index=index),
        source=None if reading is None else reading.spec(options, readers=readers),
        upto=now.isoformat(),
        clock_ahead_s=ahead.total_seconds(),
        staging_uri=f"{staging.rstrip('/')}/{run.copy.data_center.name}",
        deadline_s=min(deadline_s, BATCH_DEADLINE_S) if batch else deadline_s,
        lease_wait_s=BATCH_LEASE_WAIT_S if is_followed else None,
        one_commit=is_followed,
        **_work_of(run, kind),
    )
    return spec, {} if reading is None else reading.secrets


def _options_of(run: JobRun, kind: str, *, is_look: bool) -> dict[str, Any]:
    """The effective ones of the feed, with the index that the job goes by. Raises Refused."""
    feed = run.copy.dataset.feed_or_none
    options = checked_options({} if feed is None else feed.options)
    if run.kind == JobKind.FOLLOW:
        options = {**options, "commit_s": min(float(options["commit_s"]), BATCH_READ_S)}
    if not is_look:  # a look writes nothing, and asks the database nothing
        check_replica(run.copy, kind)
        options["index"] = _index_of(run.copy, kind)
    return options


def _work_of(run: JobRun, kind: str) -> _Work:
    """Raises Refused."""
    copy, params = run.copy, run.params
    return _Work(
        pipeline=_pipeline_spec(copy, kind, params),
        partitions=tuple(params.get("partitions", ())),
        keys=_keys(params) if run.kind == JobKind.BACKFILL else (),
        delete=_delete_spec(params) if run.kind == JobKind.DELETE else None,
        replay=_replay_spec(run) if run.kind == JobKind.REPLAY else None,
        log_move=_log_move_spec(params) if run.kind == JobKind.SET_POSITION else None,
        cluster=PLANNED if params.get("planned") else ClusterSpec(),
        verify=VerifySpec(float(params.get("sampled", 1)), params.get("repairs", False)),
        raw=_raw_spec(copy, kind, params),
        replication=replication_spec(copy) if kind == JobKind.REPLICATE else None,
        replace=params.get("replace", False),
    )


def _pipeline_spec(copy: DatasetCopy, kind: str, params: Mapping[str, Any]) -> PipelineSpec | None:
    if not copy.dataset.is_modelled or kind not in READING_KINDS:
        return None
    return pipeline_spec_of(copy, is_audited=not params.get("unaudited"), skip_to=params.get("skip_to"))


def table_spec_of(copy: DatasetCopy, options: Mapping[str, Any], *, retention_hours: int) -> TableSpec:
    """`options`: the effective ones of the feed."""
    dataset, is_merged = copy.layout, is_captured_feed(copy.dataset.feed_or_none)
    return TableSpec(
        name=dataset.name,
        uri=copy.uri,
        error_uri=error_table_uri(copy),
        record_key=tuple(dataset.record_key or dataset.primary_key),
        # Changes of a log say themselves which of them is the newer.
        reference_key=None if is_merged else dataset.reference_key or None,
        partition_column=dataset.lake_partition_column or None,
        index=options["index"],
        partition_from=_partition_spec(dataset),
        retention_hours=retention_hours,
        max_file_mib=int(options["max_file_mib"]),
        append_only=dataset.kind == DatasetKind.APPEND_ONLY and not is_merged,
        tombstone_uri=_uri_beside(copy, "_tombstones") if is_merged else "",
        history_uri=history_table_uri(copy),
        keeps_history=is_merged and bool(options["history"]),
        history_days=int(options["history_days"]),
        keys_stay=options[ON_MOVE] == KEY_STAYS,
    )


def _index_of(copy: DatasetCopy, kind: str) -> str:
    """That which stands; to be built is the one that is wanted. Raises Refused."""
    index = wanted_index(copy) if kind == JobKind.REBUILD_INDEX else standing_index(copy)
    if kind == JobKind.DROP_INDEX and HBASE in (index, wanted_index(copy)):
        raise Refused(f"The index `{HBASE}` of {copy} is used again, or is being built: its table is not removed.")
    return index


def _global_index_spec(
    copy: DatasetCopy, kind: str, index: str, requests_per_s: float | None
) -> GlobalIndexSpec | None:
    """None: its keys are not in a cluster, or its data center has none yet."""
    if kind in (JobKind.DROP, JobKind.DROP_INDEX):
        is_there = kind == JobKind.DROP_INDEX or may_have_table_in_hbase(copy)
    else:
        is_there = index == HBASE
    cluster = IndexCluster.objects.filter(data_center=copy.data_center).first() if is_there else None
    if cluster is None:
        return None
    address = read_address(cluster.url)
    return GlobalIndexSpec(
        thrift=str(address.thrift or ""),
        quorum=",".join(map(str, address.quorum)),
        staging_uri=address.staging,
        table=f"lakehub-{copy.data_center.name}-{copy.pk}",
        znode=address.znode,
        requests_per_s=requests_per_s,
    )


def _partition_spec(dataset: Dataset) -> PartitionSpec | None:
    form = dataset.source_form
    return None if form is None else PartitionSpec(form.columns, form.grain.value, form.zone.key, form.text)


def error_table_uri(copy: DatasetCopy) -> str:
    """Beside the tables, under the name of the copy's own: a copy that was built anew has another.

    A copy that is only monitored has none, and the name of its dataset may be that of another's table (`flights-2` of `flights`):
    no table's name begins with a dot.
    """
    return _uri_beside(copy, "_errors")


def history_table_uri(copy: DatasetCopy) -> str:
    """Of a captured dataset, whether it keeps a history or has kept one. Empty: of another."""
    return _uri_beside(copy, "_history") if is_captured_feed(copy.dataset.feed_or_none) else ""


def raw_chunks_uri(copy: DatasetCopy) -> str:
    """Below a folder with a dot: no table is called so."""
    return _uri_beside(copy, ".lakehub/raw")


def _raw_spec(copy: DatasetCopy, kind: str, params: Mapping[str, Any]) -> RawSpec | None:
    """Of what lands chunks, or removes them."""
    if kind not in (JobKind.BOOTSTRAP, JobKind.DROP) or not is_landed_feed(copy.dataset.feed_or_none):
        return None
    is_kept = settings.LAKEHUB_RAW_DAYS > 0
    return RawSpec(raw_chunks_uri(copy), is_kept=is_kept, is_read=params.get("from_chunks", False))


def _uri_beside(copy: DatasetCopy, folder: str) -> str:
    name = copy.uri.rstrip("/").rpartition("/")[2] or f".{copy.dataset.name}"
    return f"{copy.data_center.lake_uri.rstrip('/')}/{folder}/{name}"


def chosen_keys(copy: DatasetCopy, replay: ReplayRequest) -> list[str]:
    """Of the rows that the request names those that are still rejected, MAX_REPLAYED at most, the newest first. Raises Refused and Busy."""
    filters = (
        ErrorFilters(keys=tuple(replay.keys))
        if replay.keys
        else ErrorFilters(column=replay.column, kind=replay.reason_kind)
    )
    return read_error_keys(error_table_uri(copy), filters, limit=MAX_REPLAYED)


def run_key_of(run_id: str) -> UUID:
    """The key of the run whose job has this id. Raises ValueError where it is none of ours."""
    return UUID(run_id.partition(BATCH_SEPARATOR)[0])


def _delete_spec(params: dict[str, Any]) -> DeleteSpec:
    return DeleteSpec(keys=_keys(params), share=params.get("share"))


def _keys(params: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(map(str, key)) for key in params.get("keys", ()))


def _log_move_spec(params: dict[str, Any]) -> LogMoveSpec:
    return LogMoveSpec(params["offsets"], may_skip=params.get("may_skip", False))


def _replay_spec(run: JobRun) -> ReplaySpec:
    """Rows of a kind are looked up when the job starts: what was resolved meanwhile is left out."""
    replay = run.replay_request
    try:
        keys = chosen_keys(run.copy, replay)
    except Busy as problem:
        raise Refused(str(problem)) from problem
    fixes = {key: json.dumps(values) for key, values in replay.fixes.items()}
    return ReplaySpec(tuple(keys), run.asked_by, fixes, json.dumps(replay.values))
