"""Which category explains which other one of the same dataset: pairs (by, suppressed) without a cycle."""

from __future__ import annotations

from collections.abc import Iterable

FRESHNESS = "freshness"
CATEGORIES = ("freshness", "completeness", "duplicates", "consistency", "ingestion", "others")

Pair = tuple[str, str]
"""(by, suppressed)"""

DEFAULT: frozenset[Pair] = frozenset((FRESHNESS, other) for other in CATEGORIES if other != FRESHNESS)
"""Late data explains everything else."""


def in_force(edits: Iterable[tuple[str, str, bool]]) -> frozenset[Pair]:
    """The default with what a dataset changed of it: (by, suppressed, whether it counts)."""
    changed = {(by, suppressed): counts for by, suppressed, counts in edits}
    added = {pair for pair, counts in changed.items() if counts}
    return (DEFAULT | added) - {pair for pair, counts in changed.items() if not counts}


def suppressors_of(category: str, pairs: Iterable[Pair]) -> frozenset[str]:
    """The categories that hold its messages. A chain holds as each link does: not what the suppressor's suppressor explains."""
    return frozenset(by for by, suppressed in pairs if suppressed == category)


def cycle_in(pairs: Iterable[Pair]) -> tuple[str, ...]:
    """A shortest way from a category back to itself, such as (freshness, ingestion, freshness); empty where there is none."""
    edges = frozenset(pairs)
    ways = (_way_back(start, edges) for start in sorted({by for by, _ in edges}))
    return min((way for way in ways if way), key=len, default=())


def _way_back(start: str, edges: frozenset[Pair]) -> tuple[str, ...]:
    ways: list[tuple[str, ...]] = [(start,)]
    seen = set[str]()
    while ways:
        way = ways.pop(0)
        for by, suppressed in sorted(edges):
            if by != way[-1] or suppressed in seen:
                continue
            if suppressed == start:
                return (*way, start)
            seen.add(suppressed)
            ways.append((*way, suppressed))
    return ()
