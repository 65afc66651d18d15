"""What ingestion saw and quality ought to know: raised once, cleared when it is over. Quality claims both moves and makes results of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from ingestion.models import Finding, JobRun
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import FOREVER, Interval

JOB_FAILING = "job_failing"
ROWS_UNACCOUNTED = "rows_unaccounted"
SCHEMA_INCOMPATIBLE = "schema_incompatible"
CURSOR_UNUSABLE = "cursor_unusable"
PARTITION_UNREADABLE = "partition_unreadable"
PARTITION_AHEAD = "partition_ahead"
"""Rows lie later than now by more than one grain."""
SCHEMA_CHANGED = "schema_changed"
AUDIT_REFUSED = "audit_refused"
"""A pipeline has made rows that do not pass its audits: they are not in its table."""
READER_PASSED = "reader_passed"
"""A reader of increments is further behind than files are kept."""
INDEX_LIMITED = "index_limited"
"""A table has more keys than its index takes, so each batch is looked up in the table itself."""
INDEX_WRONG = "index_wrong"
"""The index of a copy does not know where its keys lie, or the table has a key twice."""
CAPTURE_STOPPED = "capture_stopped"
"""Changes of the dataset are not captured from its server any more, or cannot be: the copy stays as it was then."""

COPY_BEHIND = "copy_behind"
"""Changes of a captured dataset are on their way for longer than its tier allows."""
PIPELINE_BEHIND = "pipeline_behind"
"""Changes of the inputs of a modelled table wait for longer than its tier allows."""
REPLICA_BEHIND = "replica_behind"
"""Commits of the source of a replica wait for longer than its tier allows, or may do so."""
MESSAGES_UNACCOUNTED = "messages_unaccounted"
"""The changelog has another number of messages of an hour than the commits of a copy have read."""
CHANGES_SKIPPED = "changes_skipped"
"""A person has set the position of a copy in the changelog forward: what lies between is missing there."""


def raise_finding(
    copy: DatasetCopy, kind: str, over: Interval, message: str, detail: dict[str, Any], *, now: datetime
) -> None:
    """Open a finding; where one of this kind is open over this very range, its detail is brought up to date. `message` is for people."""
    detail = {"message": message, **detail}
    same = Finding.objects.filter(copy=copy, kind=kind, start=over.start, end=over.end, cleared_at=None)
    if same.update(detail=detail):
        return
    try:
        with transaction.atomic():
            Finding.objects.create(copy=copy, kind=kind, start=over.start, end=over.end, detail=detail, raised_at=now)
    except IntegrityError:
        # Another process has raised it meanwhile.
        same.update(detail=detail)


def replace_findings(
    copy: DatasetCopy, kind: str, current: Mapping[Interval, tuple[str, dict[str, Any]]], *, now: datetime
) -> None:
    """What is seen now of one kind: new ones are raised, those that go on keep their time, all others are cleared."""
    for over, (message, detail) in current.items():
        raise_finding(copy, kind, over, message, detail, now=now)
    for finding in Finding.objects.filter(copy=copy, kind=kind, cleared_at=None):
        if Interval(finding.start, finding.end) not in current:
            Finding.objects.filter(pk=finding.pk, cleared_at=None).update(cleared_at=now)


def raise_job_failing(run: JobRun, why: str, *, now: datetime) -> None:
    """One for each kind of job, from when the first run that was given up was due."""
    earlier = Finding.objects.filter(copy=run.copy, kind=JOB_FAILING, detail__job=run.kind, cleared_at=None).first()
    over = Interval(earlier.start, earlier.end) if earlier else Interval(run.due_at, FOREVER)
    message = f"The {run.kind} was given up because {why}"
    raise_finding(run.copy, JOB_FAILING, over, message, {"run": run.pk, "job": run.kind}, now=now)


def clear_findings(copy: DatasetCopy, kind: str, *, job: str = "", now: datetime) -> None:
    """`job`: only what was raised for this kind of job."""
    still_open = Finding.objects.filter(copy=copy, kind=kind, cleared_at=None)
    (still_open.filter(detail__job=job) if job else still_open).update(cleared_at=now)
