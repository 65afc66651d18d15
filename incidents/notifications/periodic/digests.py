"""Digests: what a route collected goes out as one message that lists it, hourly or daily.

A digest is written in the transaction that claims what it lists, so a message is in one digest or none. A sender that is
killed before it sends loses nothing; killed between sending and noting it, the digest comes twice with the same id.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.db.models.functions import Now

from incidents.channels import DeliveryError, Notification
from incidents.models import NOT_LEASED, Digest, DigestState, Incident, Message, MessageState, Route
from incidents.notifications.periodic.digest_text import digest_body, digest_subject
from incidents.notifications.sender import TURN_S, deliver
from incidents.record import transitions
from lakehub.kernel.backoff import Backoff, Turn
from lakehub.kernel.error_isolation import log_and_continue
from lakehub.kernel.failpoint import reach

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
RETRIES = Backoff(base=timedelta(minutes=1), cap=timedelta(hours=1))
MAX_ATTEMPTS = 12


def write_due_digests(*, now: datetime) -> int:
    """Writes a digest for each route that has collected something whose time has come. The number written."""
    collected = Message.objects.filter(state=MessageState.COLLECTED, digest=None)
    _release_orphans(collected.filter(route=None), now=now)
    written = 0
    waiting = Route.objects.filter(Exists(collected.filter(route=OuterRef("pk"), due_at__lte=now)))
    for number in waiting.values_list("pk", flat=True):
        with log_and_continue(f"The digest of route {number}"):
            written += _write_digest(number, now=now)
    return written


def _release_orphans(orphans: QuerySet[Message], *, now: datetime) -> None:
    """Their route is gone, and nothing gathers them any more: they go out at once."""
    if orphans.exists():  # an update takes the lock of a small database even where it changes nothing
        orphans.update(state=MessageState.PENDING, due_at=now, why="")


def _write_digest(number: int, *, now: datetime) -> int:
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
            subject=digest_subject(route, listed),
            body=digest_body(listed),
            created_at=now,
            due_at=now,
        )
        claimed = due.filter(pk__in=[message.pk for message in listed]).update(digest=digest)
        if claimed != len(listed):
            raise RuntimeError(f"{len(listed) - claimed} messages of {route} are in another digest despite the lock.")
    return 1


def send_due_digests(*, now: datetime, limit: int = 20) -> int:
    """Sends the digests that are due. The number that went out."""
    numbers = list(_due_digests(now).order_by("due_at", "pk").values_list("pk", flat=True)[:limit])
    turn, sent = Turn(TURN_S, time.monotonic), 0
    for number in numbers:
        if turn.has_time:
            with turn.spending():
                sent += _send_digest(number, now=now)
    return sent


def _due_digests(now: datetime) -> QuerySet[Digest]:
    return Digest.objects.filter(NOT_LEASED, state=DigestState.PENDING, due_at__lte=now)


def _send_digest(number: int, *, now: datetime) -> bool:
    if _due_digests(now).filter(pk=number).update(leased_until=Now() + LEASE) != 1:
        return False
    digest = Digest.objects.select_related("team").get(pk=number)
    reach("incidents.before_digest")
    facts = {"digest": digest.pk, "team": digest.team.name, "incidents": _incident_numbers(digest)}
    note = Notification(digest.pk, "digest", digest.subject, digest.body, facts, kind="digest")
    try:
        deliver(note, digest.channel, digest.address, team=digest.team, now=now)
    except Exception as error:  # whatever a channel raises must not hold up the digests behind this one
        _record_failure(digest, error, now)
        return False
    with transaction.atomic():
        _update_and_release(digest, state=DigestState.SENT, sent_at=now, attempt=digest.attempt + 1, error="")
        digest.messages.update(state=MessageState.SENT, sent_at=now, attempt=F("attempt") + 1, error="", why="")
    return True


def _record_failure(digest: Digest, error: Exception, now: datetime) -> None:
    attempt = digest.attempt + 1
    passing = isinstance(error, DeliveryError) and not error.is_permanent and attempt < MAX_ATTEMPTS
    logger.warning("%s over %s was not sent: %s", digest, digest.channel, error)
    if passing:
        _update_and_release(digest, attempt=attempt, error=str(error), due_at=now + RETRIES.delay(attempt - 1, 0.0))
        return
    with transaction.atomic():
        _update_and_release(digest, state=DigestState.FAILED, attempt=attempt, error=str(error))
        digest.messages.update(state=MessageState.FAILED, error=str(error))
        for incident in Incident.objects.filter(pk__in=_incident_numbers(digest)):
            transitions.add_event(incident, "message_failed", now=now, text=f"digest over {digest.channel}: {error}")


def _update_and_release(digest: Digest, **sets: object) -> None:
    """Writes what was decided and gives the claim back."""
    Digest.objects.filter(pk=digest.pk, state=DigestState.PENDING).update(**sets, leased_until=None)


def _incident_numbers(digest: Digest) -> list[int]:
    return sorted(set(digest.messages.values_list("incident_id", flat=True)))
