"""Keys that arrive in batches, gone through by numpy: memory is one batch and one filter."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TypeAlias

import numpy as np

from quality.domain.bloom.filters import FilterShape, SparkBloomFilter, decode_filter
from quality.domain.bloom.keys import Hashes, hash_keys, in_sample, sample_order
from quality.engines.scans.endpoint import MAX_NAMED_KEYS, ProbeCounts
from quality.engines.scans.parts import CannotRead
from quality.engines.scans.scan import Limits


class RemainingTime:
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


KeyBatch: TypeAlias = Sequence[bytes]


class StreamedEndpoint:
    """A side whose keys are handed over in batches, gone through by numpy with no JVM: memory is a batch and a filter."""

    def __init__(
        self, columns: Sequence[str], count: Callable[[], int], batches: Callable[[], Iterator[KeyBatch]]
    ) -> None:
        self.columns = columns
        self.count = count
        self._batches = batches

    def build(self, shape: FilterShape, share: float) -> str:
        built = SparkBloomFilter(shape)
        for _, hashes in self._sampled_batches(share):
            built.add(hashes)
        return built.encode()

    def probe(self, filter_text: str, share: float) -> ProbeCounts:
        probing = _FilterProbe(filter_text)
        for keys, hashes in self._sampled_batches(share):
            probing.add(keys, hashes)
        return probing.result()

    def build_and_probe(self, shape: FilterShape, filter_text: str, share: float) -> tuple[str, ProbeCounts]:
        built, probing = SparkBloomFilter(shape), _FilterProbe(filter_text)
        for keys, hashes in self._sampled_batches(share):
            built.add(hashes)
            probing.add(keys, hashes)
        return built.encode(), probing.result()

    def sample(self, size: int, salt: str) -> list[bytes]:
        first: dict[bytes, int] = {}
        for keys in self._batches():
            order = sample_order(hash_keys(keys), salt)
            least = np.argpartition(order, size)[:size] if len(order) > size else np.arange(len(order))
            first |= {keys[place]: int(order[place]) for place in least}
            first = dict(sorted(first.items(), key=lambda key_and_order: (key_and_order[1], key_and_order[0]))[:size])
        return list(first)

    def present_keys(self, keys: Collection[bytes]) -> set[bytes]:
        wanted_keys, present = frozenset(keys), set[bytes]()
        for batch in self._batches():
            present |= wanted_keys.intersection(batch)
        return present

    def _sampled_batches(self, share: float) -> Iterator[tuple[KeyBatch, Hashes]]:
        for keys in self._batches():
            hashes = hash_keys(keys)
            if share < 1:
                places = np.flatnonzero(in_sample(hashes, share)).tolist()
                keys, hashes = [keys[place] for place in places], hashes[places]
            yield keys, hashes


class _FilterProbe:
    """Batches of keys held against a filter."""

    def __init__(self, filter_text: str) -> None:
        self._filter = decode_filter(filter_text)
        self._keys = self._matching = 0
        self._missing: dict[bytes, None] = {}

    def add(self, keys: KeyBatch, hashes: Hashes) -> None:
        there = (
            self._filter.might_contain_hashes(hashes)
            if isinstance(self._filter, SparkBloomFilter)
            else self._filter.might_contain(keys)
        )
        self._keys += len(keys)
        self._matching += int(there.sum())
        for place in np.flatnonzero(~there).tolist():
            if len(self._missing) >= MAX_NAMED_KEYS:
                break
            self._missing[keys[place]] = None

    def result(self) -> ProbeCounts:
        return ProbeCounts(self._keys, self._matching, tuple(self._missing))
