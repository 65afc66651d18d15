"""Messages are written with the change that caused them and sent afterwards: none is lost, at worst one comes twice."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from incidents import wording
from incidents.domain.routing import Recipient
from incidents.models import Incident, Message, Span

OPENING = ("opened", "reopened")
"""Occasions that may be held; the others are told only to whom one of these was sent."""


def recipients(incident: Incident, occasion: str) -> list[Recipient]:
    """Who is told of it; a team that named no address has its messages in the log."""
    team = incident.dataset.team
    addresses = [("email", team.email), ("webhook", team.webhook_url)]
    known = [Recipient(channel, address, f"team {team.name}") for channel, address in addresses if address]
    return known or [Recipient("log", team.name, f"team {team.name}")]


def enqueue(
    incident: Incident, occasion: str, spans: Sequence[Span], *, now: datetime, actor: str = "", text: str = ""
) -> None:
    """Call it inside the transaction of the change. `spans` come with their units, tests and copies."""
    subject = wording.subject(incident, occasion)
    body = wording.body(incident, spans, actor=actor, text=text)
    Message.objects.bulk_create(
        Message(
            incident=incident,
            occasion=occasion,
            channel=told.channel,
            address=told.address,
            subject=subject,
            body=body,
            created_at=now,
            due_at=now,
        )
        for told in recipients(incident, occasion)
    )


def spans_to_tell(incident: Incident) -> list[Span]:
    """The spans of an incident with all that a message says of them."""
    related = ("unit__test__version", "copy__data_center")
    return list(Span.objects.filter(incident=incident).select_related(*related).order_by("began_at", "start"))
