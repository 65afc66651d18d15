"""The sender: claims one message at a time, decides whether it goes out now, and carries the decision out.

A claim is a conditional update with a lease on the database's clock. A sender that is killed before it sends loses
nothing: the lease runs out and the next one sends. Killed between sending and noting it, the message comes twice.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from incidents.channels import CHANNELS, HIDDEN_ADDRESS, DeliveryError, Notification, redacted_address
from incidents.domain.alerting.suppression import (
    AwaitRerun,
    DropMessage,
    HoldMessage,
    RerunFirst,
    SendNow,
    Suppressor,
)
from incidents.models import NOT_LEASED, Delivery, Message, MessageState, Span
from incidents.notifications.outbox import UNSENT_STATES
from incidents.notifications.send_conditions import CollectForDigest, Decision, WaitForMessage, decide, thread_of
from incidents.notifications.trial_places import trial_place
from incidents.record import transitions
from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Team
from lakehub.kernel.backoff import Backoff, Pauses, Turn
from lakehub.kernel.failpoint import reach
from quality.models import Lane
from quality.state import waivers

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
RECHECK_AFTER = timedelta(seconds=30)
"""At a message that is held; a change of freshness makes it due at once."""
RETRIES = Backoff(base=timedelta(seconds=10), cap=timedelta(minutes=30))
MAX_ATTEMPTS = 10
TURN_S = 20.0
"""Of one call, spent on receivers; the next one goes on with the rest."""
_PAUSES = Pauses(Backoff(base=timedelta(seconds=10), cap=timedelta(minutes=5)), slow_after_s=3.0)
"""Receivers that give no answer: their other messages are put off together, so that those of others go out."""
TEST_OCCASION = "test"


def send_due_messages(*, now: datetime, limit: int = 50, turn: Turn | None = None, pauses: Pauses = _PAUSES) -> int:
    """Handles up to `limit` messages that are due, fewer where receivers are slow; how many it handled."""
    turn = turn or Turn(TURN_S, time.monotonic)
    numbers = list(_due_messages(now).order_by("due_at", "pk").values_list("pk", flat=True)[:limit])
    return sum(_process_message(number, turn, pauses, now=now) for number in numbers if turn.has_time)


def _due_messages(now: datetime) -> QuerySet[Message]:
    return Message.objects.filter(NOT_LEASED, state__in=UNSENT_STATES, due_at__lte=now)


def _process_message(number: int, turn: Turn, pauses: Pauses, *, now: datetime) -> bool:
    if _due_messages(now).filter(pk=number).update(leased_until=Now() + LEASE) != 1:
        return False
    message = Message.objects.select_related("incident__dataset__team", "held_by", "route__team").get(pk=number)
    decision = decide(message, now=now)
    if isinstance(decision, SendNow):
        _send_in_turn(message, turn, pauses, now)
    else:
        _wait_or_drop(decision, message, now)
    return True


def _wait_or_drop(decision: Decision, message: Message, now: datetime) -> None:
    match decision:
        case CollectForDigest(at, why):
            _update_and_release(message, state=MessageState.COLLECTED, why=why[:200], due_at=at, digest=None)
        case WaitForMessage(first):
            due_at = min(now + RECHECK_AFTER, max(now + timedelta(seconds=1), first.due_at))
            _update_and_release(message, due_at=due_at)
        case HoldMessage(why, by, until):
            _hold(message, why, by, until, now)
        case RerunFirst():
            _rerun_before_sending(message, now)
        case AwaitRerun(until):
            _update_and_release(message, due_at=min(until, now + timedelta(seconds=2)))
        case DropMessage(why):
            text = why + _suppression_text(message, now)
            _update_and_release(message, state=MessageState.DROPPED, why=text[:200])


# Sending


def _send_in_turn(message: Message, turn: Turn, pauses: Pauses, now: datetime) -> None:
    receiver = (message.channel, _host(message.address))
    if (until := pauses.until(receiver, now)) is not None:
        why = f"put off: {message.shown_address} gave no answer"
        _update_and_release(message, due_at=until, error=message.error or why)
        return
    with turn.spending() as passed_s:
        error = _send(message, now)
        is_silent = isinstance(error, DeliveryError) and not error.status and not error.is_permanent
        pauses.note(receiver, now=now, took_s=passed_s(), is_silent=is_silent)


def _host(address: str) -> str:
    """Of a URL. All other addresses of a channel have one server, which is silent for all or for none."""
    return address.partition("://")[2].partition("/")[0]


def _send(message: Message, now: datetime) -> Exception | None:
    """What went wrong: whatever a channel raises must not hold up the messages behind this one."""
    reach("incidents.before_message")
    team = message.incident.dataset.team
    try:
        deliver(_notification(message), message.channel, message.address, team=team, now=now, message=message)
    except Exception as error:
        _record_failure(message, error, now)
        return error
    _update_and_release(message, state=MessageState.SENT, sent_at=now, attempt=message.attempt + 1, error="", why="")
    return None


def _notification(message: Message) -> Notification:
    """One thread an incident: it goes on with what was sent to the same address before."""
    earlier = thread_of(message).filter(pk__lt=message.pk, state=MessageState.SENT, digest=None)
    return Notification(
        message.pk,
        message.occasion,
        message.subject,
        message.body,
        message.facts,
        written_at=message.created_at,
        thread=f"incident-{message.incident_id}",
        previous_ids=tuple(earlier.order_by("sent_at", "pk").values_list("pk", flat=True)),
    )


def deliver(
    note: Notification, name: str, address: str, *, team: Team, now: datetime, message: Message | None = None
) -> Delivery:
    """The one way out: the attempt is kept, whatever came of it. Raises what the channel raises: DeliveryError, or Refused.

    Never call it inside a transaction: it waits for others.
    """
    attempt, error = _attempt(note, name, address, team=team, now=now, message=message)
    if error is not None:
        raise error
    return attempt


def send_test_message(name: str, address: str, *, team: Team, actor: str, now: datetime) -> Delivery:
    """Sends a word to an address, so that a person sees whether it arrives. What came of it. Raises Refused, and Busy."""
    CHANNELS.get(name)().check(address)
    with trial_place(actor):
        shown = redacted_address(name, address)[:200]
        audit_log.record(actor, "test channel", f"team:{team.name}", now=now, channel=name, address=shown)
        body = f"{actor} tries whether messages for team {team.name} arrive here. Nothing is wrong."
        note = Notification(
            int(now.timestamp()), TEST_OCCASION, f"[test] Lakehub reaches {team.name}", body, {}, kind=TEST_OCCASION
        )
        attempt, _ = _attempt(note, name, address, team=team, now=now)
    return attempt


def _attempt(
    note: Notification, name: str, address: str, *, team: Team, now: datetime, message: Message | None = None
) -> tuple[Delivery, Exception | None]:
    """Whatever goes wrong, the log has it; the caller decides what follows."""
    began, shown, status, failed = time.monotonic(), HIDDEN_ADDRESS, "", None
    try:
        channel = CHANNELS.get(name)()
        shown = channel.shown(address)
        status = channel.send(note, address, now=now)
    except Exception as error:
        status, failed = getattr(error, "status", ""), error
    delivery = Delivery.objects.create(
        team=team,
        message=message,
        occasion=note.occasion,
        channel=name,
        address=shown[:200],
        at=now,
        ok=failed is None,
        status=status[:20],
        error=" ".join(str(failed).split())[:500] if failed else "",
        ms=round((time.monotonic() - began) * 1000),
    )
    return delivery, failed


def _record_failure(message: Message, error: Exception, now: datetime) -> None:
    attempt = message.attempt + 1
    is_permanent = not isinstance(error, DeliveryError) or error.is_permanent or attempt >= MAX_ATTEMPTS
    logger.warning("message %s to %s:%s was not sent: %s", message.pk, message.channel, message.shown_address, error)
    if not is_permanent:
        requested_delay = error.retry_after or timedelta() if isinstance(error, DeliveryError) else timedelta()
        due_at = now + max(RETRIES.delay(attempt - 1, 0.0), requested_delay)
        _update_and_release(message, attempt=attempt, error=str(error), due_at=due_at)
        return
    with transaction.atomic():
        _update_and_release(message, state=MessageState.FAILED, attempt=attempt, error=str(error))
        text = f"{message.occasion} to {message.channel} {message.shown_address}: {error}"
        transitions.add_event(message.incident, "message_failed", now=now, text=text)


# Waiting and dropping


def _hold(message: Message, why: str, by: Suppressor | None, until: datetime | None, now: datetime) -> None:
    sets: dict[str, Any] = {
        "state": MessageState.HELD,
        "why": why[:200],
        "due_at": min(until or now + RECHECK_AFTER, now + RECHECK_AFTER),
    }
    if by is not None:
        sets |= {"held_by_id": by.incident, "suppressed_since": message.suppressed_since or now, "released_at": None}
    with transaction.atomic():
        if by is not None and (message.suppressed_since is None or message.held_by_id != by.incident):
            _add_suppressed_event(message, by, now)
        _update_and_release(message, **sets)


def _add_suppressed_event(message: Message, by: Suppressor, now: datetime) -> None:
    """Once for all messages of the incident that one other holds."""
    incident = message.incident
    last = incident.events.filter(kind__in=("suppressed", "message_released", "reopened")).first()
    if last is not None and (last.kind, last.detail) == ("suppressed", {"by": by.incident}):
        return
    words = f"by #{by.incident}: {by}" if by.incident else f"because {by}"
    transitions.add_event(incident, "suppressed", now=now, text=words, by=by.incident)


def _rerun_before_sending(message: Message, now: datetime) -> None:
    """Fresh again: run the failing units before anybody is told."""
    incident = message.incident
    units = list(Span.objects.filter(incident=incident, ended_at=None).values_list("unit_id", flat=True))
    with transaction.atomic():
        waivers.request_rerun(units, now=now, lane=Lane.DUE)
        text = f"{message.channel}{_suppression_text(message, now)} because {message.why}; rerun first"
        transitions.add_event(incident, "message_released", now=now, text=text)
        _update_and_release(message, released_at=now, why="waits for the rerun", due_at=now)


def _update_and_release(message: Message, **sets: Any) -> None:
    """Writes what was decided and gives the claim back."""
    Message.objects.filter(pk=message.pk, state__in=UNSENT_STATES).update(**sets, leased_until=None)


def _suppression_text(message: Message, now: datetime) -> str:
    """` held by #5 from 12:41 to 13:20 UTC`."""
    if message.suppressed_since is None:
        return ""
    by = f" by #{message.held_by_id}" if message.held_by_id else ""
    until = message.released_at or now
    return f", held{by} from {message.suppressed_since:%Y-%m-%d %H:%M} to {until:%Y-%m-%d %H:%M} UTC"
