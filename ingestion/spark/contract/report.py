"""What a job tells: what it read, what became of it, what it wrote, how long each phase took."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ingestion.domain.accounting import RowCounts
from ingestion.spark.contract.strict_json import dump, load

REPORT_VERSION = 1
SUCCEEDED, NOTHING_TO_DO, FAILED = "succeeded", "nothing_to_do", "failed"


@dataclass(frozen=True)
class WrittenKeys:
    """Keys written, by the table format's own statistics."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0

    @property
    def total(self) -> int:
        return self.inserts + self.updates + self.deletes


@dataclass(frozen=True)
class JobReport:
    """`status` is succeeded, nothing_to_do or failed.

    `partitions`: rows written by partition ("" for a table without). `source_committed_from/upto`: the oldest and newest watermark handed over.
    `schema`: {"columns": {name: type}, "added": [...], "widened": [...], "conflicts": [[name, stored, incoming]]}. `phases`: seconds by name.
    `unusable_cursors`: {"column": name, "rows": how many rows have a cursor such as NaN, "sample": some of its values}; empty where nothing was read.
    `output`: what a job that only reads has found out.
    """

    run_id: str
    status: str
    instant: str | None = None
    completed_at: str | None = None
    counts: RowCounts = field(default_factory=RowCounts)
    written: WrittenKeys = field(default_factory=WrittenKeys)
    checkpoint: dict[str, Any] | None = None
    partitions: dict[str, int] = field(default_factory=dict)
    schema: dict[str, Any] = field(default_factory=dict)
    source_committed_from: str | None = None
    source_committed_upto: str | None = None
    unusable_cursors: dict[str, Any] = field(default_factory=dict)
    output: dict[str, Any] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)
    error: str | None = None
    report_version: int = REPORT_VERSION

    @property
    def is_accounted(self) -> bool:
        """The sum holds, and no more keys were written than events applied."""
        return self.counts.is_balanced and self.written.total <= self.counts.applied

    @classmethod
    def from_json(cls, text: str, *, source: str = "the report") -> JobReport:
        return load(cls, text, source=source)

    @classmethod
    def from_file(cls, path: Path) -> JobReport:
        return cls.from_json(path.read_text(), source=str(path))

    def to_json(self) -> str:
        return dump(self)

    def write(self, path: Path) -> None:
        """Whole or not at all: under a temporary name first, then renamed."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        with temporary.open("w") as file:
            file.write(self.to_json())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
