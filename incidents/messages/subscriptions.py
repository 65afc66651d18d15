"""Who hears of an incident besides the team that owns the dataset: subscribers, owners downstream, and who reported it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from django.db import transaction

from incidents.domain.routing import Recipient
from incidents.impact import Reached, downstream
from incidents.messages.addressees import LOG, of_team
from incidents.models import Incident, Message, Span, Subscription
from incidents.tones import matter_of, tone_of
from lakehub.accounts import audit
from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset

BEGINNINGS = ("opened", "reopened")
DOWNSTREAM = "owner of"
"""How the reason begins for which a team downstream is told."""
FOLLOWED = (*BEGINNINGS, "eta", "resolved")
"""What subscribers hear of a dataset's incidents."""
FOLLOWED_REPORT = ("acknowledged", "eta", "resolved")
"""Of a user's report, once the producers said that it is true; before that it is theirs to answer."""


def subscribe(dataset: Dataset, *, user: User, now: datetime) -> bool:
    """The user follows the dataset. Whether that is new."""
    with transaction.atomic():
        made = Subscription.objects.get_or_create(user=user, dataset=dataset, defaults={"created_at": now})[1]
        if made:
            audit.record(user.get_username(), "subscribe", f"dataset:{dataset.name}", now=now)
    return made


def unsubscribe(dataset: Dataset, *, user: User, now: datetime) -> bool:
    """The user follows it no more. Whether they did."""
    with transaction.atomic():
        gone = bool(Subscription.objects.filter(user=user, dataset=dataset).delete()[0])
        if gone:
            audit.record(user.get_username(), "unsubscribe", f"dataset:{dataset.name}", now=now)
    return gone


def subscribers(incident: Incident, occasion: str) -> Iterable[Recipient]:
    """Who is told of it besides the owning team, and why."""
    if incident.reported and occasion in FOLLOWED_REPORT:
        yield from reporter_of(incident)
    if occasion in (FOLLOWED_REPORT if incident.reported else FOLLOWED):
        yield from _followers(incident)
    begins = occasion == "acknowledged" if incident.reported else occasion in BEGINNINGS
    if begins:
        yield from _owners_downstream(incident)


def person(user: User, why: str) -> Recipient:
    """Their e-mail address; who has none is told nowhere, and the timeline says so."""
    name = user.get_username()
    if user.email:
        return Recipient("email", user.email, f"{why}: {name}")
    return Recipient(LOG, name, f"{why}: {name}, who has no e-mail address")


def reporter_of(incident: Incident) -> Iterator[Recipient]:
    """Who reported it, if they still have an account."""
    who = incident.report.reporter
    if who is not None and who.is_active:
        yield person(who, "reported it")


def _followers(incident: Incident) -> Iterator[Recipient]:
    rows = Subscription.objects.filter(dataset=incident.dataset_id, user__is_active=True).select_related("user")
    for row in rows.order_by("user__username"):
        yield person(row.user, "subscribed")


def _owners_downstream(incident: Incident) -> Iterator[Recipient]:
    """Teams other than the owner, each once an incident, by what of theirs lies nearest."""
    if Message.objects.filter(incident=incident, told_because__startswith=DOWNSTREAM).exists():
        return
    spans = Span.objects.filter(incident=incident, ended_at=None).select_related("copy")
    nearest: dict[int, Reached] = {}
    for reached in downstream(incident, spans):
        if reached.dataset.team_id != incident.dataset.team_id:
            nearest.setdefault(reached.dataset.team_id, reached)
    for reached in nearest.values():
        theirs = reached.dataset
        matter = matter_of(theirs, incident.category, tone_of(theirs, incident.category))
        yield from of_team(theirs.team, matter, why=f"{DOWNSTREAM} {reached}")
