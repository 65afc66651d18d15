"""A snooze as a value: what ends it, whether it holds now, and whether it may be set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from incidents.models import Incident
from incidents.record import transitions
from lakehub.kernel.errors import Refused

MAX_SNOOZE = timedelta(days=30)
MAX_FAILURES = 1000


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
            yield f"until {_utc_text(self.until)}"

    def fields(self, *, now: datetime) -> dict[str, object]:
        """Of the incident."""
        if not self.is_any:
            return dict(transitions.NOT_SNOOZED)
        return {
            "snoozed_until": self.until or now + MAX_SNOOZE,
            "snoozed_at": now,
            "snoozed_until_worse": self.until_worse,
            "snoozed_failures": self.failures,
        }


def _utc_text(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def check_snooze(snooze: Snooze, *, now: datetime) -> None:
    """Raises Refused with every part that cannot be."""
    problems = {}
    if not snooze.is_any:
        problems["until"] = "Say until when: a time, until it gets worse, or for so many more failures."
    if snooze.until is not None and snooze.until <= now:
        problems["until"] = f"A snooze ends in the future, and {_utc_text(snooze.until)} has passed."
    if snooze.failures is not None and not 1 <= snooze.failures <= MAX_FAILURES:
        problems["failures"] = f"A snooze lasts for 1 to {MAX_FAILURES} more failures, not for {snooze.failures}."
    if problems:
        raise Refused.for_fields(problems)


def snooze_of(incident: Incident, *, now: datetime) -> Snooze:
    """What the incident's snooze waits for; nothing where it is not snoozed."""
    if not is_snoozed(incident, now=now) or incident.snoozed_until is None:
        return Snooze()
    is_longest = incident.snoozed_at is not None and incident.snoozed_until == incident.snoozed_at + MAX_SNOOZE
    conditional = incident.snoozed_until_worse or incident.snoozed_failures is not None
    until = None if conditional and is_longest else incident.snoozed_until
    return Snooze(until, incident.snoozed_until_worse, incident.snoozed_failures)


def is_snoozed(incident: Incident, *, now: datetime) -> bool:
    return incident.snoozed_until is not None and now < incident.snoozed_until
