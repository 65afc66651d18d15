"""What a round does to a pipeline, and the order in which rounds are dealt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from random import Random

PIPELINES = ("carrier-earnings", "carrier-months", "flights-wide", "maker-flights")
"""In the order of their lineage."""
_PARTITIONED = ("carrier-earnings", "flights-wide", "maker-flights")
_OF_FLIGHTS = ("carrier-earnings", "flights-wide")
_STEPS = ("ingestion.before_write", "ingestion.inside_commit", "ingestion.after_commit")


class Kind(StrEnum):
    DIES = "dies"
    KILLED = "killed"
    BACKFILL_OVERTAKEN = "backfill overtaken"
    OVERTAKEN = "overtaken by a backfill"
    BESIDE = "beside a backfill process"
    UNDONE = "change backfilled, then undone"
    UNDONE_WITHIN = "change backfilled and undone within a run"
    READ_EARLY = "change read early by a run, then undone"


@dataclass(frozen=True)
class Fault:
    """`step`: where it dies."""

    kind: Kind
    pipeline: str
    step: str = ""

    def __str__(self) -> str:
        return f"{self.pipeline} {self.kind}{f' at {self.step}' if self.step else ''}"

    @property
    def is_of_undone_change(self) -> bool:
        return self.kind in (Kind.UNDONE, Kind.UNDONE_WITHIN, Kind.READ_EARLY)

    @property
    def needs_changes(self) -> bool:
        """A run that has nothing to do neither dies at a step nor writes."""
        return self.kind in (Kind.DIES, Kind.BACKFILL_OVERTAKEN, Kind.OVERTAKEN, Kind.BESIDE)

    @property
    def changes_inputs(self) -> bool:
        return self.kind not in (Kind.DIES, Kind.KILLED)


def _each(pipelines: Sequence[str], *kinds: Kind) -> tuple[Fault, ...]:
    return tuple(Fault(kind, name) for kind in kinds for name in pipelines)


FAMILIES: Mapping[str, tuple[Fault, ...]] = {
    "kill -9": (
        *(Fault(Kind.DIES, name, step) for name in PIPELINES for step in _STEPS),
        *(Fault(Kind.KILLED, name) for name in PIPELINES),
    ),
    "backfill at once": _each(_PARTITIONED, Kind.BACKFILL_OVERTAKEN, Kind.OVERTAKEN),
    "backfill process": _each(_PARTITIONED, Kind.BESIDE),
    "undone change": _each(_OF_FLIGHTS, Kind.UNDONE, Kind.UNDONE_WITHIN, Kind.READ_EARLY),
}


def deal(random: Random, pattern: str = "") -> Iterator[Fault]:
    """Without end: all whose names match, in another order each time. A family's first fault comes before the second of any, so that a few rounds play each family.
    Raises SystemExit where none matches."""
    families = [[fault for fault in pile if re.search(pattern, str(fault))] for pile in FAMILIES.values()]
    families = [pile for pile in families if pile]
    if not families:
        raise SystemExit(f"No fault matches {pattern!r}. There are: {'; '.join(map(str, chain(*FAMILIES.values())))}")
    while True:
        piles = [random.sample(pile, len(pile)) for pile in families]
        first = [pile.pop() for pile in piles]
        rest = [*chain(*piles)]
        random.shuffle(first)
        random.shuffle(rest)
        yield from (*first, *rest)
