"""The sender: claims one message at a time, decides whether it goes out now, and carries the decision out.

A claim is a conditional update with a lease on the database's clock. A sender that is killed before it sends loses
nothing: the lease runs out and the next one sends. Killed between sending and noting it, the message comes twice.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from incidents import moves
from incidents.channels import CannotSend, Note
from incidents.domain.suppression import AwaitRerun, Decision, Drop, Hold, Rerun, Send, StaleCopy, decide
from incidents.messages.delivering import deliver
from incidents.messages.holding import explanations, subject_of
from incidents.messages.outbox import DIRECT, OPENING, UNSENT, WORSE
from incidents.messages.recalling import TAKEN_BACK
from incidents.messages.timing import Collect, Quiet, timing_of
from incidents.models import FREE, Message, MessageState, Span
from lakehub.kernel.backoff import Backoff
from lakehub.kernel.failpoint import reach
from quality import waivers
from quality.models import Lane

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
TOLD = (MessageState.SENT, MessageState.COLLECTED)
"""What is collected for a digest is told with it."""
LOOK_AGAIN = timedelta(seconds=30)
"""At a message that is held; a change of freshness makes it due at once."""
RETRIES = Backoff(base=timedelta(seconds=10), cap=timedelta(minutes=30))
ATTEMPTS = 10


def send_due(*, now: datetime, limit: int = 50) -> int:
    """Handles up to `limit` messages that are due; how many it handled."""
    numbers = list(_due(now).order_by("due_at", "pk").values_list("pk", flat=True)[:limit])
    return sum(_handle(number, now=now) for number in numbers)


def _due(now: datetime) -> QuerySet[Message]:
    return Message.objects.filter(FREE, state__in=UNSENT, due_at__lte=now)


def _handle(number: int, *, now: datetime) -> bool:
    if _due(now).filter(pk=number).update(leased_until=Now() + LEASE) != 1:
        return False
    message = Message.objects.select_related("incident__dataset__team", "held_by", "route__team").get(pk=number)
    if (ahead := _in_hand(message)) is not None:
        _await(ahead, message, now)
    elif message.occasion in OPENING:
        _carry_out(_decide(message, now), message, now)
    elif message.occasion == WORSE:
        _tell_worse(message, now)
    elif message.occasion in DIRECT:
        _in_time(message, now)
    else:
        _follow_up(message, now)
    return True


def _decide(message: Message, now: datetime) -> Decision:
    subject = subject_of(message.incident, now=now)
    if _is_beyond_snooze(message):
        subject = replace(subject, snoozed_until=None)
    stale = explanations(message.incident, subject, now=now)
    return decide(subject, stale, was_held=message.held_since is not None, released_at=message.released_at, now=now)


def _is_beyond_snooze(message: Message) -> bool:
    """Of a snooze that an undo restored: that it was over was told in spite of it, so that it is not is too."""
    since = message.incident.snoozed_at
    return message.occasion == "reopened" and since is not None and since < message.created_at


def _carry_out(decision: Decision, message: Message, now: datetime) -> None:
    match decision:
        case Send():
            _in_time(message, now)
        case Hold(why, by, until):
            _hold(message, why, by, until, now)
        case Rerun():
            _release(message, now)
        case AwaitRerun(until):
            _wait(message, until, now)
        case Drop(why):
            _drop(message, why + _held_words(message, now))


def _follow_up(message: Message, now: datetime) -> None:
    """Who was told that it began is told how it goes on."""
    first = _opening(message)
    if _is_taken_back(message):
        _drop(message, "taken back, and that was told before")
    elif first is None or first.state in TOLD:
        _in_time(message, now)
    elif first.state in UNSENT:
        _await(first, message, now)
    else:
        _drop(message, "nobody was told that it began")


def _tell_worse(message: Message, now: datetime) -> None:
    """Held as the message that opened it would be; told also to whom its severity was too low before."""
    first = _opening(message)
    if first is not None and first.state in UNSENT:
        _await(first, message, now)
    elif first is not None and first.state == MessageState.DROPPED:
        _drop(message, "nobody was told that it began")
    else:
        _carry_out(_decide(message, now), message, now)


def _opening(message: Message) -> Message | None:
    """The message by which the same address was told, or will be, that it began."""
    return _thread(message).filter(occasion__in=OPENING, pk__lt=message.pk).order_by("-pk").first()


def _thread(message: Message) -> QuerySet[Message]:
    """What is said of the same incident to the same address."""
    return Message.objects.filter(incident=message.incident, channel=message.channel, address_key=message.address_key)


def _in_hand(message: Message) -> Message | None:
    """An earlier one that is being sent: what came later must not arrive first."""
    return _thread(message).filter(pk__lt=message.pk, state__in=UNSENT).exclude(FREE).first()


def _is_taken_back(message: Message) -> bool:
    """Its address was told so while this one was tried in vain: now it would be the last word."""
    back = TAKEN_BACK.get(message.occasion)
    later = _thread(message).filter(occasion=back, pk__gt=message.pk, state__in=TOLD)
    return back is not None and later.exists()


def _await(first: Message, message: Message, now: datetime) -> None:
    _set(message, due_at=min(now + LOOK_AGAIN, max(now + timedelta(seconds=1), first.due_at)))


# Carrying out


def _in_time(message: Message, now: datetime) -> None:
    """Sends it now, after the quiet hours of its route, or with the route's digest."""
    match timing_of(message.route, now=now):
        case Quiet(until, why):
            _hold(message, why, None, until, now)
        case Collect(at, why):
            _set(message, state=MessageState.COLLECTED, why=why[:200], due_at=at, digest=None)
        case _:
            _send(message, now)


