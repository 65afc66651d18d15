"""What a job tells: what it read, what became of it, what it wrote, how long each phase took."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ingestion.domain.accounting import RowCounts
from ingestion.spark.contract.strict_json import dump, load

REPORT_VERSION = 1
SUCCEEDED, NOTHING_TO_DO, FAILED = "succeeded", "nothing_to_do", "failed"
UNFINISHED = "unfinished"
"""Of a bootstrap that has committed a part, and goes on when it is run again."""

PUT_OFF = "put_off"
"""Nothing was written: another job holds the copy, and this one was not to wait for long."""

INDEX_AWAY = "index_away"
"""HBase, which has the index of the table, does not answer: the job is tried again when it may be back. What it had committed is committed."""

REFUSED = "refused"
"""Of a pipeline whose rows do not pass an audit: nothing was committed, and what was made is kept. `output` says why."""

PAUSED = "paused"
"""Unfinished, because a person has paused the ingestion: it goes on when that is resumed."""


@dataclass(frozen=True)
class WrittenKeys:
    """Keys written, by the table format's own statistics."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0

    @property
    def total(self) -> int:
        return self.inserts + self.updates + self.deletes

    def __add__(self, other: WrittenKeys) -> WrittenKeys:
        return WrittenKeys(self.inserts + other.inserts, self.updates + other.updates, self.deletes + other.deletes)


@dataclass(frozen=True)
class IndexUse:
    """What a job has asked of the Global Index. `servers`: `host:port` of each region server that has a part of the table, and as how many they count
    (`even_servers`); none: they were not counted.
    `reads`: keys that were asked for; `writes`: entries written or removed; `seconds`: that took. `entries`: of the index, where the job has counted them."""

    servers: tuple[str, ...] = ()
    reads: int = 0
    writes: int = 0
    seconds: float = 0.0
    entries: int | None = None
    even_servers: int = 0


def _known(*instants: str | None) -> list[str]:
    return [instant for instant in instants if instant is not None]


@dataclass(frozen=True)
class JobReport:
    """`status` is succeeded, nothing_to_do, failed, refused, unfinished, paused, put_off, or index_away.

    `partitions`: rows written by partition ("" for a table without). `source_committed_from/upto`: the oldest and newest watermark handed over.
    `schema`: {"columns": {name: type}, "added": [...], "widened": [...], "conflicts": [[name, stored, incoming]]}. `phases`: seconds by name. `core_s`: core-seconds, see CoreMeter; None: unknown.
    `unusable_cursors`: {"column": name, "rows": how many rows have a cursor such as NaN, "sample": some of its values}; empty where nothing was read.
    `output`: what a job that only reads has found out. `timed_out`: it has failed because its time was up. `has_more`: the source has more to read now.
    `index_use`: None where its keys are in no Global Index, or none was asked for. Of several commits the sums are of all, and
    `instant`, `checkpoint` and `schema` are the last one's.
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
    core_s: float | None = None
    error: str | None = None
    timed_out: bool = False
    has_more: bool = False
    index_use: IndexUse | None = None
    report_version: int = REPORT_VERSION

    @property
    def is_accounted(self) -> bool:
        """The sum holds, and no more keys were written than events applied."""
        return self.counts.is_balanced and self.written.total <= self.counts.applied

    def followed_by(self, later: JobReport) -> JobReport:
        """Of a run that has made one more commit, or found nothing more."""
        last = later if later.status == SUCCEEDED else self
        return replace(
            last,
            run_id=self.run_id,
            counts=self.counts + later.counts,
            written=self.written + later.written,
            checkpoint=later.checkpoint,
            partitions=dict(Counter(self.partitions) + Counter(later.partitions)),
            source_committed_from=min(_known(self.source_committed_from, later.source_committed_from), default=None),
            source_committed_upto=max(_known(self.source_committed_upto, later.source_committed_upto), default=None),
            unusable_cursors=later.unusable_cursors or self.unusable_cursors,
            has_more=later.has_more,
        )

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
