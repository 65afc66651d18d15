"""A tap of made-up sessions, by a clock that the test moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ingestion.capture.source_counts import HourCounts
from ingestion.captures.records import capture_of
from ingestion.captures.servers import PlannedCapture, captures_by_server
from ingestion.models import TapServer
from ingestion.tapping import tap_leases
from ingestion.tapping.parts import TapParts
from ingestion.tapping.server_tap import ServerTap
from lakehub.catalog.models import Dataset
from tests import factories as make

SERVER, HOLDER = "db:3306", "host:1:a"


def captured(*names: str) -> list[Dataset]:
    """Datasets of SERVER."""
    connection = make.connection("shop", "mysql://reader:hunter2@db/ops", plugin="mysql")
    datasets = [make.dataset(name) for name in names]
    for dataset in datasets:
        capture_of(make.feed(dataset, connection=connection))
    return datasets


@dataclass
class FakeSession:
    """Each step takes `step_s` by the clock of the test, as a server that is idle makes it wait."""

    world: TapWorld
    plan: Sequence[PlannedCapture]
    position: str = "0-1-1"
    event_at: datetime | None = None
    is_caught_up: bool = True
    warnings: list[str] = field(default_factory=list)
    is_closed: bool = False
    place: dict[str, Any] = field(
        default_factory=lambda: {"file": "binlog.000007", "offset": 4, "begun": "", "taken": {}}
    )

    counts: HourCounts = field(default_factory=dict)
    forgotten: str = ""

    @property
    def captured(self) -> int:
        return len(self.plan)

    def forget_counts_before(self, hour: str) -> None:
        self.forgotten = hour

    def step(self) -> None:
        self.world.at += 2.0
        if self.world.fails:
            raise self.world.fails.pop(0)

    def close(self) -> None:
        self.is_closed = True


@dataclass
class TapWorld:
    """`fails`: what the next steps raise; `refuses`: what the next openings do."""

    at: float = 0.0
    fails: list[Exception] = field(default_factory=list)
    refuses: list[Exception] = field(default_factory=list)
    sessions: list[FakeSession] = field(default_factory=list)
    opened_at: list[float] = field(default_factory=list)
    """Also where it was refused."""

    def now(self) -> datetime:
        return make.NOW + timedelta(seconds=self.at)

    def open(self, server: str, plan: Sequence[PlannedCapture], parts: TapParts) -> FakeSession:
        self.opened_at.append(self.at)
        if self.refuses:
            raise self.refuses.pop(0)
        self.sessions.append(FakeSession(self, plan))
        return self.sessions[-1]

    def tap(self, holder: str = HOLDER) -> ServerTap:
        tap_leases.free_servers([SERVER])
        assert tap_leases.claim(SERVER, holder)
        changelog: Any = None
        parts = TapParts(changelog, "key", self.now, lambda: self.at, lambda seconds: None)
        return ServerTap(SERVER, captures_by_server()[SERVER], holder, parts, self.open)

    def run(self, tap: ServerTap, seconds: float) -> None:
        """As its thread does; each step takes a moment."""
        end = self.at + seconds
        while self.at < end:
            wait_s = tap.step()
            self.at += wait_s + 0.001


def row() -> TapServer:
    return TapServer.objects.get(address=SERVER)
