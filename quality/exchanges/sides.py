"""One side of an exchange: the keys of a part of a table, where they lie. Only filters, samples and misses leave it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol, TypeAlias

import numpy as np

from lakehub.kernel.registry import Registry
from quality.domain.bloom import Bloom, Shape, read
from quality.domain.bloom_keys import Hashes, chosen, hashes_of, order_of
from quality.engines.scan import CannotRead, Limits, Part, Target

MOST_NAMED = 100
"""So many missing records are named."""


class Vanished(CannotRead):
    """A writer's cleaning took a file away between listing and reading it: look again."""


@dataclass(frozen=True)
class Probed:
    """Of `keys` that were looked for, `matching` were found; `missing` are the first others, each once."""

    keys: int
    matching: int
    missing: tuple[bytes, ...] = ()


class Side(Protocol):
    """Keys are the bytes of `quality.domain.bloom_keys`; filters are in their portable form. All raise CannotRead."""

    columns: Sequence[str]

    def count(self) -> int:
        """How many rows there are."""

    def build(self, shape: Shape, share: float) -> str:
        """The filter of a sample of the keys, chosen by their hash."""

    def probe(self, filter_text: str, share: float) -> Probed:
        """Which keys of the same sample the filter of the other side has."""

    def build_and_probe(self, shape: Shape, filter_text: str, share: float) -> tuple[str, Probed]:
        """Both, in as few scans as it takes."""

    def sample(self, size: int, salt: str) -> list[bytes]:
        """At most `size` different keys: the first in an order that only the keys and `salt` decide."""

    def among(self, keys: Collection[bytes]) -> set[bytes]:
        """Those of `keys` that are here."""


SIDES: Registry[Callable[[Target, Part, Sequence[str], Limits], Side]] = Registry(
    "side",
    {
        "duckdb": "quality.exchanges.duckdb:side",
        "spark": "quality.exchanges.spark:side",
        "sqlalchemy": "quality.exchanges.sqlalchemy:side",
    },
)


def side_of(engine: str, target: Target, part: Part, columns: Sequence[str], limits: Limits) -> Side:
    """Raises CannotRead."""
    return SIDES.get(engine)(target, part, columns, limits)


class Left:
    """The limits of one side, with what is left of its time since it was made: all its scans share that."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._ends_at = time.monotonic() + limits.timeout.total_seconds()

    def limits(self) -> Limits:
        """For the next scan. Raises CannotRead where no time is left."""
        seconds = self._ends_at - time.monotonic()
        if seconds <= 0:
            raise CannotRead("the exchange took longer than its timeout")
        # Not less than a millisecond: to some databases none means that there is no limit.
        return replace(self._limits, timeout=timedelta(seconds=max(seconds, 0.001)))


Keys: TypeAlias = Sequence[bytes]


class Streamed:
    """A side whose keys are handed over in batches, gone through by numpy with no JVM: memory is a batch and a filter."""

    def __init__(self, columns: Sequence[str], count: Callable[[], int], batches: Callable[[], Iterator[Keys]]) -> None:
        self.columns = columns
        self.count = count
        self._batches = batches

    def build(self, shape: Shape, share: float) -> str:
        built = Bloom(shape)
        for _, hashes in self._sampled(share):
            built.add(hashes)
        return built.text()

    def probe(self, filter_text: str, share: float) -> Probed:
        probing = _Probing(filter_text)
        for keys, hashes in self._sampled(share):
            probing.take(keys, hashes)
        return probing.result()

    def build_and_probe(self, shape: Shape, filter_text: str, share: float) -> tuple[str, Probed]:
        built, probing = Bloom(shape), _Probing(filter_text)
        for keys, hashes in self._sampled(share):
            built.add(hashes)
            probing.take(keys, hashes)
        return built.text(), probing.result()

    def sample(self, size: int, salt: str) -> list[bytes]:
        first: dict[bytes, int] = {}
        for keys in self._batches():
            order = order_of(hashes_of(keys), salt)
            least = np.argpartition(order, size)[:size] if len(order) > size else np.arange(len(order))
            first |= {keys[place]: int(order[place]) for place in least}
            first = dict(sorted(first.items(), key=lambda one: (one[1], one[0]))[:size])
        return list(first)

    def among(self, keys: Collection[bytes]) -> set[bytes]:
        wanted, found = frozenset(keys), set[bytes]()
        for batch in self._batches():
            found |= wanted.intersection(batch)
        return found

    def _sampled(self, share: float) -> Iterator[tuple[Keys, Hashes]]:
        for keys in self._batches():
            hashes = hashes_of(keys)
            if share < 1:
                places = np.flatnonzero(chosen(hashes, share)).tolist()
                keys, hashes = [keys[place] for place in places], hashes[places]
            yield keys, hashes


class _Probing:
    """Batches of keys held against a filter."""

    def __init__(self, filter_text: str) -> None:
        self._filter = read(filter_text)
        self._keys = self._matching = 0
        self._missing: dict[bytes, None] = {}

    def take(self, keys: Keys, hashes: Hashes) -> None:
        there = self._filter.has_hashes(hashes) if isinstance(self._filter, Bloom) else self._filter.has(keys)
        self._keys += len(keys)
        self._matching += int(there.sum())
        for place in np.flatnonzero(~there).tolist():
            if len(self._missing) >= MOST_NAMED:
                break
            self._missing[keys[place]] = None

    def result(self) -> Probed:
        return Probed(self._keys, self._matching, tuple(self._missing))
