"""From a run in the database to the spec of its job. The connection's URL goes beside the spec, by reference."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from ingestion.models import JobKind, JobRun
from ingestion.spark.contract.job_kinds import READING_KINDS
from ingestion.spark.contract.spec import DeleteSpec, JobSpec, PartitionSpec, SourceSpec, TableSpec
from lakehub.catalog.datasets.feed_options import checked_options
from lakehub.catalog.models import Connection, Dataset, DatasetCopy, Feed, FeedKind
from lakehub.kernel.errors import Refused
from lakehub.kernel.suggest import did_you_mean

SOURCE_URL_VARIABLE = "LAKEHUB_SOURCE_URL"
PARAMS_BY_KIND = {
    JobKind.BOOTSTRAP: ("replace",),
    JobKind.INCREMENTAL: (),
    JobKind.BACKFILL: ("partitions",),
    JobKind.DELETE: ("partitions", "keys", "share"),
    JobKind.DROP: (),
}
"""What each kind of job may be told."""
_REMEDIES = {
    FeedKind.CHANGELOG: "Its rows come with the events of the changelog; to load a table, onboard the table with its connection.",
    FeedKind.PIPELINE: "Request the job for the datasets that the pipeline reads.",
}
"""What to do instead of a job that would read a table."""


def job_spec_of(run: JobRun, *, staging: str, ahead: timedelta, now: datetime) -> tuple[JobSpec, dict[str, str]]:
    """The spec and its secrets. `staging`: the URI of a folder for rows on their way. Raises Refused or a ValueError that says what is wrong."""
    copy, params = run.copy, run.params
    feed = copy.dataset.feed_or_none
    check_source(copy.dataset, run.kind)
    connection = feed.connection if feed is not None and run.kind in READING_KINDS else None
    options = checked_options({} if feed is None else feed.options)
    spec = JobSpec(
        run_id=str(run.key),
        kind=run.kind,
        table=table_spec_of(copy, index=options["index"]),
        source=_source_spec(feed, connection, options) if feed is not None and connection is not None else None,
        upto=now.isoformat(),
        clock_ahead_s=ahead.total_seconds(),
        partitions=tuple(params.get("partitions", ())),
        delete=_delete_spec(params) if run.kind == JobKind.DELETE else None,
        replace=bool(params.get("replace", False)),
        staging_uri=f"{staging.rstrip('/')}/{copy.data_center.name}",
        deadline_s=float(options["deadline_s"]),
    )
    return spec, {} if connection is None else {SOURCE_URL_VARIABLE: connection.url}


def table_spec_of(copy: DatasetCopy, *, index: str) -> TableSpec:
    dataset = copy.layout
    return TableSpec(
        name=dataset.name,
        uri=copy.uri,
        error_uri=error_table_uri(copy),
        record_key=tuple(dataset.record_key or dataset.primary_key),
        reference_key=dataset.reference_key or None,
        partition_column=dataset.lake_partition_column or None,
        index=index,
        partition_from=_partition_spec(dataset),
        retention_hours=settings.LAKEHUB_LAKE_RETENTION_HOURS,
    )


def _partition_spec(dataset: Dataset) -> PartitionSpec | None:
    form = dataset.source_form
    return None if form is None else PartitionSpec(form.columns, form.grain.value, form.zone.key, form.text)


def error_table_uri(copy: DatasetCopy) -> str:
    """Beside the tables, under the name of the copy's own: a copy that was built anew has another."""
    name = copy.uri.rstrip("/").rpartition("/")[2] or copy.dataset.name
    return f"{copy.data_center.lake_uri.rstrip('/')}/_errors/{name}"


def check_params(kind: str, params: dict[str, Any]) -> None:
    """Raises Refused for what this kind of job does not know."""
    known_params = PARAMS_BY_KIND[JobKind(kind)]
    for name in params:
        if name not in known_params:
            raise Refused(f"A job of the kind `{kind}` has no parameter `{name}`.{did_you_mean(name, known_params)}")


def check_source(dataset: Dataset, kind: str) -> None:
    """Raises Refused where a job of this kind would read a source, and the dataset's feed is none that it can read."""
    feed = dataset.feed_or_none
    if kind not in READING_KINDS or (feed is not None and feed.kind == FeedKind.CONNECTION):
        return
    if feed is None:
        raise Refused(
            "The dataset has no feed: it says where its rows come from. Onboard it with a connection and a table."
        )
    raise Refused(
        f"Dataset `{dataset.name}` cannot be loaded by the job `{kind}`: its feed is a {feed.kind} (`{feed.object}`), "
        f"and the job reads a table of a connection. {_REMEDIES[FeedKind(feed.kind)]}"
    )


def _source_spec(feed: Feed, connection: Connection, options: dict[str, Any]) -> SourceSpec:
    return SourceSpec(
        plugin=connection.plugin,
        url_ref=f"env:{SOURCE_URL_VARIABLE}",
        object=feed.object,
        cursor_column=feed.cursor_column or None,
        overlap_s=float(options["overlap_s"]),
        chunk_rows=int(options["chunk_rows"]),
    )


def _delete_spec(params: dict[str, Any]) -> DeleteSpec:
    return DeleteSpec(keys=tuple(tuple(map(str, key)) for key in params.get("keys", ())), share=params.get("share"))
