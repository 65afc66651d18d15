"""Snooze: the messages of an incident are held until a time, until it gets worse, or for so many more failures.

Its tests go on, its verdict and the gate's answer stay. It ends with the incident, and without a time after LONGEST
whatever happens, so that nothing is silent for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import transaction

from incidents import moves
from incidents.messages import outbox
from incidents.models import Incident, Message, MessageState, Span
from lakehub.kernel.errors import Refused
from lakehub.kernel.outcome import Outcome
from quality.models import Result

LONGEST = timedelta(days=30)
MOST_FAILURES = 1000


@dataclass(frozen=True)
class Snooze:
    """What ends it, whichever comes first; nothing of it: it is not snoozed."""

    until: datetime | None = None
    until_worse: bool = False
    failures: int | None = None

    @property
    def is_any(self) -> bool:
        return self.until is not None or self.until_worse or self.failures is not None

    def __str__(self) -> str:
        return " or ".join(self._ends()) or "no longer"

    def _ends(self) -> Iterable[str]:
        if self.until_worse:
            yield "until it gets worse"
        if self.failures is not None:
            yield f"for {self.failures} more {'failure' if self.failures == 1 else 'failures'}"
        if self.until is not None:
            yield f"until {_utc(self.until)}"

    def fields(self, *, now: datetime) -> dict[str, object]:
        """Of the incident."""
        if not self.is_any:
            return dict(moves.AWAKE)
        return {
            "snoozed_until": self.until or now + LONGEST,
            "snoozed_at": now,
            "snoozed_until_worse": self.until_worse,
            "snoozed_failures": self.failures,
        }


def _utc(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def check(wanted: Snooze, *, now: datetime) -> None:
    """Raises Refused with every part that cannot be."""
    problems = {}
    if not wanted.is_any:
        problems["until"] = "Say until when: a time, until it gets worse, or for so many more failures."
    if wanted.until is not None and wanted.until <= now:
        problems["until"] = f"A snooze ends in the future, and {_utc(wanted.until)} has passed."
    if wanted.failures is not None and not 1 <= wanted.failures <= MOST_FAILURES:
        problems["failures"] = f"A snooze lasts for 1 to {MOST_FAILURES} more failures, not for {wanted.failures}."
    if problems:
        raise Refused.because(problems)


def of(incident: Incident, *, now: datetime) -> Snooze:
    """What the incident's snooze waits for; nothing where it is not snoozed."""
    if not is_snoozed(incident, now=now) or incident.snoozed_until is None:
        return Snooze()
    is_longest = incident.snoozed_at is not None and incident.snoozed_until == incident.snoozed_at + LONGEST
    conditional = incident.snoozed_until_worse or incident.snoozed_failures is not None
    until = None if conditional and is_longest else incident.snoozed_until
    return Snooze(until, incident.snoozed_until_worse, incident.snoozed_failures)


def is_snoozed(incident: Incident, *, now: datetime) -> bool:
    return incident.snoozed_until is not None and now < incident.snoozed_until


def wake(incident: Incident, why: str, *, now: datetime, actor: str = "", seen: int | None = None) -> None:
    """Ends the snooze; what it held is looked at again at once. Call it in a transaction."""
    moves.update(incident, Snooze().fields(now=now), seen=seen)
    moves.note(incident, "snooze_ended", now=now, actor=actor, text=why)
    look_again(incident, now=now)


def look_again(incident: Incident, *, now: datetime) -> None:
    held = Message.objects.filter(incident=incident, state=MessageState.HELD, due_at__gt=now)
    held.update(due_at=now)


def failures_since(incident: Incident, since: datetime) -> int:
    """How many runs of what is failing have failed since."""
    units = Span.objects.filter(incident=incident, ended_at=None).values("unit")
    return Result.objects.filter(unit__in=units, outcome=Outcome.FAIL, read_at__gt=since).count()


def end_due(*, now: datetime) -> int:
    """Ends the snoozes whose failures are all there. The number ended."""
    waiting = Incident.objects.filter(
        resolved_at=None, snoozed_until__gt=now, snoozed_failures__isnull=False, snoozed_at__isnull=False
    )
    return sum(_end_if_due(number, now=now) for number in waiting.values_list("pk", flat=True))


def _end_if_due(number: int, *, now: datetime) -> bool:
    with transaction.atomic():
        locked = Incident.objects.select_for_update(of=("self",)).filter(pk=number, snoozed_until__gt=now)
        incident = locked.select_related("dataset__team").first()
        if incident is None or incident.snoozed_at is None or incident.snoozed_failures is None:
            return False
        wanted, seen = incident.snoozed_failures, failures_since(incident, incident.snoozed_at)
        if seen < wanted:
            return False
        why = f"failed {seen} more {'time' if seen == 1 else 'times'} since it was snoozed"
        wake(incident, why, now=now)
        outbox.enqueue(incident, outbox.WORSE, outbox.spans_to_tell(incident), now=now, text=why)
        return True
