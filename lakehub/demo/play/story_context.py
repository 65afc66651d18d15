"""What every step of the story has at hand: the clock it plays, the database it feeds, the API it asks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lakehub import clock
from lakehub.clock.models import ClockShift
from lakehub.demo.flights.operational_database import OperationalDatabase, PlayedChanges
from lakehub.demo.flights.replay_window import ReplayWindow
from lakehub.demo.instance import Instance, Processes
from lakehub.demo.play.gate_client import GateClient
from lakehub.demo.play.narrator import ClaimFailed, Narrator
from lakehub.setup.machine import scaled

POLL_INTERVAL_S = 0.15


@dataclass
class StoryContext:
    """What the steps of the story share: the instance, the data that they play, and who tells it."""

    instance: Instance
    operations: OperationalDatabase
    window: ReplayWindow
    narrator: Narrator
    processes: Processes
    gate_clients: dict[str, GateClient] = field(default_factory=dict)
    """By data center: the API as a program there sees it."""

    def now(self) -> datetime:
        return clock.now()

    def play_to(self, instant: datetime) -> PlayedChanges:
        """What happens up to `instant` happens; then every process sees that it is `instant`."""
        played = self.operations.play(instant)
        ClockShift.move_to(instant)
        return played

    def play_on(self, by: timedelta) -> PlayedChanges:
        return self.play_to(self.now() + by)

    def wait_until(
        self, description: str, holds: Callable[[], bool], *, within_s: float, every_s: float = POLL_INTERVAL_S
    ) -> None:
        """Look until it holds. Raises ClaimFailed with the end of the processes' log where it does not in time."""
        deadline = time.monotonic() + scaled(within_s)
        while not holds():
            self.narrator.progress(f"{description} ({deadline - time.monotonic():.0f} s left)")
            if not self.processes.are_alive() or time.monotonic() > deadline:
                ended = "" if self.processes.are_alive() else "The processes have ended. "
                raise ClaimFailed(
                    f"waited for: {description}. {ended}The end of {self.instance.log}:\n{self.instance.log_tail()}"
                )
            time.sleep(every_s)
