"""Letters to owners go out: written once, and sent until they arrive or are given up.

A sender that is killed before it sends loses nothing; killed between sending and noting it, the mail comes twice with the
same Message-ID.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.db.models.functions import Now

from incidents.channels import DeliveryError, Notification
from incidents.models import NOT_LEASED, MessageState, UnverifiedMail, WeeklyReportMail
from incidents.notifications.sender import TURN_S, deliver
from lakehub.kernel.backoff import Backoff, Turn
from lakehub.kernel.errors import Refused

logger = logging.getLogger(__name__)
LEASE = timedelta(seconds=60)
RETRIES = Backoff(base=timedelta(minutes=1), cap=timedelta(hours=2))
MAX_ATTEMPTS = 12
_LETTERS: tuple[tuple[str, type[WeeklyReportMail] | type[UnverifiedMail]], ...] = (
    ("weekly", WeeklyReportMail),
    ("unverified", UnverifiedMail),
)


def send_due_letters(*, now: datetime, limit: int = 20) -> int:
    """Sends the letters that are due, at most `limit` of each kind. The number that went out."""
    turn, sent = Turn(TURN_S, time.monotonic), 0
    for occasion, model in _LETTERS:
        numbers = list(_due_letters(model, now).order_by("due_at", "pk").values_list("pk", flat=True)[:limit])
        for number in numbers:
            if turn.has_time:
                with turn.spending():
                    sent += _send_letter(model, occasion, number, now=now)
    return sent


def _due_letters(
    model: type[WeeklyReportMail] | type[UnverifiedMail], now: datetime
) -> QuerySet[WeeklyReportMail] | QuerySet[UnverifiedMail]:
    return model._default_manager.filter(NOT_LEASED, state=MessageState.PENDING, due_at__lte=now)


def _send_letter(
    model: type[WeeklyReportMail] | type[UnverifiedMail], occasion: str, number: int, *, now: datetime
) -> bool:
    if _due_letters(model, now).filter(pk=number).update(leased_until=Now() + LEASE) != 1:
        return False
    letter = model._default_manager.get(pk=number)
    note = Notification(letter.pk, occasion, letter.subject, letter.body, {}, kind="letter")
    pending = model._default_manager.filter(pk=number, state=MessageState.PENDING)
    try:
        deliver(note, "email", letter.address, team=letter.team, now=now)
    except (DeliveryError, Refused) as error:
        attempt = letter.attempt + 1
        is_permanent = isinstance(error, Refused) or error.is_permanent or attempt >= MAX_ATTEMPTS
        logger.warning("%s was not sent: %s", letter, error)
        state = MessageState.FAILED if is_permanent else MessageState.PENDING
        due_at = now + RETRIES.delay(attempt - 1, 0.0)
        pending.update(state=state, attempt=attempt, error=str(error), due_at=due_at, leased_until=None)
        return False
    pending.update(state=MessageState.SENT, sent_at=now, attempt=letter.attempt + 1, error="", leased_until=None)
    return True
