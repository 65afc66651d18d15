"""Messages are written with the change that caused them and sent afterwards: none is lost, at worst one comes twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.db.models import Max, QuerySet

from incidents.domain.alerting.routing import Recipient, unique_recipients
from incidents.models import NOT_LEASED, Incident, Message, MessageState, Span
from incidents.notifications import content
from incidents.notifications.content import MessageContent
from incidents.notifications.recipients import (
    OPENING_OCCASIONS,
    no_recipient_reason,
    owning_team_recipients,
    with_followers,
)
from incidents.record import transitions
from incidents.record.mappers import spans_with_details

WORSE_OCCASION = "worse"


UNSENT_STATES = (MessageState.PENDING, MessageState.HELD)
ESCALATION_WINDOW = timedelta(minutes=5)
"""After what was told last, what gets worse is gathered for so long: a storm is one message."""


def enqueue(
    incident: Incident,
    occasion: str,
    spans: Sequence[Span],
    *,
    now: datetime,
    actor: str = "",
    text: str = "",
    besides: Iterable[Recipient] = (),
) -> None:
    """Call it inside the transaction of the change. `spans` come with their units, tests and copies.

    `besides` are told too, such as who heard of an incident that this one goes on with.
    """
    owners = owning_team_recipients(incident)
    if not owners and occasion in (*OPENING_OCCASIONS, WORSE_OCCASION):
        transitions.add_event(incident, "not_told", now=now, text=f"{occasion}: {no_recipient_reason(incident)}")
    recipients, due_at = with_followers([*owners, *besides], incident, occasion), now
    if not recipients and occasion != WORSE_OCCASION:
        return  # what is worse goes also to messages that wait
    message_content = content.build_content(incident, spans, now=now, actor=actor, text=text)
    if occasion == WORSE_OCCASION:
        recipients = _recipients_without_pending(incident, recipients, message_content)
        due_at = _escalation_due_at(incident, now)
    _create_messages(incident, occasion, recipients, message_content, now=now, due_at=due_at)


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
    message_content = content.build_content(incident, spans_with_details(incident), now=now, actor=actor, text=text)
    _create_messages(incident, occasion, unique_recipients(recipients), message_content, now=now, due_at=now)


def _create_messages(
    incident: Incident,
    occasion: str,
    recipients: Iterable[Recipient],
    message_content: MessageContent,
    *,
    now: datetime,
    due_at: datetime,
) -> None:
    letter = message_content.render(occasion)
    Message.objects.bulk_create(
        Message(
            incident=incident,
            occasion=occasion,
            channel=recipient.channel,
            address=recipient.address,
            recipient_reason=recipient.reason[:200],
            route_id=recipient.route,
            subject=letter.subject,
            body=letter.body,
            facts=letter.facts,
            created_at=now,
            due_at=due_at,
        )
        for recipient in recipients
    )


# Worse


def _recipients_without_pending(
    incident: Incident, recipients: Sequence[Recipient], message_content: MessageContent
) -> list[Recipient]:
    """Who waits for a message anyway gets the news with it; the others get one of their own."""
    waiting = _pending_messages(incident)
    there = {
        (message.channel, message.address) for message in waiting if _update_pending(message, waiting, message_content)
    }
    return [recipient for recipient in recipients if (recipient.channel, recipient.address) not in there]


def _update_pending(message: Message, waiting: QuerySet[Message], message_content: MessageContent) -> bool:
    """Whether the news is in it: not where a sender has taken it meanwhile, and has read the words as they were."""
    return waiting.filter(pk=message.pk).update(**vars(message_content.render(message.occasion))) == 1


def _pending_messages(incident: Incident) -> QuerySet[Message]:
    """That it began or got worse, not said yet and in no sender's hands."""
    return Message.objects.filter(
        NOT_LEASED, incident=incident, state__in=UNSENT_STATES, occasion__in=(*OPENING_OCCASIONS, WORSE_OCCASION)
    )


def _escalation_due_at(incident: Incident, now: datetime) -> datetime:
    messages = Message.objects.filter(incident=incident, occasion__in=(*OPENING_OCCASIONS, WORSE_OCCASION))
    last: datetime | None = messages.aggregate(at=Max("created_at"))["at"]
    return now if last is None else max(now, last + ESCALATION_WINDOW)
