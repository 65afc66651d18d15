"""The messages of an incident: to whom, with which facts, in the words of the team that owns the dataset.

They are written with the change that caused them and sent afterwards: none is lost, at worst one comes twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Max, QuerySet

from incidents.domain.alerting.message_template import render_message
from incidents.domain.alerting.routing import Recipient, Severity, unique_recipients
from incidents.models import NOT_LEASED, Incident, Message, MessageState, MessageTemplate, Span
from incidents.notifications.recipients import (
    OPENING_OCCASIONS,
    alert_setting_of,
    no_recipient_reason,
    owning_team_recipients,
    with_followers,
)
from incidents.record import transitions
from incidents.record.likely_cause import LikelyCause, likely_cause
from incidents.record.texts import describe_incident, spans_with_details

WORSE_OCCASION = "worse"
UNSENT_STATES = (MessageState.PENDING, MessageState.HELD)
ESCALATION_WINDOW = timedelta(minutes=5)
"""After what was told last, what gets worse is gathered for so long: a storm is one message."""


@dataclass(frozen=True)
class RenderedMessage:
    subject: str
    body: str
    facts: dict[str, Any]


@dataclass(frozen=True)
class MessageContent:
    """All that is said of an incident at one time; `render` puts it into the words for an occasion."""

    values: dict[str, str]
    facts: dict[str, Any]
    templates: dict[str, MessageTemplate]

    def render(self, occasion: str) -> RenderedMessage:
        own = self.templates.get(occasion) or self.templates.get("")
        subject, body = (own.subject, own.body) if own else ("", "")
        return RenderedMessage(*render_message(subject, body, self.values | {"occasion": occasion}), self.facts)


def enqueue(
    incident: Incident,
    occasion: str,
    spans: Sequence[Span] | None = None,
    *,
    now: datetime,
    actor: str = "",
    text: str = "",
    besides: Iterable[Recipient] = (),
) -> None:
    """Call it inside the transaction of the change. `spans`: with their units, tests and copies, where the caller read them.

    `besides` are told too, such as who heard of an incident that this one goes on with.
    """
    setting = alert_setting_of(incident.dataset, incident.category)
    owners = owning_team_recipients(incident, setting)
    if not owners and occasion in (*OPENING_OCCASIONS, WORSE_OCCASION):
        reason = no_recipient_reason(incident, setting)
        transitions.add_event(incident, "not_told", now=now, text=f"{occasion}: {reason}")
    recipients, due_at = with_followers([*owners, *besides], incident, occasion), now
    if not recipients and occasion != WORSE_OCCASION:
        return  # what is worse goes also to messages that wait
    spans = spans_with_details(incident) if spans is None else spans
    cause = likely_cause(incident, now=now, spans=spans)
    content = build_content(incident, spans, cause, setting.severity, actor=actor, text=text)
    if occasion == WORSE_OCCASION:
        recipients = _recipients_without_pending(incident, recipients, content)
        due_at = _escalation_due_at(incident, now)
    _create_messages(incident, occasion, recipients, content, now=now, due_at=due_at)


def enqueue_to(
    incident: Incident,
    occasion: str,
    recipients: Iterable[Recipient],
    *,
    now: datetime,
    actor: str = "",
    text: str = "",
) -> None:
    """Writes to these alone, such as somebody who was mentioned, or who waits for word of its end."""
    severity, spans = alert_setting_of(incident.dataset, incident.category).severity, spans_with_details(incident)
    cause = likely_cause(incident, now=now, spans=spans)
    content = build_content(incident, spans, cause, severity, actor=actor, text=text)
    _create_messages(incident, occasion, unique_recipients(recipients), content, now=now, due_at=now)


def _create_messages(
    incident: Incident,
    occasion: str,
    recipients: Iterable[Recipient],
    content: MessageContent,
    *,
    now: datetime,
    due_at: datetime,
) -> None:
    rendered = vars(content.render(occasion))
    Message.objects.bulk_create(
        Message(
            incident=incident,
            occasion=occasion,
            channel=recipient.channel,
            address=recipient.address,
            recipient_reason=recipient.reason[:200],
            route_id=recipient.route,
            created_at=now,
            due_at=due_at,
            **rendered,
        )
        for recipient in recipients
    )


# What it says


def build_content(
    incident: Incident,
    spans: Sequence[Span],
    cause: LikelyCause,
    severity: Severity,
    *,
    actor: str = "",
    text: str = "",
) -> MessageContent:
    """`spans` come with their units, tests, versions and copies."""
    values = _variable_values(incident, spans, cause, severity, actor=actor, text=text)
    own = MessageTemplate.objects.filter(team=incident.dataset.team_id)
    return MessageContent(values, _facts(incident, values, cause), {template.occasion: template for template in own})


def _variable_values(
    incident: Incident, spans: Sequence[Span], cause: LikelyCause, severity: Severity, *, actor: str, text: str
) -> dict[str, str]:
    """One finished text for each variable but the occasion; empty where there is nothing to say."""
    dataset, described = incident.dataset, describe_incident(incident, spans)
    about, goes_on = described.about, incident.resolved_at is None
    due = [span.unit.due_at for span in about if goes_on and span.ended_at is None and span.unit.due_at is not None]
    return {
        "number": str(incident.pk),
        "title": incident.title,
        "dataset": dataset.name,
        "tier": str(dataset.tier),
        "team": dataset.team.name,
        "category": incident.get_category_display(),
        "severity": severity.value,
        "state": incident.get_state_display(),
        "observed": described.observed,
        "test": about[0].unit.test.title if about else "",
        "data": described.data,
        "since": _utc_text(about[0].began_at if about else incident.opened_at),
        "cause": cause.text,
        "cause_link": f"{settings.LAKEHUB_BASE_URL}{cause.link}" if cause.link else "",
        "next": f"{_utc_text(min(due))}; a pass resolves it" if due else "",
        "eta": _utc_text(incident.eta) if incident.eta else "",
        "assignee": incident.assignee.get_username() if incident.assignee else "",
        "resolution": incident.get_resolution_display() if incident.resolution else "",
        "actor": actor,
        "text": text,
        "link": described.link,
    }


def _facts(incident: Incident, values: dict[str, str], cause: LikelyCause) -> dict[str, Any]:
    """For programs: plain JSON, with instants in ISO 8601."""
    value_names = ("severity", "observed", "test", "data", "since", "actor", "text")
    return {
        "id": incident.pk,
        "url": values["link"],
        "dataset": incident.dataset.name,
        "tier": incident.dataset.tier,
        "team": incident.dataset.team.name,
        "category": incident.category,
        "state": incident.state,
        "title": incident.title,
        "opened_at": incident.opened_at.isoformat(),
        "resolved_at": incident.resolved_at.isoformat() if incident.resolved_at else None,
        "eta": incident.eta.isoformat() if incident.eta else None,
        "resolution": incident.resolution,
        "cause": cause.text,
        "cause_kind": cause.kind.value,
        "cause_url": values["cause_link"],
        **{name: values[name] for name in value_names},
    }


def _utc_text(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


# What gets worse


def _recipients_without_pending(
    incident: Incident, recipients: Sequence[Recipient], content: MessageContent
) -> list[Recipient]:
    """Who waits for a message anyway gets the news with it; the others get one of their own."""
    waiting = _pending_messages(incident)
    there = {(message.channel, message.address) for message in waiting if _update_pending(message, waiting, content)}
    return [recipient for recipient in recipients if (recipient.channel, recipient.address) not in there]


def _update_pending(message: Message, waiting: QuerySet[Message], content: MessageContent) -> bool:
    """Whether the news is in it: not where a sender has taken it meanwhile, and has read the words as they were."""
    return waiting.filter(pk=message.pk).update(**vars(content.render(message.occasion))) == 1


def _pending_messages(incident: Incident) -> QuerySet[Message]:
    """That it began or got worse, not said yet and in no sender's hands."""
    return Message.objects.filter(
        NOT_LEASED, incident=incident, state__in=UNSENT_STATES, occasion__in=(*OPENING_OCCASIONS, WORSE_OCCASION)
    )


def _escalation_due_at(incident: Incident, now: datetime) -> datetime:
    messages = Message.objects.filter(incident=incident, occasion__in=(*OPENING_OCCASIONS, WORSE_OCCASION))
    last: datetime | None = messages.aggregate(at=Max("created_at"))["at"]
    return now if last is None else max(now, last + ESCALATION_WINDOW)
