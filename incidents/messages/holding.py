"""What decides whether a message goes out: the incident's state, and the stale copies that may explain it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Q

from incidents.domain.precedence import FRESHNESS, Pair, in_force, suppressors_of
from incidents.domain.spans import affected, stale_from
from incidents.domain.suppression import StaleCopy, Subject
from incidents.models import Incident, Span, SuppressionRule
from incidents.values import span_value
from lakehub.catalog.models import Dataset, DatasetCopy, LineageEdge
from lakehub.kernel.interval import BEGINNING, Interval
from lakehub.kernel.outcome import Verdict
from quality.facts import judge_now
from quality.models import Category, Unit


def subject_of(incident: Incident, *, now: datetime) -> Subject:
    """The incident as a message is about it. Select its dataset along.

    What counts is what fails now: a pass that has not been taken in yet must not be told as a failure.
    """
    spans = Span.objects.filter(incident=incident, ended_at=None, unit__verdict=Verdict.FAIL)
    active = list(spans.select_related("unit", "copy"))
    retested = [span.unit.latest_at for span in active]
    return Subject(
        category=incident.category,
        copies=copies_involved(incident, active),
        affected=affected(map(span_value, active), at=now),
        is_failing=bool(active),
        snoozed_until=incident.snoozed_until,
        grace_until=incident.dataset.grace_until,
        retested_at=min((at for at in retested if at is not None), default=None) if all(retested) else None,
        suppressors=suppressors_of(incident.category, pairs_of(incident.dataset)),
    )


def pairs_of(dataset: Dataset) -> frozenset[Pair]:
    """Which category holds the messages of which other one there."""
    rows = SuppressionRule.objects.filter(dataset=dataset)
    return in_force(rows.values_list("by_category", "suppresses", "enabled"))


def explanations(incident: Incident, subject: Subject, *, now: datetime) -> list[StaleCopy]:
    """What fails now and may explain it: stale copies first, then what other rules of the dataset name."""
    found = stale_among(subject.copies, now=now) if FRESHNESS in subject.held_by else []
    others = subject.held_by - {FRESHNESS}
    return [*found, *(failing_in(others, incident.dataset, now=now) if others else ())]


def failing_in(categories: Iterable[str], dataset: Dataset, *, now: datetime) -> list[StaleCopy]:
    """What fails in these categories of the dataset itself, sustained or not."""
    return _failing(Q(copy__dataset=dataset, test__category__in=list(categories)), now=now)


def copies_involved(incident: Incident, active: Iterable[Span]) -> frozenset[int]:
    """The copies that fail, those that they are compared with, and upstream ones in the same data center."""
    failing = {span.copy_id: span.copy.data_center_id for span in active}
    involved = Q(pk__in=failing)
    if incident.category == Category.CONSISTENCY:
        involved |= Q(dataset=incident.dataset)
    if incident.category == Category.COMPLETENESS:
        upstream = LineageEdge.objects.filter(downstream=incident.dataset).values("upstream")
        involved |= Q(dataset__in=upstream, data_center__in=failing.values())
    return frozenset(DatasetCopy.objects.filter(involved).values_list("pk", flat=True))


def stale_among(copies: Iterable[int], *, now: datetime) -> list[StaleCopy]:
    """The copies whose freshness is failing, sustained or not, and from where on."""
    return _failing(Q(copy__in=list(copies), test__category=Category.FRESHNESS), now=now)


def _failing(asked: Q, *, now: datetime) -> list[StaleCopy]:
    units = Unit.objects.filter(asked, test__retired_at=None, first_fail_at__isnull=False)
    failing = [
        unit
        for unit in units.select_related("test__version", "copy__dataset", "copy__data_center")
        if judge_now(unit, now=now).verdict in (Verdict.FAIL, Verdict.WARN)
    ]
    incidents = dict(Span.objects.filter(unit__in=failing, ended_at=None).values_list("unit", "incident"))
    return [
        StaleCopy(unit.copy_id, _data(unit), incidents.get(unit.pk), str(unit.copy), unit.test.category)
        for unit in failing
    ]


def _data(unit: Unit) -> Interval:
    """What a failing unit says is wrong."""
    if unit.test.category == Category.FRESHNESS:
        return stale_from(unit.affected_from or BEGINNING)
    return Interval(unit.start, unit.end)
