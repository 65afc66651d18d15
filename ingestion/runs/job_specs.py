"""From a run in the database to the spec of its job. The connection's URL goes beside the spec, by reference."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from ingestion.capture.null_instead import as_option
from ingestion.capture.tap.hidden_columns import KEY_OPTION, HiddenColumns
from ingestion.captures.beginning import is_captured_feed
from ingestion.captures.hidden_columns import hidden_columns_of
from ingestion.captures.policies import required_columns_of
from ingestion.captures.topics import topic_to_look_at, topic_to_read
from ingestion.domain.index_cluster.address import read_address
from ingestion.domain.pace import piece_rows
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.index_shares.standing import HBASE, standing_index, wanted_index
from ingestion.lake.error_rows import ErrorFilters, read_error_keys
from ingestion.lake.files.small_files import PLANNED
from ingestion.lake.readers import least_retention_hours, retention_hours
from ingestion.models import IndexCluster, JobKind, JobRun, Pipeline, ReplayRequest
from ingestion.pipelines.specs import pipeline_spec_of
from ingestion.runs.index_choice.changing import may_have_table_in_hbase
from ingestion.runs.requests.params import check_params
from ingestion.runs.requests.replicas import check_replica, replication_spec
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
    SourceSpec,
    TableSpec,
    VerifySpec,
)
from lakehub.catalog.datasets.feed_options import KEY_STAYS, ON_MOVE, checked_options
from lakehub.catalog.models import Connection, Dataset, DatasetCopy, DatasetKind, Feed, FeedKind
from lakehub.catalog.storages import is_captured, lands_chunks
from lakehub.kernel.errors import Busy, Refused

SOURCE_URL_VARIABLE, CHANGELOG_URL_VARIABLE = "LAKEHUB_SOURCE_URL", "LAKEHUB_CHANGELOG_URL"
HASH_KEY_VARIABLE = "LAKEHUB_HASH_KEY"
MAX_KEYS = 10_000
"""Of rows that one run reads again."""
MAX_REPLAYED = 10_000
"""Rows of the error table that one run tries again."""
BATCH_READ_S, BATCH_LEASE_WAIT_S = 60.0, 10.0
"""After how long a batch ends its reading where it can, and how long it waits for its copy before it is put off: the process that follows the copy
has others to follow."""
BATCH_DEADLINE_S = 180.0
"""After how long a batch is stopped wherever it is: a large file, or many rows that share a value of the cursor, are read in one piece."""
_KINDS_IN_A_LOG = (JobKind.REPLAY, JobKind.SET_POSITION)
"""They have to do with the changelog of a captured dataset, and not with its table."""
BATCH_SEPARATOR = "."
"""Between the key of a follow run and the batch, in the id of a job."""
_REMEDIES = {
    FeedKind.PIPELINE: "It has no files: register the pipeline with `manage.py pipelines register FOLDER`.",
    FeedKind.CHANGELOG: "Its rows come with the events of the changelog; to load a table, onboard the table with its connection.",
}
"""What to do instead of a job that would read a table."""


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
    copy, params = run.copy, run.params
    check_params(run.kind, params)  # a run may have been asked for before its parameters were checked so
    feed = copy.dataset.feed_or_none
    kind = JobKind.INCREMENTAL if run.kind == JobKind.FOLLOW else run.kind
    check_source(copy.dataset, kind)
    check_rereading(copy.dataset, kind, params)
    reads = kind in READING_KINDS or (kind in _KINDS_IN_A_LOG and is_captured_feed(feed))
    connection = feed.connection if feed is not None and reads else None
    options = checked_options({} if feed is None else feed.options)
    if run.kind == JobKind.FOLLOW:
        options = {**options, "commit_s": min(float(options["commit_s"]), BATCH_READ_S)}
    is_look = run.kind == JobKind.FOLLOW and not batch  # it writes nothing, and asks the database nothing
    if not is_look:
        check_replica(copy, kind)
        options["index"] = _index_of(copy, kind)
    kept_h = least_retention_hours() if is_look else retention_hours(copy, now=now, wall=now - ahead)
    topic = _topic(run, connection, is_look=is_look, now=now - ahead)
    hidden = HiddenColumns() if feed is None or topic is None else hidden_columns_of(feed)
    secrets = _secrets(connection, topic, hidden)
    spec = JobSpec(
        run_id=f"{run.key}{BATCH_SEPARATOR}{batch}" if batch else str(run.key),
        kind=kind,
        table=replace(
            table_spec_of(copy, options, retention_hours=kept_h),
            global_index=_global_index_spec(copy, kind, options["index"], index_requests_per_s),
        ),
        source=None
        if feed is None or connection is None
        else replace(_source_spec(feed, connection, options, topic, hidden), readers=readers),
        pipeline=_pipeline_spec(copy, kind, params),
        upto=now.isoformat(),
        clock_ahead_s=ahead.total_seconds(),
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
        staging_uri=f"{staging.rstrip('/')}/{copy.data_center.name}",
        deadline_s=min(float(options["deadline_s"]), BATCH_DEADLINE_S) if batch else float(options["deadline_s"]),
        lease_wait_s=BATCH_LEASE_WAIT_S if run.kind == JobKind.FOLLOW else None,
        one_commit=run.kind == JobKind.FOLLOW,
    )
    return spec, secrets


def _pipeline_spec(copy: DatasetCopy, kind: str, params: Mapping[str, Any]) -> PipelineSpec | None:
    if not copy.dataset.is_modelled or kind not in READING_KINDS:
        return None
    return pipeline_spec_of(copy, is_audited=not params.get("unaudited"), skip_to=params.get("skip_to"))


def _secrets(connection: Connection | None, topic: EventTopic | None, hidden: HiddenColumns) -> dict[str, str]:
    url = "" if connection is None else connection.url
    log_url = "" if topic is None else topic.url
    secrets = {SOURCE_URL_VARIABLE: url, CHANGELOG_URL_VARIABLE: log_url, HASH_KEY_VARIABLE: hidden.key}
    return {name: secret for name, secret in secrets.items() if secret}


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


def is_landed_feed(feed: Feed | None) -> bool:
    """Are the chunks kept for a while that its loads read?"""
    return feed is not None and feed.connection is not None and lands_chunks(feed.connection.plugin)


def check_rereading(dataset: Dataset, kind: str, params: Mapping[str, Any]) -> None:
    """Raises Refused for what cannot be read again of this dataset."""
    if kind == JobKind.BOOTSTRAP and params.get("from_chunks"):
        _check_chunks(dataset, params)
    if kind == JobKind.BACKFILL:
        _check_backfill(dataset, params)


def _check_backfill(dataset: Dataset, params: Mapping[str, Any]) -> None:
    """Of a captured dataset single rows, of any other partitions."""
    feed, keys = dataset.feed_or_none, params.get("keys") or ()
    is_landed = is_landed_feed(feed)
    if is_captured_feed(feed) and (not keys or not is_landed):
        single = "name the `keys` of rows that are to be read, or " if is_landed else ""
        raise Refused(
            f"Dataset `{dataset.name}` is captured: all changes of its table are in the lake, so no partition is read again. "
            f"Where rows are missing, {single}bootstrap it with `replace`."
        )
    if keys and not is_landed:
        raise Refused(
            f"Single rows of `{dataset.name}` cannot be read again: only those of tables that are captured from a MariaDB. Name partitions, or bootstrap it with `replace`."
        )
    if keys and params.get("partitions"):
        raise Refused("A backfill names `keys` or `partitions`, and not both.")
    if len(keys) > MAX_KEYS:
        raise Refused(
            f"{len(keys):,} keys are given: a backfill reads {MAX_KEYS:,} at most. Ask for the others in another."
        )
    width = len(dataset.record_key or dataset.primary_key)
    if any(len(key) != width for key in keys):
        raise Refused(
            f"Each of the `keys` has the {width} values of the record key, in its order: {', '.join(dataset.record_key or dataset.primary_key)}."
        )


def _check_chunks(dataset: Dataset, params: Mapping[str, Any]) -> None:
    """Whether the chunks are there is seen by the load."""
    if not params.get("replace"):
        raise Refused("`from_chunks` reads again what the last load has read: ask for `replace`, too.")
    feed = dataset.feed_or_none
    if not is_landed_feed(feed):
        raise Refused(
            f"Dataset `{dataset.name}` cannot be loaded from chunks: those of tables are kept that are captured from a MariaDB. Leave `from_chunks` out."
        )


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


def check_source(dataset: Dataset, kind: str) -> None:
    """Raises Refused where a job of this kind would read a source, and the dataset's feed is none that it can read."""
    feed = dataset.feed_or_none
    if kind not in READING_KINDS or (feed is not None and (feed.kind == FeedKind.CONNECTION or _is_registered(feed))):
        return
    if feed is None:
        raise Refused(
            "The dataset has no feed: it says where its rows come from. Onboard it with a connection and a table."
        )
    raise Refused(
        f"Dataset `{dataset.name}` cannot be loaded by the job `{kind}`: its feed is a {feed.kind} (`{feed.object}`), "
        f"and the job reads a table of a connection. {_REMEDIES[FeedKind(feed.kind)]}"
    )


