"""The sender: claims one message at a time, decides whether it goes out now, and carries the decision out.

A claim is a conditional update with a lease on the database's clock. A sender that is killed before it sends loses
nothing: the lease runs out and the next one sends. Killed between sending and noting it, the message comes twice.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from incidents.channels import DeliveryError, Notification
from incidents.domain.alerting.suppression import (
    AwaitRerun,
    DropMessage,
    HoldMessage,
    RerunFirst,
    SendDecision,
    SendNow,
    Suppressor,
)
from incidents.models import NOT_LEASED, Message, MessageState, Span
from incidents.notifications.delivery import deliver
from incidents.notifications.outbox import UNSENT_STATES, WORSE_OCCASION
from incidents.notifications.recipients import DIRECT_OCCASIONS, OPENING_OCCASIONS
from incidents.notifications.retract import RETRACTING_OCCASIONS
from incidents.notifications.send_conditions import (
    CollectForDigest,
    WaitForQuietHours,
    decide_delivery,
    delivery_window_of,
)
from incidents.record import transitions
from lakehub.kernel.backoff import Backoff
from lakehub.kernel.failpoint import reach
from quality.models import Lane
from quality.state import waivers

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
DELIVERED_STATES = (MessageState.SENT, MessageState.COLLECTED)
"""What is collected for a digest is told with it."""
RECHECK_AFTER = timedelta(seconds=30)
"""At a message that is held; a change of freshness makes it due at once."""
RETRIES = Backoff(base=timedelta(seconds=10), cap=timedelta(minutes=30))
MAX_ATTEMPTS = 10


def send_due_messages(*, now: datetime, limit: int = 50) -> int:
    """Handles up to `limit` messages that are due; how many it handled."""
    numbers = list(_due_messages(now).order_by("due_at", "pk").values_list("pk", flat=True)[:limit])
    return sum(_process_message(number, now=now) for number in numbers)


def _due_messages(now: datetime) -> QuerySet[Message]:
    return Message.objects.filter(NOT_LEASED, state__in=UNSENT_STATES, due_at__lte=now)


def _process_message(number: int, *, now: datetime) -> bool:
    if _due_messages(now).filter(pk=number).update(leased_until=Now() + LEASE) != 1:
        return False
    message = Message.objects.select_related("incident__dataset__team", "held_by", "route__team").get(pk=number)
    if (ahead := _earlier_leased_message(message)) is not None:
        _wait_for_message(ahead, message, now)
    elif message.occasion in OPENING_OCCASIONS:
        _apply_decision(decide_delivery(message, now), message, now)
    elif message.occasion == WORSE_OCCASION:
        _send_escalation(message, now)
    elif message.occasion in DIRECT_OCCASIONS:
        _send_in_window(message, now)
    else:
        _send_follow_up(message, now)
    return True


def _apply_decision(decision: SendDecision, message: Message, now: datetime) -> None:
    match decision:
        case SendNow():
            _send_in_window(message, now)
        case HoldMessage(why, by, until):
            _hold(message, why, by, until, now)
        case RerunFirst():
            _rerun_before_sending(message, now)
        case AwaitRerun(until):
            _wait_for_rerun(message, until, now)
        case DropMessage(why):
            _drop(message, why + _suppression_text(message, now))


def _send_follow_up(message: Message, now: datetime) -> None:
    """Who was told that it began is told how it goes on."""
    first = _opening_message(message)
    if _is_retracted(message):
        _drop(message, "taken back, and that was told before")
    elif first is None or first.state in DELIVERED_STATES:
        _send_in_window(message, now)
    elif first.state in UNSENT_STATES:
        _wait_for_message(first, message, now)
    else:
        _drop(message, "nobody was told that it began")


def _send_escalation(message: Message, now: datetime) -> None:
    """Held as the message that opened it would be; told also to whom its severity was too low before."""
    first = _opening_message(message)
    if first is not None and first.state in UNSENT_STATES:
        _wait_for_message(first, message, now)
    elif first is not None and first.state == MessageState.DROPPED:
        _drop(message, "nobody was told that it began")
    else:
        _apply_decision(decide_delivery(message, now), message, now)


def _opening_message(message: Message) -> Message | None:
    """The message by which the same address was told, or will be, that it began."""
    return _thread(message).filter(occasion__in=OPENING_OCCASIONS, pk__lt=message.pk).order_by("-pk").first()


def _thread(message: Message) -> QuerySet[Message]:
    """What is said of the same incident to the same address."""
    return Message.objects.filter(incident=message.incident, channel=message.channel, address_key=message.address_key)


def _earlier_leased_message(message: Message) -> Message | None:
    """An earlier one that is being sent: what came later must not arrive first."""
    return _thread(message).filter(pk__lt=message.pk, state__in=UNSENT_STATES).exclude(NOT_LEASED).first()


def _is_retracted(message: Message) -> bool:
    """Its address was told so while this one was tried in vain: now it would be the last word."""
    back = RETRACTING_OCCASIONS.get(message.occasion)
    later = _thread(message).filter(occasion=back, pk__gt=message.pk, state__in=DELIVERED_STATES)
    return back is not None and later.exists()


def _wait_for_message(first: Message, message: Message, now: datetime) -> None:
    _update_and_release(message, due_at=min(now + RECHECK_AFTER, max(now + timedelta(seconds=1), first.due_at)))


# Carrying out


def _send_in_window(message: Message, now: datetime) -> None:
    """Sends it now, after the quiet hours of its route, or with the route's digest."""
    match delivery_window_of(message.route, now=now):
        case WaitForQuietHours(until, why):
            _hold(message, why, None, until, now)
        case CollectForDigest(at, why):
            _update_and_release(message, state=MessageState.COLLECTED, why=why[:200], due_at=at, digest=None)
        case _:
            _send(message, now)


def _send(message: Message, now: datetime) -> None:
    reach("incidents.before_message")
    team = message.incident.dataset.team
    try:
        deliver(_notification(message), message.channel, message.address, team=team, now=now, message=message)
    except Exception as error:  # whatever a channel raises must not hold up the messages behind this one
        _record_failure(message, error, now)
        return
    _update_and_release(message, state=MessageState.SENT, sent_at=now, attempt=message.attempt + 1, error="", why="")


def _notification(message: Message) -> Notification:
    """One thread an incident: it goes on with what was sent to the same address before."""
    earlier = _thread(message).filter(pk__lt=message.pk, state=MessageState.SENT, digest=None)
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


def _wait_for_rerun(message: Message, until: datetime, now: datetime) -> None:
    _update_and_release(message, due_at=min(until, now + timedelta(seconds=2)))


def _drop(message: Message, why: str) -> None:
    _update_and_release(message, state=MessageState.DROPPED, why=why[:200])


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
