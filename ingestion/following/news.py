"""Whether others have written to the database, for a process that follows: it steps after each look, and need not ask after each step.

On PostgreSQL there is nearly always news, because the mark of changes is the whole server's. So what news brings, such as a look for runs to claim, is
due once a second at most, and to free the leases of processes that ended once in some seconds.
"""

from __future__ import annotations

from collections.abc import Callable

ASK_EVERY_S = 1.0
CLAIM_EVERY_S = 30.0
"""Whatever was written: a lease runs out by itself."""
FREE_LEASES_EVERY_S = 5.0


class News:
    """Called: has anybody written to the database since the last call that said so, or is it long ago?

    `mark`: another text once there was a write. `free_leases`: of processes of this host that ended. `monotonic`: seconds of a clock that only grows.
    """

    def __init__(
        self, mark: Callable[[], str], *, free_leases: Callable[[], object], monotonic: Callable[[], float]
    ) -> None:
        self._mark, self._free_leases, self._monotonic = mark, free_leases, monotonic
        self._stored, self._asked_at, self._heard_at, self._freed_at = "", *[float("-inf")] * 3
        self._may_be_leases = False
        """There was news since leases were freed."""

    def __call__(self) -> bool:
        at = self._monotonic()
        if at - self._asked_at < ASK_EVERY_S:
            return False
        self._asked_at = at
        has_news = self._has_news(at)
        self._may_be_leases = self._may_be_leases or has_news
        if self._may_be_leases and at - self._freed_at >= FREE_LEASES_EVERY_S:
            self._may_be_leases, self._freed_at = False, at
            self._free_leases()
            return True
        return has_news

    def _has_news(self, at: float) -> bool:
        mark = self._mark()
        if mark == self._stored and at - self._heard_at < CLAIM_EVERY_S:
            return False
        self._stored, self._heard_at = mark, at
        return True
