"""What ingestion saw and quality ought to know: raised once, cleared when it is over. Quality claims both moves and makes results of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from ingestion.models import Finding
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import Interval

JOB_FAILING = "job_failing"
UNACCOUNTED = "rows_unaccounted"
SCHEMA = "schema_incompatible"
KINDS = (JOB_FAILING, UNACCOUNTED, SCHEMA)


def raise_once(
    copy: DatasetCopy, kind: str, over: Interval, message: str, detail: dict[str, Any], *, now: datetime
) -> None:
    """Open a finding; where one of this kind is open already, its detail is brought up to date. `message` is for people."""
    detail = {"message": message, **detail}
    if Finding.objects.filter(copy=copy, kind=kind, cleared_at=None).update(detail=detail):
        return
    try:
        with transaction.atomic():
            Finding.objects.create(copy=copy, kind=kind, start=over.start, end=over.end, detail=detail, raised_at=now)
    except IntegrityError:
        # Another process has raised it meanwhile.
        Finding.objects.filter(copy=copy, kind=kind, cleared_at=None).update(detail=detail)


def clear(copy: DatasetCopy, *kinds: str, now: datetime) -> None:
    Finding.objects.filter(copy=copy, kind__in=kinds, cleared_at=None).update(cleared_at=now)