def _is_registered(feed: Feed) -> bool:
    return feed.dataset.is_modelled and Pipeline.objects.filter(dataset=feed.dataset_id).exists()


def run_key_of(run_id: str) -> UUID:
    """The key of the run whose job has this id. Raises ValueError where it is none of ours."""
    return UUID(run_id.partition(BATCH_SEPARATOR)[0])


def _topic(run: JobRun, connection: Connection | None, *, is_look: bool, now: datetime) -> EventTopic | None:
    """None: the rows of the dataset do not come from a changelog. A look knows what its run was read with (`follow_runs.held`)."""
    if connection is None or not is_captured(connection.plugin):
        return None
    if not is_look:
        return topic_to_read(run.copy.dataset, now=now)
    accepted, emptied = (getattr(run, name, None) or 0 for name in ("accepted", "emptied"))
    return topic_to_look_at(run.copy.dataset, accepted, emptied)


def _source_spec(
    feed: Feed, connection: Connection, options: dict[str, Any], topic: EventTopic | None, hidden: HiddenColumns
) -> SourceSpec:
    # Its URL may have a password.
    topic_options = (
        {} if topic is None else {name: text for name, text in topic.as_options().items() if name != "changelog_url"}
    )
    refs = {} if topic is None else {"changelog_url": f"env:{CHANGELOG_URL_VARIABLE}"}
    refs |= {KEY_OPTION: f"env:{HASH_KEY_VARIABLE}"} if hidden.key else {}
    return SourceSpec(
        plugin=connection.plugin,
        url_ref=f"env:{SOURCE_URL_VARIABLE}",
        object=feed.object,
        cursor_column=feed.cursor_column or None,
        overlap_s=float(options["overlap_s"]),
        options=topic_options | hidden.as_options() | as_option(None if topic is None else required_columns_of(feed)),
        option_refs=refs,
        # By the limit of the connection, of which the job does not know; its own pace it minds itself.
        chunk_rows=piece_rows(int(options["chunk_rows"]), connection.rows_per_s),
        commit_rows=int(options["commit_rows"]),
        commit_bytes=int(options["commit_mib"]) * 2**20,
        commit_s=float(options["commit_s"]),
        rows_per_s=float(options["rows_per_s"]) or None,
        is_paid_for=connection.rows_per_s is not None,
    )


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
