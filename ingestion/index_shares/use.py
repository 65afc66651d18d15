"""What the jobs of a copy have asked of its index cluster: told in their reports, kept with the copy's share."""

from __future__ import annotations

from datetime import datetime

from django.db.models import F

from ingestion.index_shares.shares import note_table
from ingestion.models import IndexShare
from ingestion.spark.contract.report import IndexUse
from lakehub.catalog.models import DatasetCopy


def note_servers(copy: DatasetCopy, servers: int) -> None:
    """A job at work has counted them: what it may send follows with its next renewal. 0: it has not."""
    if servers:
        note_table(copy, servers=servers)


def note_use(copy: DatasetCopy, use: IndexUse, *, now: datetime) -> None:
    """After the job's commits were recorded: entries that it has counted hold whatever these say. Without a share nothing is kept."""
    if use.servers or use.entries is not None:
        note_table(copy, servers=use.even_servers or None, rows=use.entries)
    requests = use.reads + use.writes
    if requests:
        IndexShare.objects.filter(copy=copy).update(
            requests=F("requests") + requests, used_requests=requests, used_seconds=use.seconds, used_at=now
        )
