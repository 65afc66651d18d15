"""Findings of ingestion become results of the category *ingestion*: raised is FAIL, cleared is PASS."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from ingestion.models import Finding
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.error_isolation import log_and_continue
from lakehub.kernel.outcome import Outcome
from quality.checks.finding import FINDING
from quality.domain.verdicts.unit_verdict import Waiver, waive
from quality.generation.definitions import save_definition
from quality.models import QualityTest, Result, Unit
from quality.state.dataset_facts import dataset_facts_or_defaults
from quality.state.unit_state import apply_facts, facts_with_result, save_units

CLAIM_BATCH = 200
_MIN_STEP = timedelta(microseconds=1)
_RAISED = Q(raise_claimed_at=None)
_CLEARED = Q(raise_claimed_at__isnull=False, clear_claimed_at=None)


def observe_findings(*, now: datetime) -> int:
    """Claims what was raised and what was cleared since. The number of results."""
    over = _CLEARED & Q(cleared_at__lte=now)
    return _observe_claimed(_RAISED, _observe_raised, now=now) + _observe_claimed(over, _observe_cleared, now=now)


def _observe_claimed(unclaimed: Q, observe_one: Callable[[Finding, datetime], None], *, now: datetime) -> int:
    """One transaction a copy."""
    # Those of a table that is being built count when it has taken the place of the present one.
    built_copies = DatasetCopy.with_removed.filter(rebuild__isnull=False)
    findings = Finding.objects.filter(unclaimed).exclude(copy__in=built_copies).order_by("pk")
    observed = 0
    for copy_id in dict.fromkeys(findings.values_list("copy_id", flat=True)):
        with log_and_continue(f"Taking in the findings of copy {copy_id}"), transaction.atomic():
            rows = findings.filter(copy=copy_id).select_related("copy__dataset")
            claimed = list(rows.select_for_update(of=("self",), skip_locked=True)[:CLAIM_BATCH])
            for finding in claimed:
                observe_one(finding, now)
            observed += len(claimed)
    return observed


def _observe_raised(finding: Finding, now: datetime) -> None:
    _observe(finding, Outcome.FAIL, at=finding.raised_at, now=now)
    Finding.objects.filter(pk=finding.pk).update(raise_claimed_at=now)


def _observe_cleared(finding: Finding, now: datetime) -> None:
    assert finding.cleared_at is not None
    # Of one instant the failure would count: two commits that are read together may raise and clear.
    at = max(finding.cleared_at, finding.raised_at + _MIN_STEP)
    _observe(finding, Outcome.PASS, at=at, now=now)
    Finding.objects.filter(pk=finding.pk).update(clear_claimed_at=now)


def _observe(finding: Finding, outcome: Outcome, *, at: datetime, now: datetime) -> None:
    test = _finding_test(finding.copy.dataset, finding.kind, now=now)
    assert test.version is not None
    unit, _ = (
        Unit.objects.select_for_update(of=("self",))
        .select_related("test__version")
        .get_or_create(test=test, copy=finding.copy, start=finding.start, end=finding.end)
    )
    detail_texts = {"cause": str(finding.detail.get("message", "")), "formula": test.version.expression}
    result = Result.objects.create(
        unit=unit,
        version=test.version,
        outcome=outcome,
        detail={name: text for name, text in detail_texts.items() if text},
        trigger="finding",
        read_at=at,
        started_at=now,
        ended_at=now,
    )
    unit.detail = result.detail
    facts = facts_with_result(unit, result, sustain=test.version.sustain)
    if outcome is Outcome.FAIL and finding.detail.get("shown_only"):
        # By the dataset's policy it is a warning, and no incident.
        facts = waive(facts, Waiver.ACCEPTED, at=at)
    save_units([unit], [apply_facts(unit, facts, now=now, result=result)], also=("detail",))


def _finding_test(dataset: Dataset, kind: str, *, now: datetime) -> QualityTest:
    definition = FINDING.definition_of(kind)
    test = dataset.tests.filter(key=definition.key, retired_at=None).select_related("version").first()
    return test or save_definition(dataset, dataset_facts_or_defaults(dataset), definition, now=now)
