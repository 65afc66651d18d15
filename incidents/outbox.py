"""Messages are written with the change that caused them and sent afterwards: none is lost, at worst one comes twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from incidents import wording
from incidents.models import Incident, Message, Span
from lakehub.accounts.models import Team

OPENING = ("opened", "reopened")
"""Occasions that may be held; the others are told only to whom one of these was sent."""


def recipients(team: Team) -> Iterator[tuple[str, str]]:
    """(channel, address) of those who are told; a team that named none has its messages in the log."""
    addresses = [("email", team.email), ("webhook", team.webhook_url)]
    known = [(channel, address) for channel, address in addresses if address]
    yield from known or [("log", team.name)]


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
            channel=channel,
            address=address,
            subject=subject,
            body=body,
            created_at=now,
            due_at=now,
        )
        for channel, address in recipients(incident.dataset.team)
    )


def spans_to_tell(incident: Incident) -> list[Span]:
    """The spans of an incident with all that a message says of them."""
    related = ("unit__test__version", "copy__data_center")
    return list(Span.objects.filter(incident=incident).select_related(*related).order_by("began_at", "start"))
