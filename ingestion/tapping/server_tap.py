"""A server that this process taps: a session after the other, with a pause after one that failed, and word of it in the database.

While it is idle that is one small update in TELL_EVERY_S, which renews the lease too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Protocol

from django.db import Error as DatabaseProblem
from django.db import transaction

from ingestion.capture.binlog.events import BinlogError
from ingestion.capture.source_counts import HourCounts, news_in
from ingestion.captures import states
from ingestion.captures.servers import PlannedCapture, current_plan, is_same_plan
from ingestion.changelog import ChangelogError, ShutOut
from ingestion.lake.captured import source_hours
from ingestion.tapping import tap_leases
from ingestion.tapping.beginning import Untappable
from ingestion.tapping.moving import MovePending
from ingestion.tapping.parts import TapParts
from ingestion.tapping.session import PlanOutdated
from ingestion.tapping.source_server import ServerUnreachable
from lakehub.kernel.backoff import Backoff

logger = logging.getLogger(__name__)

TELL_EVERY_S = 10.0
STABLE_AFTER_S = 60.0
"""A session that has lived for so long is no failure's repetition."""
RETRY = Backoff(base=timedelta(seconds=1), cap=timedelta(minutes=1))
_EXPECTED = (Untappable, MovePending, ServerUnreachable, BinlogError, ChangelogError, OSError)


class Session(Protocol):
    """See `TapSession`."""

    def step(self) -> None: ...

    def close(self) -> None: ...

    @property
    def position(self) -> str: ...

    @property
    def place(self) -> dict[str, Any]: ...

    @property
    def event_at(self) -> Any: ...

    @property
    def is_caught_up(self) -> bool: ...

    @property
    def captured(self) -> int: ...

    @property
    def counts(self) -> HourCounts: ...

    def forget_counts_before(self, hour: str) -> None: ...

    @property
    def warnings(self) -> list[str]: ...


class LeaseLost(RuntimeError):
    """Another process taps the server now."""


class ServerTap:
    """`server`: `host:port`, which `holder` has claimed. `open_session`: see `session.open_session`."""

    def __init__(
        self,
        server: str,
        plan: Sequence[PlannedCapture],
        holder: str,
        parts: TapParts,
        open_session: Callable[[str, Sequence[PlannedCapture], TapParts], Session],
    ) -> None:
        self.server, self._holder, self._parts, self._open_session = server, holder, parts, open_session
        self._plan = self._next_plan = plan
        self._session: Session | None = None
        self._failures, self._open_at, self._opened_at = 0, float("-inf"), 0.0
        self._told_at = float("-inf")
        self._kept: HourCounts = {}
        self._has_stepped = False
        """The session has: only then it is known that the server sends its binlog."""

    @property
    def position(self) -> str:
        """The GTID of the last transaction that was taken; empty: none, or there is no session."""
        return "" if self._session is None else self._session.position

    def plan(self, plan: Sequence[PlannedCapture]) -> None:
        """From whichever thread: what is to be captured from the next step on."""
        self._next_plan = plan

    def step(self) -> float:
        """Seconds until the next. Raises LeaseLost; DatabaseError, after which the next step begins anew."""
        self._take_plan()
        try:
            self._advance()
        except PlanOutdated:
            self._end_session()
            self._open_at = float("-inf")
        except ShutOut as problem:
            self._end_session()
            raise LeaseLost(str(problem)) from problem
        except DatabaseProblem:
            self._end_session()
            raise
        except Exception as problem:
            self._fail(problem)
        if self._parts.monotonic() >= self._told_at + TELL_EVERY_S:
            self._tell()
        if self._session is not None:
            return 0.0
        return max(0.0, min(self._open_at - self._parts.monotonic(), TELL_EVERY_S))

    def close(self, **facts: Any) -> None:
        """Others go on at once."""
        self._end_session()
        tap_leases.give_back(self.server, self._holder, **facts)

    def _take_plan(self) -> None:
        plan = self._next_plan
        if not is_same_plan(plan, self._plan):
            self._end_session()
            self._failures, self._open_at = 0, float("-inf")
        self._plan = plan

    def _advance(self) -> None:
        now = self._parts.monotonic()
        if self._session is None:
            if now >= self._open_at:
                self._session, self._opened_at = self._open_session(self.server, self._plan, self._parts), now
            return
        self._session.step()
        if not self._has_stepped:
            self._has_stepped = True
            self._tell()
        if now >= self._opened_at + STABLE_AFTER_S:
            self._failures = 0

    def _tell(self) -> None:
        """How far it is; without a session only that somebody tries."""
        facts: dict[str, Any] = {}
        if (session := self._session) is not None and self._has_stepped:
            now = self._parts.clock()
            facts = {
                "seen_at": now,
                "position": session.position,
                "place": session.place,
                "captured": session.captured,
                "warnings": session.warnings,
                "error": "",
            }
            facts |= {"event_at": session.event_at} if session.event_at is not None else {}
            facts |= {"caught_up_at": now} if session.is_caught_up else {}
        self._write(**facts)

    def _fail(self, problem: Exception) -> None:
        """It is tried again after a while."""
        self._end_session()
        if isinstance(problem, _EXPECTED):
            text = str(problem)
        else:
            logger.exception("The tap of %s has failed", self.server)
            text = f"The tap has failed: {type(problem).__name__}. Its log has more."
        delay = RETRY.delay(self._failures, 0.0)
        self._failures, self._open_at = self._failures + 1, self._parts.monotonic() + delay.total_seconds()
        logger.warning("%s is not tapped, which is tried again: %s", self.server, text)
        if isinstance(problem, Untappable):
            captures = {each.dataset: each.capture for each in current_plan(self._plan)}
            reasons = {dataset: it.stopped_why if it.is_stopped else text for dataset, it in captures.items()}
            states.tell_stops(reasons, now=self._parts.clock())
        self._write(error=text)

    def _write(self, **facts: Any) -> None:
        """What was counted is kept with the word that the server was heard, so whoever sees that has all that was counted before."""
        self._told_at = self._parts.monotonic()
        if self._session is None or self._session.counts == self._kept:
            self._tell_lease(**facts)
            return
        counts = self._session.counts
        with transaction.atomic():
            self._tell_lease(**facts)
            source_hours.keep_counts(self.server, news_in(counts, self._kept))
        self._session.forget_counts_before(max(counts, default=""))
        self._kept = self._session.counts

    def _tell_lease(self, **facts: Any) -> None:
        if not tap_leases.tell(self.server, self._holder, **facts):
            raise LeaseLost(f"Another process taps {self.server} now.")

    def _end_session(self) -> None:
        self._has_stepped = False
        if self._session is not None:
            self._session.close()
            self._session = None
