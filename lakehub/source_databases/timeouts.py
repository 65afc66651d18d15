"""How long a database may take before it is left."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Timeouts:
    """`connect`: until it has let us in. `silence`: for one statement, or for the next rows of one. `cancel`: to be told to stop.

    Whatever it does, a connection ends `connect + cancel` after it was begun, or `silence + cancel` after the last rows.
    """

    connect: timedelta = timedelta(seconds=10)
    silence: timedelta = timedelta(seconds=150)
    cancel: timedelta = timedelta(seconds=2)

    @property
    def connect_s(self) -> int:
        """Drivers take whole seconds; 0 would be none."""
        return max(1, round(self.connect.total_seconds()))

    @property
    def silence_s(self) -> int:
        return max(1, round(self.silence.total_seconds()))


DEFAULT_TIMEOUTS = Timeouts()