def _send(message: Message, now: datetime) -> None:
    reach("incidents.before_message")
    team = message.incident.dataset.team
    try:
        deliver(_note(message), message.channel, message.address, team=team, now=now, message=message)
    except Exception as error:  # whatever a channel raises must not hold up the messages behind this one
        _failed(message, error, now)
        return
    _set(message, state=MessageState.SENT, sent_at=now, attempt=message.attempt + 1, error="", why="")


def _note(message: Message) -> Note:
    """One thread an incident: it goes on with what was sent to the same address before."""
    earlier = _thread(message).filter(pk__lt=message.pk, state=MessageState.SENT, digest=None)
    return Note(
        message.pk,
        message.occasion,
        message.subject,
        message.body,
        message.facts,
        at=message.created_at,
        thread=f"incident-{message.incident_id}",
        after=tuple(earlier.order_by("sent_at", "pk").values_list("pk", flat=True)),
    )


def _failed(message: Message, error: Exception, now: datetime) -> None:
    attempt = message.attempt + 1
    for_good = not isinstance(error, CannotSend) or error.for_good or attempt >= ATTEMPTS
    logger.warning("message %s to %s:%s was not sent: %s", message.pk, message.channel, message.shown_address, error)
    if not for_good:
        asked = error.retry_after or timedelta() if isinstance(error, CannotSend) else timedelta()
        due_at = now + max(RETRIES.delay(attempt - 1, 0.0), asked)
        _set(message, attempt=attempt, error=str(error), due_at=due_at)
        return
    with transaction.atomic():
        _set(message, state=MessageState.FAILED, attempt=attempt, error=str(error))
        text = f"{message.occasion} to {message.channel} {message.shown_address}: {error}"
        moves.note(message.incident, "message_failed", now=now, text=text)


def _hold(message: Message, why: str, by: StaleCopy | None, until: datetime | None, now: datetime) -> None:
    sets: dict[str, Any] = {
        "state": MessageState.HELD,
        "why": why[:200],
        "due_at": min(until or now + LOOK_AGAIN, now + LOOK_AGAIN),
    }
    if by is not None:
        sets |= {"held_by_id": by.incident, "held_since": message.held_since or now, "released_at": None}
    with transaction.atomic():
        if by is not None and (message.held_since is None or message.held_by_id != by.incident):
            _note_suppressed(message, by, now)
        _set(message, **sets)


def _note_suppressed(message: Message, by: StaleCopy, now: datetime) -> None:
    """Once for all messages of the incident that one other holds."""
    incident = message.incident
    last = incident.events.filter(kind__in=("suppressed", "message_released", "reopened")).first()
    if last is not None and (last.kind, last.detail) == ("suppressed", {"by": by.incident}):
        return
    words = f"by #{by.incident}: {by}" if by.incident else f"because {by}"
    moves.note(incident, "suppressed", now=now, text=words, by=by.incident)


def _release(message: Message, now: datetime) -> None:
    """Fresh again: run the failing units before anybody is told."""
    incident = message.incident
    units = list(Span.objects.filter(incident=incident, ended_at=None).values_list("unit_id", flat=True))
    with transaction.atomic():
        waivers.ask_rerun(units, now=now, lane=Lane.DUE)
        text = f"{message.channel}{_held_words(message, now)} because {message.why}; rerun first"
        moves.note(incident, "message_released", now=now, text=text)
        _set(message, released_at=now, why="waits for the rerun", due_at=now)


def _wait(message: Message, until: datetime, now: datetime) -> None:
    _set(message, due_at=min(until, now + timedelta(seconds=2)))


def _drop(message: Message, why: str) -> None:
    _set(message, state=MessageState.DROPPED, why=why[:200])


def _set(message: Message, **sets: Any) -> None:
    """Writes what was decided and gives the claim back."""
    Message.objects.filter(pk=message.pk, state__in=UNSENT).update(**sets, leased_until=None)


def _held_words(message: Message, now: datetime) -> str:
    """` held by #5 from 12:41 to 13:20 UTC`."""
    if message.held_since is None:
        return ""
    by = f" by #{message.held_by_id}" if message.held_by_id else ""
    until = message.released_at or now
    return f", held{by} from {message.held_since:%Y-%m-%d %H:%M} to {until:%Y-%m-%d %H:%M} UTC"
