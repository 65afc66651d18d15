"""What every step of the story has at hand: the clock it plays, the database it feeds, the API it asks."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lakehub import clock
from lakehub.clock.models import ClockShift
from lakehub.demo.api import Api
from lakehub.demo.dates import Window
from lakehub.demo.instance import Instance, Processes
from lakehub.demo.operations import Operations, Played
from lakehub.demo.telling import Teller, Untrue

LOOK_EVERY_S = 0.15


@dataclass
class Stage:
    """`began_at`: the demo's time at which the story begins."""

    instance: Instance
    operations: Operations
    window: Window
    tell: Teller
    processes: Processes
    apis: dict[str, Api] = field(default_factory=dict)
    """By data center: the API as a program there sees it."""

    def now(self) -> datetime:
        return clock.now()

    def play_to(self, instant: datetime) -> Played:
        """What happens up to `instant` happens; then every process sees that it is `instant`."""
        played = self.operations.play(instant)
        ClockShift.move_to(instant)
        return played

    def play_on(self, by: timedelta) -> Played:
        return self.play_to(self.now() + by)

    def wait_until(
        self, what: str, holds: Callable[[], bool], *, within_s: float, every_s: float = LOOK_EVERY_S
    ) -> None:
        """Look until it holds. Raises Untrue with the end of the processes' log where it does not in time."""
        deadline = time.monotonic() + within_s
        while not holds():
            self.tell.progress(f"{what} ({deadline - time.monotonic():.0f} s left)")
            if not self.processes.alive() or time.monotonic() > deadline:
                ended = "" if self.processes.alive() else "The processes have ended. "
                raise Untrue(
                    f"waited for: {what}. {ended}The end of {self.instance.log}:\n{self.instance.last_words()}"
                )
            time.sleep(every_s)
