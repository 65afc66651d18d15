"""What ingestion asks of the rest of Lakehub; bound in lakehub.wiring."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from lakehub.kernel.interval import Interval


@dataclass(frozen=True)
class InputAnswer:
    """May a job read this input now? Where not: why, and when to ask again."""

    allowed: bool
    reason: str
    retry_at: datetime | None = None


class InputGate(Protocol):
    def __call__(
        self, *, dataset: str, data_center: str, wanted: Interval, consumer: str, now: datetime
    ) -> InputAnswer: ...
