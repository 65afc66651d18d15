"""Digests: what a route collected goes out as one message that lists it, hourly or daily.

A digest is written in the transaction that claims what it lists, so a message is in one digest or none. A sender that is
killed before it sends loses nothing; killed between sending and noting it, the digest comes twice with the same id.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.db.models.functions import Now

from incidents import moves, wording
from incidents.channels import CannotSend, Note
from incidents.messages.delivering import deliver
from incidents.models import FREE, Digest, DigestState, Incident, Message, MessageState, Route
from lakehub.kernel.apart import apart
from lakehub.kernel.backoff import Backoff
from lakehub.kernel.failpoint import reach

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
RETRIES = Backoff(base=timedelta(minutes=1), cap=timedelta(hours=1))
ATTEMPTS = 12
MOST_LISTED = 100
"""Incidents in one digest; the link at its end leads to all of them."""


def write_due(*, now: datetime) -> int:
    """Writes a digest for each route that has collected something whose time has come. The number written."""
    collected = Message.objects.filter(state=MessageState.COLLECTED, digest=None)
    _let_go(collected.filter(route=None), now=now)
    written = 0
    waiting = Route.objects.filter(Exists(collected.filter(route=OuterRef("pk"), due_at__lte=now)))
    for number in waiting.values_list("pk", flat=True):
        with apart(f"The digest of route {number}"):
            written += _write(number, now=now)
    return written


def _let_go(orphans: QuerySet[Message], *, now: datetime) -> None:
    """Their route is gone, and nothing gathers them any more: they go out at once."""
    if orphans.exists():  # an update takes the lock of a small database even where it changes nothing
        orphans.update(state=MessageState.PENDING, due_at=now, why="")


def _write(number: int, *, now: datetime) -> int:
    with transaction.atomic():
        route = Route.objects.select_for_update(of=("self",)).select_related("team").filter(pk=number).first()
        if route is None:
            return 0
        due = Message.objects.filter(state=MessageState.COLLECTED, digest=None, route=route, due_at__lte=now)
        # Locked, so that none is taken back while it is written in.
        listed = list(due.select_for_update(of=("self",)).select_related("incident__dataset").order_by("pk"))
        if not listed:
            return 0
        digest = Digest.objects.create(
            route=route,
            team=route.team,
            channel=route.channel,
            address=route.address,
            subject=subject(route, listed),
            body=body(listed),
            created_at=now,
            due_at=now,
        )
        claimed = due.filter(pk__in=[message.pk for message in listed]).update(digest=digest)
        if claimed != len(listed):
            raise RuntimeError(f"{len(listed) - claimed} messages of {route} are in another digest despite the lock.")
    return 1


def send_due(*, now: datetime, limit: int = 20) -> int:
    """Sends the digests that are due. The number that went out."""
    numbers = list(_due(now).order_by("due_at", "pk").values_list("pk", flat=True)[:limit])
    return sum(_send(number, now=now) for number in numbers)


def _due(now: datetime) -> QuerySet[Digest]:
    return Digest.objects.filter(FREE, state=DigestState.PENDING, due_at__lte=now)


def _send(number: int, *, now: datetime) -> bool:
    if _due(now).filter(pk=number).update(leased_until=Now() + LEASE) != 1:
        return False
    digest = Digest.objects.select_related("team").get(pk=number)
    reach("incidents.before_digest")
    facts = {"digest": digest.pk, "team": digest.team.name, "incidents": _numbers(digest)}
    note = Note(digest.pk, "digest", digest.subject, digest.body, facts, kind="digest")
    try:
        deliver(note, digest.channel, digest.address, team=digest.team, now=now)
    except Exception as error:  # whatever a channel raises must not hold up the digests behind this one
        _failed(digest, error, now)
        return False
    with transaction.atomic():
        _set(digest, state=DigestState.SENT, sent_at=now, attempt=digest.attempt + 1, error="")
        digest.messages.update(state=MessageState.SENT, sent_at=now, attempt=F("attempt") + 1, error="", why="")
    return True


def _failed(digest: Digest, error: Exception, now: datetime) -> None:
    attempt = digest.attempt + 1
    passing = isinstance(error, CannotSend) and not error.for_good and attempt < ATTEMPTS
    logger.warning("%s over %s was not sent: %s", digest, digest.channel, error)
    if passing:
        _set(digest, attempt=attempt, error=str(error), due_at=now + RETRIES.delay(attempt - 1, 0.0))
        return
    with transaction.atomic():
        _set(digest, state=DigestState.FAILED, attempt=attempt, error=str(error))
        digest.messages.update(state=MessageState.FAILED, error=str(error))
        for incident in Incident.objects.filter(pk__in=_numbers(digest)):
            moves.note(incident, "message_failed", now=now, text=f"digest over {digest.channel}: {error}")


def _set(digest: Digest, **sets: object) -> None:
    """Writes what was decided and gives the claim back."""
    Digest.objects.filter(pk=digest.pk, state=DigestState.PENDING).update(**sets, leased_until=None)


def _numbers(digest: Digest) -> list[int]:
    return sorted(set(digest.messages.values_list("incident_id", flat=True)))


# In words


def subject(route: Route, listed: Sequence[Message]) -> str:
    incidents = {message.incident_id: message.incident for message in listed}
    ended = sum(incident.resolved_at is not None for incident in incidents.values())
    said = f"{len(incidents)} {'incident' if len(incidents) == 1 else 'incidents'}, {ended} of them resolved"
    return f"[digest] {route.team.name}: {said}"


def body(listed: Sequence[Message]) -> str:
    """What is still open first, each incident with what happened to it and when."""
    by_incident: dict[int, list[Message]] = defaultdict(list)
    for message in listed:
        by_incident[message.incident_id].append(message)
    groups = sorted(
        by_incident.values(), key=lambda group: (_is_over(group), group[0].incident.dataset.tier, group[0].pk)
    )
    more = len(groups) - MOST_LISTED
    parts = [
        *map(_part, groups[:MOST_LISTED]),
        *([f"and {more} more"] if more > 0 else []),
        f"All incidents: {settings.LAKEHUB_BASE_URL}/incidents",
    ]
    return "\n\n".join(parts)


def _part(group: Sequence[Message]) -> str:
    incident = group[0].incident
    happened = ", ".join(_happened(group))
    state = f"State: {incident.get_state_display()}"
    return f"#{incident.pk} {incident.title}\n{happened}\n{state}\n{wording.link(incident)}"


def _happened(group: Iterable[Message]) -> list[str]:
    return [f"{message.occasion} {message.created_at:%Y-%m-%d %H:%M} UTC" for message in group]


def _is_over(group: Sequence[Message]) -> bool:
    return group[0].incident.resolved_at is not None
