"""What is done to a job: it dies at a step, is killed at any moment, or a part of HBase is killed before or within it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, cycle, islice, zip_longest
from random import Random

STEPS = {
    "incremental": ("ingestion.before_write", "ingestion.inside_commit", "ingestion.after_commit"),
    # The incremental before it has committed, and nobody has followed that yet.
    "delete": ("index.after_entries", "ingestion.inside_commit", "ingestion.after_commit"),
    "backfill": ("ingestion.inside_commit", "ingestion.after_commit"),
    "cluster": ("ingestion.before_write", "ingestion.inside_commit", "ingestion.after_commit"),
    "replace": ("ingestion.inside_commit", "ingestion.after_commit", "index.after_load"),
    "rebuild_index": ("index.after_reading", "index.before_load"),
}
"""By job, the steps at which it dies."""
MOMENTS = ("incremental", "delete", "cluster", "incremental")
PARTS = ("region-server 1", "region-server 2", "thrift")


@dataclass(frozen=True)
class Fault:
    """One of `step`, `part` and neither: a SIGKILL at any moment. `is_before`: the part of HBase is killed before the job begins."""

    job: str
    step: str = ""
    part: str = ""
    is_before: bool = False
    again: int = 0

    def __str__(self) -> str:
        if self.step:
            return f"{self.job} dies at {self.step}"
        if self.part:
            return f"kill -9 {self.part} {'before' if self.is_before else 'within'} {self.job}"
        return f"kill -9 {self.job}" + (f", time {self.again + 1}" if self.again else "")


def all_faults() -> tuple[list[Fault], ...]:
    """By what they cost: the parts of HBase most."""
    steps = [Fault(job, step) for job, steps in STEPS.items() for step in steps]
    moments = [Fault(job, again=MOMENTS[:place].count(job)) for place, job in enumerate(MOMENTS)]
    parts = [Fault("incremental", part=part, is_before=is_before) for part in PARTS for is_before in (True, False)]
    return parts, steps, moments


def deck(random: Random, pattern: str, batches: int) -> Iterable[Fault]:
    """One for each batch: all in another order each time, and those that cost most spread among the others."""
    chosen = [[each for each in group if re.search(pattern, str(each))] for group in all_faults()]
    if not any(chosen):
        raise SystemExit(f"No fault matches {pattern!r}. There are: {'; '.join(map(str, chain(*all_faults())))}")
    return islice(_dealt(random, chosen), batches)


def _dealt(random: Random, groups: list[list[Fault]]) -> Iterator[Fault]:
    for _ in cycle([None]):
        shuffled = [random.sample(group, len(group)) for group in groups]
        yield from (each for row in zip_longest(*shuffled) for each in row if each is not None)
