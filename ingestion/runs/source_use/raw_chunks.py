"""For how long the raw chunks of loads are kept: for some days after the load, and no longer than the dataset."""

from __future__ import annotations

from datetime import datetime, timedelta

from ingestion.models import JobKind, JobRun
from ingestion.raw_chunks.folders import RawFolder
from ingestion.runs.job_runs import ACTIVE
from ingestion.runs.job_specs import raw_chunks_uri
from ingestion.runs.requests.source_checks import is_landed_feed
from ingestion.spark.tables.timeline import open_storage
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.error_isolation import log_and_continue


def delete_old(*, wall: datetime, retention: timedelta) -> None:
    """Of each load that nothing was written to for `retention`, and of copies that are off-boarded or removed. What a load may go on with stays.

    `wall`: by the clock of files."""
    copies = DatasetCopy.with_removed.select_related("dataset__feed__connection", "data_center")
    loading = JobRun.objects.filter(kind=JobKind.BOOTSTRAP, state__in=ACTIVE).values("copy")
    for copy in copies.filter(dataset__ingested=True).exclude(pk__in=loading):
        if is_landed_feed(copy.dataset.feed_or_none):
            uri = raw_chunks_uri(copy)
            with log_and_continue(f"Removing the raw chunks of {copy} below {uri}"):
                _delete_of(uri, wall - retention if _is_live(copy) else None)


def _is_live(copy: DatasetCopy) -> bool:
    return copy.removed_at is None and copy.dataset.offboarded_at is None


def _delete_of(uri: str, before: datetime | None) -> None:
    """None: all."""
    folder = RawFolder(*open_storage(uri))
    if before is None:
        folder.remove()
        return
    for load in folder.loads():
        written_at = load.written_at()
        if written_at is None or written_at < before:
            load.remove()
