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

from ingestion import findings
from ingestion.models import Commit, JobRun, TouchedPartition
from ingestion.spark.tables.timeline import LakeCommit, Timeline
from lakehub.catalog import changes
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.calendar import partition_named
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.waking import wake

logger = logging.getLogger(__name__)


def take_in(copy: DatasetCopy, *, now: datetime) -> list[Commit]:
    """The commits that were not known, in the order of their completion. Safe to run twice, or in two processes at once."""
    timeline = Timeline(copy.uri)
    if not timeline.exists:
        return []
    ours = Commit.objects.filter(copy=copy, instant__in=timeline.instants())
    known = set(ours.values_list("instant", flat=True))
    news = list(timeline.commits(but=known))
    made = [record(copy, found, now=now) for found in news]
    if any(made):
        wake(settings.LAKEHUB_TASK_ON_COMMIT)
    if any(found.run.get("schema", {}).get(how) for found in news for how in ("added", "widened")):
        _follow_schema(copy.dataset, now=now)
    return [commit for commit in made if commit is not None]


def _follow_schema(dataset: Dataset, *, now: datetime) -> None:
    """A column that came with a commit is one that tests may name. A source that is out of reach now is asked again by hand."""
    try:
        changes.refresh_columns(dataset, actor="ingestion", now=now)
    except Refused as problem:
        logger.warning("the columns of %s were not read again: %s", dataset, problem)


def record(copy: DatasetCopy, found: LakeCommit, *, now: datetime) -> Commit | None:
    """None: another process was faster."""
    facts = {
        "run": _run_of(found, copy),
        "completed_at": found.completed_at,
        "operation": found.operation.lower(),
        "checkpoint": found.checkpoint,
        "source_committed_upto": _time(found.run.get("source_committed_upto")),
        **found.run.get("counts", {}),
        **_written(found),
    }
    with transaction.atomic():
        commit, is_new = Commit.objects.get_or_create(copy=copy, instant=found.instant, defaults=facts)
        if not is_new:
            return None
        touched = {} if found.rearranges else touched_by(found, copy.dataset)
        TouchedPartition.objects.bulk_create(
            TouchedPartition(commit=commit, copy=copy, start=over.start, end=over.end, rows=rows)
            for over, rows in touched.items()
        )
        _judge(copy, commit, found, list(touched), now)
    return commit


def touched_by(found: LakeCommit, dataset: Dataset) -> dict[Interval, int]:
    """Rows changed by partition; a name that is no partition of the dataset's grain may be anywhere, so it touches everything."""
    rows: dict[Interval, int] = {}
    for name, change in found.partitions.items():
        over = _interval(name, dataset)
        rows[over] = rows.get(over, 0) + change.rows
    return rows


def _interval(name: str, dataset: Dataset) -> Interval:
    try:
        return partition_named(name, dataset.partition_grain, dataset.zone)
    except ValueError:
        return EVERYTHING


def _judge(copy: DatasetCopy, commit: Commit, found: LakeCommit, touched: list[Interval], now: datetime) -> None:
    """Are all rows that were read accounted for, and did the schema fit? Known for our own commits only."""
    if not found.run:
        return
    over = Interval(min(each.start for each in touched), max(each.end for each in touched)) if touched else EVERYTHING
    at = {"commit": commit.instant}
    problem = unaccounted(commit)
    if problem:
        findings.raise_once(copy, findings.UNACCOUNTED, over, f"Commit {commit.instant}: {problem}.", at, now=now)
    conflicts = found.run.get("schema", {}).get("conflicts", [])
    if conflicts:
        told = "; ".join(
            f"`{name}` is {stored} here and {incoming} in the source" for name, stored, incoming in conflicts
        )
        findings.raise_once(copy, findings.SCHEMA, EVERYTHING, told, at | {"columns": conflicts}, now=now)
    elif "conflicts" in found.run.get("schema", {}):
        findings.clear(copy, findings.SCHEMA, now=now)


def unaccounted(commit: Commit) -> str:
    """What is wrong with the sum of a commit; nothing where it holds or is not known."""
    parts = [commit.applied, commit.superseded, commit.redelivered, commit.errors]
    if commit.read is None or commit.applied is None:
        return ""
    told = sum(part or 0 for part in parts)
    if commit.read != told:
        return f"{commit.read} rows were read, but {told} are accounted for"
    written = commit.inserts + commit.updates + commit.deletes
    return f"{commit.applied} rows were applied, but {written} keys written" if written > commit.applied else ""


def _written(found: LakeCommit) -> dict[str, int]:
    changes = found.partitions.values()
    return {what: sum(getattr(change, what) for change in changes) for what in ("inserts", "updates", "deletes")}


def _run_of(found: LakeCommit, copy: DatasetCopy) -> JobRun | None:
    try:
        key = UUID(str(found.run.get("run_id", "")))
    except ValueError:
        return None
    return JobRun.objects.filter(key=key, copy=copy).first()


def _time(text: Any) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
