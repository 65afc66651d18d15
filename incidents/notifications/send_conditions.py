"""What decides whether a message goes out: the incident's state, and the stale copies that may explain it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from django.db.models import Q

from incidents.domain.alerting.quiet_hours import DigestInterval, next_digest_at
from incidents.domain.alerting.suppression import (
    FRESHNESS,
    MessageSubject,
    SendDecision,
    SuppressionPair,
    Suppressor,
    decide_sending,
    effective_pairs,
    suppressors_of,
)
from incidents.domain.incident.spans import affected_ranges, stale_from
from incidents.models import Incident, Message, Route, Span, SuppressionRule
from incidents.record.mappers import span_from_row
from lakehub.catalog.models import Dataset, DatasetCopy, LineageEdge
from lakehub.kernel.interval import BEGINNING, Interval
from lakehub.kernel.outcome import Verdict
from quality.models import Category, Unit
from quality.state.unit_state import current_judgement


def message_subject(incident: Incident, *, now: datetime) -> MessageSubject:
    """The incident as a message is about it. Select its dataset along.

    What counts is what fails now: a pass that has not been taken in yet must not be told as a failure.
    """
    spans = Span.objects.filter(incident=incident, ended_at=None, unit__verdict=Verdict.FAIL)
    active = list(spans.select_related("unit", "copy"))
    retested = [span.unit.latest_at for span in active]
    return MessageSubject(
        category=incident.category,
        copies=involved_copies(incident, active),
        affected=affected_ranges(map(span_from_row, active), at=now),
        is_failing=bool(active),
        snoozed_until=incident.snoozed_until,
        grace_until=incident.dataset.grace_until,
        retested_at=min((at for at in retested if at is not None), default=None) if all(retested) else None,
        suppressors=suppressors_of(incident.category, suppression_pairs(incident.dataset)),
    )


def suppression_pairs(dataset: Dataset) -> frozenset[SuppressionPair]:
    """Which category holds the messages of which other one there."""
    rows = SuppressionRule.objects.filter(dataset=dataset)
    return effective_pairs(rows.values_list("by_category", "suppresses", "enabled"))


def suppressors(incident: Incident, subject: MessageSubject, *, now: datetime) -> list[Suppressor]:
    """What fails now and may explain it: stale copies first, then what other rules of the dataset name."""
    stale = stale_copies(subject.copies, now=now) if FRESHNESS in subject.suppressing_categories else []
    others = subject.suppressing_categories - {FRESHNESS}
    return [*stale, *(failing_in_categories(others, incident.dataset, now=now) if others else ())]


def failing_in_categories(categories: Iterable[str], dataset: Dataset, *, now: datetime) -> list[Suppressor]:
    """What fails in these categories of the dataset itself, sustained or not."""
    return _failing_units(Q(copy__dataset=dataset, test__category__in=list(categories)), now=now)


def involved_copies(incident: Incident, active: Iterable[Span]) -> frozenset[int]:
    """The copies that fail, those that they are compared with, and upstream ones in the same data center."""
    failing = {span.copy_id: span.copy.data_center_id for span in active}
    involved = Q(pk__in=failing)
    if incident.category == Category.CONSISTENCY:
        involved |= Q(dataset=incident.dataset)
    if incident.category == Category.COMPLETENESS:
        upstream = LineageEdge.objects.filter(downstream=incident.dataset).values("upstream")
        involved |= Q(dataset__in=upstream, data_center__in=failing.values())
    return frozenset(DatasetCopy.objects.filter(involved).values_list("pk", flat=True))


def stale_copies(copies: Iterable[int], *, now: datetime) -> list[Suppressor]:
    """The copies whose freshness is failing, sustained or not, and from where on."""
    return _failing_units(Q(copy__in=list(copies), test__category=Category.FRESHNESS), now=now)


def _failing_units(condition: Q, *, now: datetime) -> list[Suppressor]:
    units = Unit.objects.filter(condition, test__retired_at=None, first_fail_at__isnull=False)
    failing = [
        unit
        for unit in units.select_related("test__version", "copy__dataset", "copy__data_center")
        if current_judgement(unit, now=now).verdict in (Verdict.FAIL, Verdict.WARN)
    ]
    incidents = dict(Span.objects.filter(unit__in=failing, ended_at=None).values_list("unit", "incident"))
    return [
        Suppressor(unit.copy_id, _affected_data(unit), incidents.get(unit.pk), str(unit.copy), unit.test.category)
        for unit in failing
    ]


def _affected_data(unit: Unit) -> Interval:
    """What a failing unit says is wrong."""
    if unit.test.category == Category.FRESHNESS:
        return stale_from(unit.affected_from or BEGINNING)
    return Interval(unit.start, unit.end)


@dataclass(frozen=True)
class DeliverNow:
    pass


@dataclass(frozen=True)
class WaitForQuietHours:
    """Keep it until `until`, and decide anew."""

    until: datetime
    why: str


@dataclass(frozen=True)
class CollectForDigest:
    """It goes with the digest of `at`."""

    at: datetime
    why: str


DeliveryWindow = DeliverNow | WaitForQuietHours | CollectForDigest


def delivery_window_of(route: Route | None, *, now: datetime) -> DeliveryWindow:
    if route is None:
        return DeliverNow()
    zone = ZoneInfo(route.zone)
    if route.digest != DigestInterval.NONE:
        at = next_digest_at(now, DigestInterval(route.digest), at=route.digest_at, zone=zone)
        return CollectForDigest(
            at, f"collected for the {route.digest} digest of {at.astimezone(zone):%Y-%m-%d %H:%M} {route.zone}"
        )
    over = route.quiet.end_at(now) if route.quiet else None
    if over is None:
        return DeliverNow()
    return WaitForQuietHours(
        over, f"quiet hours of team {route.team.name} until {over.astimezone(zone):%Y-%m-%d %H:%M} {route.zone}"
    )


def decide_delivery(message: Message, now: datetime) -> SendDecision:
    subject = message_subject(message.incident, now=now)
    if _ignores_snooze(message):
        subject = replace(subject, snoozed_until=None)
    stale = suppressors(message.incident, subject, now=now)
    return decide_sending(
        subject, stale, was_held=message.suppressed_since is not None, released_at=message.released_at, now=now
    )


def _ignores_snooze(message: Message) -> bool:
    """Of a snooze that an undo restored: that it was over was told in spite of it, so that it is not is too."""
    since = message.incident.snoozed_at
    return message.occasion == "reopened" and since is not None and since < message.created_at
