"""What decides whether a message goes out, and when: what was said before, the incident's state, the stale copies that may
explain it, and the quiet hours of its route.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from django.db.models import Q, QuerySet

from incidents.domain.alerting.quiet_hours import DigestInterval, next_digest_at
from incidents.domain.alerting.suppression import (
    FRESHNESS,
    DropMessage,
    HoldMessage,
    MessageSubject,
    SendDecision,
    SendNow,
    SuppressionPair,
    Suppressor,
    decide_sending,
    effective_pairs,
    suppressors_of,
)
from incidents.domain.incident.spans import affected_ranges, stale_from
from incidents.models import NOT_LEASED, Incident, Message, MessageState, Route, Span, SuppressionRule
from incidents.notifications.outbox import UNSENT_STATES, WORSE_OCCASION
from incidents.notifications.recipients import DIRECT_OCCASIONS, OPENING_OCCASIONS
from incidents.notifications.retract import RETRACTING_OCCASIONS
from lakehub.catalog.models import Dataset, DatasetCopy, LineageEdge
from lakehub.kernel.interval import BEGINNING, Interval
from lakehub.kernel.outcome import Verdict
from quality.models import Category, Unit
from quality.state.unit_state import current_judgement

DELIVERED_STATES = (MessageState.SENT, MessageState.COLLECTED)
"""What is collected for a digest is told with it."""


@dataclass(frozen=True)
class WaitForMessage:
    """An earlier one to the same address goes first."""

    first: Message


@dataclass(frozen=True)
class CollectForDigest:
    """It goes with the digest of `at`."""

    at: datetime
    why: str


Decision = SendDecision | WaitForMessage | CollectForDigest


def decide(message: Message, *, now: datetime) -> Decision:
    """Select its incident with dataset and team along, and its route with team."""
    if (ahead := _earlier_leased_message(message)) is not None:
        return WaitForMessage(ahead)
    decision = _decide_by_occasion(message, now)
    return _when_route_allows(message.route, now) if isinstance(decision, SendNow) and message.route else decision


def _decide_by_occasion(message: Message, now: datetime) -> SendDecision | WaitForMessage:
    if message.occasion in OPENING_OCCASIONS:
        return _decide_by_incident(message, now)
    if message.occasion == WORSE_OCCASION:
        return _decide_escalation(message, now)
    return SendNow() if message.occasion in DIRECT_OCCASIONS else _decide_follow_up(message)


def _when_route_allows(route: Route, now: datetime) -> SendNow | HoldMessage | CollectForDigest:
    """At once, after its quiet hours, or with its digest."""
    zone = ZoneInfo(route.zone)
    if route.digest != DigestInterval.NONE:
        at = next_digest_at(now, DigestInterval(route.digest), at=route.digest_at, zone=zone)
        return CollectForDigest(
            at, f"collected for the {route.digest} digest of {at.astimezone(zone):%Y-%m-%d %H:%M} {route.zone}"
        )
    over = route.quiet.end_at(now) if route.quiet else None
    if over is None:
        return SendNow()
    text = f"quiet hours of team {route.team.name} until {over.astimezone(zone):%Y-%m-%d %H:%M} {route.zone}"
    return HoldMessage(text, until=over)


# What was said before to the same address


def thread_of(message: Message) -> QuerySet[Message]:
    """What is said of the same incident to the same address."""
    return Message.objects.filter(incident=message.incident, channel=message.channel, address_key=message.address_key)


def _earlier_leased_message(message: Message) -> Message | None:
    """An earlier one that is being sent: what came later must not arrive first."""
    return thread_of(message).filter(pk__lt=message.pk, state__in=UNSENT_STATES).exclude(NOT_LEASED).first()


def _opening_message(message: Message) -> Message | None:
    """The message by which the same address was told, or will be, that it began."""
    return thread_of(message).filter(occasion__in=OPENING_OCCASIONS, pk__lt=message.pk).order_by("-pk").first()


def _decide_follow_up(message: Message) -> SendDecision | WaitForMessage:
    """Who was told that it began is told how it goes on."""
    first = _opening_message(message)
    if _is_retracted(message):
        return DropMessage("taken back, and that was told before")
    if first is None or first.state in DELIVERED_STATES:
        return SendNow()
    return WaitForMessage(first) if first.state in UNSENT_STATES else DropMessage("nobody was told that it began")


def _is_retracted(message: Message) -> bool:
    """Its address was told so while this one was tried in vain: now it would be the last word."""
    back = RETRACTING_OCCASIONS.get(message.occasion)
    later = thread_of(message).filter(occasion=back, pk__gt=message.pk, state__in=DELIVERED_STATES)
    return back is not None and later.exists()


def _decide_escalation(message: Message, now: datetime) -> SendDecision | WaitForMessage:
    """Held as the message that opened it would be; told also to whom its severity was too low before."""
    first = _opening_message(message)
    if first is not None and first.state in UNSENT_STATES:
        return WaitForMessage(first)
    if first is not None and first.state == MessageState.DROPPED:
        return DropMessage("nobody was told that it began")
    return _decide_by_incident(message, now)


# What the incident says


def _decide_by_incident(message: Message, now: datetime) -> SendDecision:
    subject = _message_subject(message.incident, now=now)
    if _ignores_snooze(message):
        subject = replace(subject, snoozed_until=None)
    failing = _suppressors(message.incident, subject, now=now)
    return decide_sending(
        subject, failing, was_held=message.suppressed_since is not None, released_at=message.released_at, now=now
    )


def _message_subject(incident: Incident, *, now: datetime) -> MessageSubject:
    """The incident as a message is about it.

    What counts is what fails now: a pass that has not been taken in yet must not be told as a failure.
    """
    spans = Span.objects.filter(incident=incident, ended_at=None, unit__verdict=Verdict.FAIL)
    active = list(spans.select_related("unit", "copy"))
    retested = [span.unit.latest_at for span in active]
    return MessageSubject(
        category=incident.category,
        copies=_involved_copies(incident, active),
        affected=affected_ranges((span.as_value() for span in active), at=now),
        is_failing=bool(active),
        snoozed_until=incident.snoozed_until,
        grace_until=incident.dataset.grace_until,
        retested_at=min((at for at in retested if at is not None), default=None) if all(retested) else None,
        suppressors=suppressors_of(incident.category, suppression_pairs(incident.dataset)),
    )


def _ignores_snooze(message: Message) -> bool:
    """Of a snooze that an undo restored: that it was over was told in spite of it, so that it is not is too."""
    since = message.incident.snoozed_at
    return message.occasion == "reopened" and since is not None and since < message.created_at


def _involved_copies(incident: Incident, active: Iterable[Span]) -> frozenset[int]:
    """The copies that fail, those that they are compared with, and upstream ones in the same data center."""
    failing = {span.copy_id: span.copy.data_center_id for span in active}
    involved = Q(pk__in=failing)
    if incident.category == Category.CONSISTENCY:
        involved |= Q(dataset=incident.dataset)
    if incident.category == Category.COMPLETENESS:
        upstream = LineageEdge.objects.filter(downstream=incident.dataset).values("upstream")
        involved |= Q(dataset__in=upstream, data_center__in=failing.values())
    return frozenset(DatasetCopy.objects.filter(involved).values_list("pk", flat=True))


# What explains it


def suppression_pairs(dataset: Dataset) -> frozenset[SuppressionPair]:
    """Which category holds the messages of which other one there."""
    rows = SuppressionRule.objects.filter(dataset=dataset)
    return effective_pairs(rows.values_list("by_category", "suppresses", "enabled"))


def _suppressors(incident: Incident, subject: MessageSubject, *, now: datetime) -> list[Suppressor]:
    """What fails now, sustained or not, and may explain it: stale copies first, then what other rules of the dataset name."""
    others = subject.suppressing_categories - {FRESHNESS}
    failing = []
    if FRESHNESS in subject.suppressing_categories:
        failing += _failing_units(Q(copy__in=subject.copies, test__category=Category.FRESHNESS), now=now)
    if others:
        failing += _failing_units(Q(copy__dataset=incident.dataset, test__category__in=others), now=now)
    return failing


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
