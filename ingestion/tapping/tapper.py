"""Which servers this process taps: it claims those that nobody taps, and hands each what is to be captured there, as that changes.

Where nobody writes to the database a look costs one cheap question; all is read anew in LOOK_EVERY_S, because a lease runs out by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingestion.captures import states
from ingestion.captures.servers import PlannedCapture, captures_by_server
from ingestion.tapping import tap_leases
from ingestion.tapping.tap_threads import RunningTap

LOOK_EVERY_S = 5.0
CLAIMED_AT_ONCE = 1
"""Then others have their turn: processes that start together share the servers out."""


class Tapper:
    """`mark`: another text once others have written to the database. `free_leases`: of processes of this host that ended. `start`: begins to tap a server
    that `holder` has claimed. `monotonic`: seconds of a clock that only grows."""

    def __init__(
        self,
        holder: str,
        *,
        mark: Callable[[], str],
        free_leases: Callable[[], object],
        start: Callable[[str, Sequence[PlannedCapture]], RunningTap],
        monotonic: Callable[[], float],
    ) -> None:
        self._holder, self._mark, self._free_leases = holder, mark, free_leases
        self._start, self._monotonic = start, monotonic
        self._stored, self._looked_at = "", float("-inf")
        self._may_claim_more = False
        self._running: dict[str, RunningTap] = {}

    @property
    def servers(self) -> list[str]:
        return sorted(self._running)

    def step(self) -> None:
        """Raises DatabaseError; the next step tries again."""
        mark = self._mark()
        is_late = self._monotonic() >= self._looked_at + LOOK_EVERY_S
        if mark == self._stored and not is_late and not self._may_claim_more:
            return
        if is_late:
            self._looked_at = self._monotonic()
            self._free_leases()
        self._share_out(captures_by_server())
        states.stop_left()
        self._stored = mark

    def end(self) -> list[RunningTap]:
        """Asks all to end, and says who they are."""
        for running in self._running.values():
            running.end()
        return [*self._running.values()]

    def _share_out(self, plans: dict[str, list[PlannedCapture]]) -> None:
        for server, running in [*self._running.items()]:
            if not running.is_running:
                del self._running[server]
            elif server in plans:
                running.plan(plans[server])
            else:
                running.end(is_unused=True)
        free = tap_leases.free_servers([*plans]) if plans else []
        claimable = [server for server in free if server not in self._running]
        for server in claimable[:CLAIMED_AT_ONCE]:
            if tap_leases.claim(server, self._holder):
                self._running[server] = self._start(server, plans[server])
        self._may_claim_more = len(claimable) > CLAIMED_AT_ONCE
