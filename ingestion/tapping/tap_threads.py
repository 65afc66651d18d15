"""A thread for each server that is tapped: one that hangs keeps no other waiting."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextvars import copy_context
from threading import Event, Thread
from typing import Any, Protocol

from django.db import Error as DatabaseProblem
from django.db import connection
from structlog.contextvars import bound_contextvars

from ingestion.captures.servers import PlannedCapture
from ingestion.tapping.server_tap import LeaseLost, ServerTap

logger = logging.getLogger(__name__)

AFTER_DATABASE_PROBLEM_S = 1.0
_UNUSED: Mapping[str, Any] = {"captured": 0, "error": "", "warnings": []}
"""What is told of a server from which nothing is to be captured any more: what was wrong with it is nobody's concern."""


class RunningTap(Protocol):
    """A server as it is being tapped."""

    @property
    def is_running(self) -> bool: ...

    def plan(self, plan: Sequence[PlannedCapture]) -> None: ...

    def end(self, *, is_unused: bool = False) -> None:
        """Asks it to; `is_unused`: nothing is captured there any more."""

    def join(self, timeout_s: float) -> None:
        """Waits for it."""


class TapThread:
    def __init__(self, tap: ServerTap) -> None:
        self._tap, self._ended, self._wake, self._is_unused = tap, Event(), Event(), False
        # A daemon: a process that ends waits for it no longer than it wants to.
        self._thread = Thread(target=copy_context().run, args=(self._serve,), name=f"tap {tap.server}", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def plan(self, plan: Sequence[PlannedCapture]) -> None:
        self._tap.plan(plan)
        self._wake.set()

    def end(self, *, is_unused: bool = False) -> None:
        self._is_unused = is_unused
        self._ended.set()
        self._wake.set()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def _serve(self) -> None:
        try:
            with bound_contextvars(server=self._tap.server):
                while not self._ended.is_set() and self._step():
                    pass
                self._tap.close(**(_UNUSED if self._is_unused else {}))
        except DatabaseProblem:
            logger.warning("The lease of %s was not given back: it runs out", self._tap.server, exc_info=True)
        finally:
            connection.close()

    def _step(self) -> bool:
        """False: there is nothing more to do here."""
        try:
            wait_s = self._tap.step()
        except LeaseLost as lost:
            logger.info("%s", lost)
            return False
        except DatabaseProblem:
            logger.warning(
                "The tap of %s did not reach the database; it is tried again", self._tap.server, exc_info=True
            )
            connection.close()
            wait_s = AFTER_DATABASE_PROBLEM_S
        if wait_s:
            self._wake.wait(wait_s)
            self._wake.clear()
        return True
