"""What audits have refused: taken over from the report of a run, with findings, until a later run or a person puts an end to it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from django.db import transaction

from ingestion.lake import findings
from ingestion.models import BatchOutcome, JobKind, JobRun, RefusedBatch
from ingestion.spark.contract.report import NOTHING_TO_DO, REFUSED, SUCCEEDED, JobReport
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.partitions import parse_partition_name

_ROW_FIELDS = ("columns", "rows")
MAX_FINDINGS = 100
"""Partitions of one copy that are named; more are one finding over everything."""


def note_outcome(run: JobRun, report: JobReport, *, now: datetime) -> JobReport:
    """Of a run of a pipeline that has ended. The report as it may be shown: without rows."""
    if report.status == REFUSED:
        return _note_refused(run, report, now)
    if report.status in (SUCCEEDED, NOTHING_TO_DO):
        _note_passed(run, report.status, now)
    return report


def open_batches(copy: DatasetCopy) -> list[RefusedBatch]:
    """At most one for each kind of run, and for each set of partitions that was backfilled."""
    return list(RefusedBatch.objects.filter(copy=copy, ended_at=None).select_related("run").order_by("-pk"))


def end_batch(batch: RefusedBatch, outcome: BatchOutcome, *, now: datetime) -> None:
    """With the findings that were its."""
    with transaction.atomic():
        RefusedBatch.objects.filter(pk=batch.pk, ended_at=None).update(outcome=outcome, ended_at=now)
        _bring_findings_up_to_date(batch.copy, now)


def _note_refused(run: JobRun, report: JobReport, now: datetime) -> JobReport:
    facts = report.output["refused"]
    audits = [{name: value for name, value in audit.items() if name not in _ROW_FIELDS} for audit in facts["audits"]]
    samples = [{name: audit[name] for name in _ROW_FIELDS} for audit in facts["audits"]]
    newest = {
        "run": run,
        "audits": audits,
        "samples": samples,
        "kept_at": facts["kept_at"],
        "position": facts["position"],
    }
    with transaction.atomic():
        RefusedBatch.objects.update_or_create(
            copy=run.copy,
            kind=run.kind,
            subject=_subject(run),
            ended_at=None,
            defaults={**newest, "decided_by": "", "reason": "", "decision_run": None},
            create_defaults={**newest, "refused_at": now},
        )
        _bring_findings_up_to_date(run.copy, now)
    return replace(report, output={**report.output, "refused": {**facts, "audits": audits}})


def _subject(run: JobRun) -> str:
    names = run.params.get("partitions")
    return sha256("\0".join(sorted(names)).encode()).hexdigest() if names else ""


def _note_passed(run: JobRun, status: str, now: datetime) -> None:
    for batch in open_batches(run.copy):
        if _has_passed(batch, run, status):
            decided = {"unaudited": BatchOutcome.PUBLISHED, "skip_to": BatchOutcome.DROPPED}
            outcome = next((decided[name] for name in decided if run.params.get(name)), BatchOutcome.PASSED)
            end_batch(batch, outcome, now=now)


def _has_passed(batch: RefusedBatch, run: JobRun, status: str) -> bool:
    """A load has recomputed everything; a backfill its partitions; all others say something of their own kind only."""
    if run.kind == JobKind.BOOTSTRAP:
        return status == SUCCEEDED
    if run.kind != batch.kind:
        return False
    return {*batch.run.params.get("partitions", ())} <= {*run.params.get("partitions", ())}


def _bring_findings_up_to_date(copy: DatasetCopy, now: datetime) -> None:
    by_range: dict[Interval, list[str]] = defaultdict(list)
    for batch in open_batches(copy):
        for audit in batch.audits:
            for over in _ranges(copy, audit):
                by_range[over].append(f"`{audit['audit']}` ({audit['test']})")
    current: dict[Interval, tuple[str, dict[str, Any]]] = {
        over: (f"Rows that were made do not pass {', '.join(dict.fromkeys(audits))}: they were not committed.", {})
        for over, audits in by_range.items()
    }
    findings.replace_findings(copy, findings.AUDIT_REFUSED, current, now=now)


def _ranges(copy: DatasetCopy, audit: dict[str, Any]) -> list[Interval]:
    names = audit["partitions"]
    if not names or len(names) > MAX_FINDINGS:
        return [EVERYTHING]
    return [_range(copy, name) for name in names]


def _range(copy: DatasetCopy, name: str) -> Interval:
    try:
        return parse_partition_name(name, copy.layout.partition_grain, copy.layout.zone)
    except ValueError:
        return EVERYTHING
