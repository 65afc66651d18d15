"""Findings of ingestion become results of the category *ingestion*: raised is FAIL, cleared is PASS."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from ingestion.models import Finding
from lakehub.catalog.models import Dataset
from lakehub.kernel.outcome import Outcome
from quality.checks.finding import FINDING
from quality.described import described
from quality.domain.verdicts import observe
from quality.facts import FIELDS, JUDGED, facts_of, settle
from quality.generator import put
from quality.models import Result, Test, Unit

CLAIMED_AT_ONCE = 200


def observe_findings(*, now: datetime) -> int:
    """Claims what was raised and what was cleared since. The number of results."""
    with transaction.atomic():
        raised = list(_unclaimed(raise_claimed_at=None))
        for finding in raised:
            _observe(finding, Outcome.FAIL, at=finding.raised_at, now=now)
        Finding.objects.filter(pk__in=[finding.pk for finding in raised]).update(raise_claimed_at=now)
        cleared = list(_unclaimed(raise_claimed_at__isnull=False, cleared_at__isnull=False, clear_claimed_at=None))
        for finding in cleared:
            assert finding.cleared_at is not None
            _observe(finding, Outcome.PASS, at=finding.cleared_at, now=now)
        Finding.objects.filter(pk__in=[finding.pk for finding in cleared]).update(clear_claimed_at=now)
    return len(raised) + len(cleared)


def _unclaimed(**which: object) -> list[Finding]:
    rows = Finding.objects.filter(**which).select_related("copy__dataset").order_by("pk")
    return list(rows.select_for_update(of=("self",), skip_locked=True)[:CLAIMED_AT_ONCE])


def _observe(finding: Finding, outcome: Outcome, *, at: datetime, now: datetime) -> None:
    test = _test(finding.copy.dataset, finding.kind, now=now)
    assert test.version is not None
    unit, _ = (
        Unit.objects.select_for_update(of=("self",))
        .select_related("test__version")
        .get_or_create(test=test, copy=finding.copy, start=finding.start, end=finding.end)
    )
    said = {"cause": str(finding.detail.get("message", "")), "formula": test.version.expression}
    result = Result.objects.create(
        unit=unit,
        version=test.version,
        outcome=outcome,
        detail={name: text for name, text in said.items() if text},
        trigger="finding",
        read_at=at,
        started_at=now,
        ended_at=now,
    )
    unit.detail = result.detail
    settle(unit, observe(facts_of(unit), outcome, read_at=at, sustain=test.version.sustain), now=now, result=result)
    unit.save(update_fields=[*FIELDS, *JUDGED, "detail"])


def _test(dataset: Dataset, kind: str, *, now: datetime) -> Test:
    definition = FINDING.of(kind)
    found = dataset.tests.filter(key=definition.key, retired_at=None).select_related("version").first()
    return found or put(dataset, described(dataset), definition, now=now)
