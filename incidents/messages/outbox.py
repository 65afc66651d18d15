"""Messages are written with the change that caused them and sent afterwards: none is lost, at worst one comes twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType

from django.db.models import Max, QuerySet

from incidents import moves
from incidents.domain.routing import Recipient, once_each
from incidents.messages import telling
from incidents.messages.addressees import of_team
from incidents.messages.subscriptions import subscribers
from incidents.messages.telling import Telling
from incidents.models import FREE, Incident, Message, MessageState, Span
from incidents.tones import matter_of, tone_of

OPENING = ("opened", "reopened")
"""Occasions that may be held; the others are told only to whom one of these was sent."""
WORSE = "worse"
DIRECT = ("mentioned", "assigned", "rejected")
"""Said to one person; whether they were told that it began does not matter."""
ENDS: Mapping[str, tuple[str, ...]] = MappingProxyType({"resolved": (), "released": ("acknowledged",)})
"""What is told also to whom these were sent, whatever routes there are now; none are named: to whom anything was."""
UNSENT = (MessageState.PENDING, MessageState.HELD)
GATHERED = timedelta(minutes=5)
"""After what was told last, what gets worse is gathered for so long: a storm is one message."""


def recipients(incident: Incident, occasion: str) -> list[Recipient]:
    """Who is told of it: the owners, who follows it, and of an end who heard of the beginning, by whatever route it was."""
    return _with_others(_owners(incident), incident, occasion)


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
    owners = _owners(incident)
    if not owners and occasion in (*OPENING, WORSE):
        moves.note(incident, "not_told", now=now, text=f"{occasion}: {_why_nobody(incident)}")
    told, due_at = _with_others([*owners, *besides], incident, occasion), now
    if not told and occasion != WORSE:
        return  # what is worse goes also to messages that wait
    said = telling.tell(incident, spans, now=now, actor=actor, text=text)
    if occasion == WORSE:
        told = _not_yet_told(incident, told, said)
        due_at = _gathered(incident, now)
    _write(incident, occasion, told, said, now=now, due_at=due_at)


def tell(
    incident: Incident, occasion: str, told: Iterable[Recipient], *, now: datetime, actor: str = "", text: str = ""
) -> None:
    """Writes to these alone, such as somebody who was mentioned, or who waits for word of its end."""
    said = telling.tell(incident, spans_to_tell(incident), now=now, actor=actor, text=text)
    _write(incident, occasion, once_each(told), said, now=now, due_at=now)


def _owners(incident: Incident) -> list[Recipient]:
    dataset = incident.dataset
    tone = tone_of(dataset, incident.category)
    return [] if tone.muted else of_team(dataset.team, matter_of(dataset, incident.category, tone))


def _with_others(owners: Sequence[Recipient], incident: Incident, occasion: str) -> list[Recipient]:
    before = heard(incident, *ENDS[occasion]) if occasion in ENDS else ()
    return once_each([*owners, *subscribers(incident, occasion), *before])


def _write(
    incident: Incident, occasion: str, told: Iterable[Recipient], said: Telling, *, now: datetime, due_at: datetime
) -> None:
    letter = said.letter(occasion)
    Message.objects.bulk_create(
        Message(
            incident=incident,
            occasion=occasion,
            channel=one.channel,
            address=one.address,
            told_because=one.why[:200],
            route_id=one.route,
            subject=letter.subject,
            body=letter.body,
            facts=letter.facts,
            created_at=now,
            due_at=due_at,
        )
        for one in told
    )


def spans_to_tell(incident: Incident) -> list[Span]:
    """The spans of an incident with all that a message says of them."""
    related = ("unit__test__version", "copy__data_center")
    return list(Span.objects.filter(incident=incident).select_related(*related).order_by("began_at", "start"))


def heard(incident: Incident, *occasions: str) -> list[Recipient]:
    """Who was told one of these, or will be; where none is named: anything that was not said to one person."""
    told = Message.objects.filter(incident=incident).exclude(state=MessageState.DROPPED)
    told = told.filter(occasion__in=occasions) if occasions else told.exclude(occasion__in=DIRECT)
    rows = told.order_by("pk").values_list("channel", "address", "told_because", "route_id")
    return once_each(Recipient(*row) for row in rows)


def _why_nobody(incident: Incident) -> str:
    dataset = incident.dataset
    tone = tone_of(dataset, incident.category)
    if tone.muted:
        return f"alerts of {dataset.name} in {incident.category} are muted: {tone.why}"
    matter = matter_of(dataset, incident.category, tone)
    return f"no route of team {dataset.team.name} takes {matter}"


# Worse


def _not_yet_told(incident: Incident, told: Sequence[Recipient], said: Telling) -> list[Recipient]:
    """Who waits for a message anyway gets the news with it; the others get one of their own."""
    waiting = _waiting(incident)
    there = {(message.channel, message.address) for message in waiting if _say_with(message, waiting, said)}
    return [one for one in told if (one.channel, one.address) not in there]


def _say_with(message: Message, waiting: QuerySet[Message], said: Telling) -> bool:
    """Whether the news is in it: not where a sender has taken it meanwhile, and has read the words as they were."""
    return waiting.filter(pk=message.pk).update(**vars(said.letter(message.occasion))) == 1


def _waiting(incident: Incident) -> QuerySet[Message]:
    """That it began or got worse, not said yet and in no sender's hands."""
    return Message.objects.filter(FREE, incident=incident, state__in=UNSENT, occasion__in=(*OPENING, WORSE))


def _gathered(incident: Incident, now: datetime) -> datetime:
    said = Message.objects.filter(incident=incident, occasion__in=(*OPENING, WORSE))
    last: datetime | None = said.aggregate(at=Max("created_at"))["at"]
    return now if last is None else max(now, last + GATHERED)
