"""The lake's own timeline as rows: every commit once, with the partitions that it touched, whoever made it.

A job's report is a hint; this is the truth. A commit that was made just before its job died is found here as well.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from ingestion.lake import findings
from ingestion.models import Commit, JobRun, TouchedPartition
from ingestion.spark.tables.timeline import TABLE_SERVICES, LakeCommit, Timeline
from lakehub.catalog.datasets import changes
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.partitions import parse_partition_name
from lakehub.processes.task_wakeup import wake_task

logger = logging.getLogger(__name__)


def record_new_commits(copy: DatasetCopy, *, now: datetime) -> list[Commit]:
    """The commits that were not known, in the order of their completion. Safe to run twice, or in two processes at once."""
    timeline = Timeline(copy.uri)
    if not timeline.exists:
        return []
    stored_commits = Commit.objects.filter(copy=copy, instant__in=timeline.instants())
    known_instants = set(stored_commits.values_list("instant", flat=True))
    new_commits = list(timeline.commits(but=known_instants))
    recorded_commits = [record_commit(copy, lake_commit, now=now) for lake_commit in new_commits]
    if any(recorded_commits):
        wake_task(settings.LAKEHUB_TASK_ON_COMMIT)
    if any(lake_commit.run.get("schema", {}).get(how) for lake_commit in new_commits for how in ("added", "widened")):
        _refresh_columns(copy.dataset, now=now)
    return [commit for commit in recorded_commits if commit is not None]


def _refresh_columns(dataset: Dataset, *, now: datetime) -> None:
    """A column that came with a commit is one that tests may name. A source that is out of reach now is asked again by hand."""
    try:
        changes.refresh_columns(dataset, actor="ingestion", now=now)
    except Refused as problem:
        logger.warning("the columns of %s were not read again: %s", dataset, problem)


def record_commit(copy: DatasetCopy, lake_commit: LakeCommit, *, now: datetime) -> Commit | None:
    """None: another process was faster."""
    facts = {
        "run": _run_of(lake_commit, copy),
        "completed_at": lake_commit.completed_at,
        "operation": lake_commit.operation.lower(),
        "checkpoint": lake_commit.checkpoint,
        "source_committed_upto": _parse_instant(lake_commit.run.get("source_committed_upto")),
        **lake_commit.run.get("counts", {}),
        **_written_counts(lake_commit),
    }
    with transaction.atomic():
        commit, is_new = Commit.objects.get_or_create(copy=copy, instant=lake_commit.instant, defaults=facts)
        if not is_new:
            return None
        touched = {} if lake_commit.operation in TABLE_SERVICES else touched_partitions(lake_commit, copy.dataset)
        TouchedPartition.objects.bulk_create(
            TouchedPartition(commit=commit, copy=copy, start=over.start, end=over.end, rows=rows)
            for over, rows in touched.items()
        )
        _raise_findings(copy, commit, lake_commit, list(touched), now)
    return commit


def touched_partitions(lake_commit: LakeCommit, dataset: Dataset) -> dict[Interval, int]:
    """Rows changed by partition; a name that is no partition of the dataset's grain may be anywhere, so it touches everything."""
    rows: dict[Interval, int] = {}
    for name, change in lake_commit.partitions.items():
        over = _partition_interval(name, dataset)
        rows[over] = rows.get(over, 0) + sum(change)
    return rows


def _partition_interval(name: str, dataset: Dataset) -> Interval:
    try:
        return parse_partition_name(name, dataset.partition_grain, dataset.zone)
    except ValueError:
        return EVERYTHING


def _raise_findings(
    copy: DatasetCopy, commit: Commit, lake_commit: LakeCommit, touched: list[Interval], now: datetime
) -> None:
    """Are all rows that were read accounted for, and did the schema fit? Known for our own commits only."""
    if not lake_commit.run:
        return
    over = (
        Interval(min(interval.start for interval in touched), max(interval.end for interval in touched))
        if touched
        else EVERYTHING
    )
    at = {"commit": commit.instant}
    problem = accounting_error(commit)
    if problem:
        findings.raise_finding(
            copy, findings.ROWS_UNACCOUNTED, over, f"Commit {commit.instant}: {problem}.", at, now=now
        )
    conflicts = lake_commit.run.get("schema", {}).get("conflicts", [])
    if conflicts:
        conflicts_text = "; ".join(
            f"`{name}` is {stored} here and {incoming} in the source" for name, stored, incoming in conflicts
        )
        findings.raise_finding(
            copy, findings.SCHEMA_INCOMPATIBLE, EVERYTHING, conflicts_text, at | {"columns": conflicts}, now=now
        )
    elif "conflicts" in lake_commit.run.get("schema", {}):
        findings.clear_findings(copy, findings.SCHEMA_INCOMPATIBLE, now=now)


def accounting_error(commit: Commit) -> str:
    """What is wrong with the sum of a commit; nothing where it holds or is not known."""
    parts = [commit.applied, commit.superseded, commit.redelivered, commit.errors]
    if commit.read is None or commit.applied is None:
        return ""
    accounted = sum(part or 0 for part in parts)
    if commit.read != accounted:
        return f"{commit.read} rows were read, but {accounted} are accounted for"
    written = commit.inserts + commit.updates + commit.deletes
    return f"{commit.applied} rows were applied, but {written} keys written" if written > commit.applied else ""


def _written_counts(lake_commit: LakeCommit) -> dict[str, int]:
    changes = lake_commit.partitions.values()
    return {
        operation: sum(getattr(change, operation) for change in changes)
        for operation in ("inserts", "updates", "deletes")
    }


def _run_of(lake_commit: LakeCommit, copy: DatasetCopy) -> JobRun | None:
    try:
        key = UUID(str(lake_commit.run.get("run_id", "")))
    except ValueError:
        return None
    return JobRun.objects.filter(key=key, copy=copy).first()


def _parse_instant(text: Any) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
