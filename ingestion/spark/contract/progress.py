"""How far a job is: what it does now, and how much of that is done. Told while it runs; the report has the last word."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ingestion.spark.contract.strict_json import ContractError, dump, load

FILE_NAME = "progress.json"
"""Beside the job's spec and report, where it runs in a process of its own."""


@dataclass(frozen=True)
class JobProgress:
    """`phase` is one of the report's phases; `phase_s`: how long it lasts already.

    `rows_read` of `rows_total` (None: the source does not say). `tasks_done` of `tasks_total`: Spark's, of the stages that run now.
    `index_servers`: as how many region servers those count that host its Global Index now; 0: that was not asked again.
    """

    phase: str
    phase_s: float
    rows_read: int = 0
    rows_total: int | None = None
    tasks_done: int = 0
    tasks_total: int = 0
    index_servers: int = 0

    @classmethod
    def from_file(cls, path: Path) -> JobProgress | None:
        """None where nothing was told yet, or where what is there is none (of another version)."""
        try:
            return load(cls, path.read_text(), source=str(path))
        except (OSError, ContractError):
            return None

    def write(self, path: Path) -> None:
        """Whole or not at all; lost with the machine, which costs nothing."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text(dump(self))
        temporary.replace(path)
