"""What ingestion asks of the rest of Lakehub; bound in lakehub.wiring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from lakehub.kernel.interval import Interval

CONSUMER = "ingestion"
"""Who Lakehub's own jobs are to the gate: its policies are this consumer's."""


@dataclass(frozen=True)
class WantedInput:
    """A range of a copy in the lake that a job is about to read, or what it reads is made from."""

    copy: int
    dataset: str
    data_center: str
    over: Interval

    def __str__(self) -> str:
        return f"{self.dataset}@{self.data_center}"


@dataclass(frozen=True)
class InputAnswer:
    """May a job read this input now? Where not: why, by which incidents, and when to ask again."""

    wanted: WantedInput
    allowed: bool
    verdict: str
    reason: str = ""
    incidents: tuple[int, ...] = ()
    retry_at: datetime | None = None


class InputGate(Protocol):
    def __call__(
        self, inputs: Sequence[WantedInput], *, consumer: str, request_id: str, now: datetime
    ) -> Sequence[InputAnswer]:
        """The answers in the order of the inputs. Of one request a question is counted once."""
        ...
