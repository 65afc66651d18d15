"""A fed dataset with a copy in a lake of its own, and a launcher that only pretends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ingestion.ports import InputDecision, InputGate, JobInput
from ingestion.runs.run_worker import Worker
from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import NOTHING_TO_DO, JobReport
from ingestion.spark.contract.spec import JobSpec
from ingestion.spark.contract.write_lease import WriteLease
from lakehub.catalog.models import DatasetCopy
from tests import factories as given


@dataclass
class FakeLauncher:
    """Answers with what `answer` says, and remembers what it was asked."""

    answer: Callable[[JobSpec], JobReport] = lambda spec: JobReport(run_id=spec.run_id, status=NOTHING_TO_DO)
    asked: list[tuple[JobSpec, Mapping[str, str]]] = field(default_factory=list)
    far: JobProgress | None = None
    """What it says when asked how far a job is."""

    def run(
        self, spec: JobSpec, secrets: Mapping[str, str], lease: WriteLease | None = None, guidance: object = None
    ) -> JobReport:
        self.asked.append((spec, secrets))
        return self.answer(spec)

    def progress(self, run_id: str) -> JobProgress | None:
        return self.far

    def close(self) -> None:
        """Nothing is kept."""


@pytest.fixture
def copy(db: None, tmp_path: Path) -> DatasetCopy:
    """flights in dc1, fed every five minutes."""
    given.data_center("dc1", tmp_path.as_uri())
    dataset = given.dataset("flights", record_key=["id", "flight_date"], reference_key="updated_at")
    given.feed(dataset)
    return given.copy_of(dataset)


@pytest.fixture
def launcher() -> FakeLauncher:
    return FakeLauncher()


@pytest.fixture
def worker(launcher: FakeLauncher) -> Worker:
    return worker_at(given.NOW, launcher)


def open_gate(inputs: Sequence[JobInput], **_: Any) -> list[InputDecision]:
    return [InputDecision(wanted, True, "pass") for wanted in inputs]


def worker_at(now: datetime, launcher: FakeLauncher, name: str = "host:1:a", gate: InputGate = open_gate) -> Worker:
    return Worker(name, launcher, "file:///staging", lambda: now, timedelta, lambda: 0.0, gate)
