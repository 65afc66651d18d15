"""Keys that arrive in batches, gone through by numpy: memory is one batch and one filter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeAlias

import numpy as np

from quality.domain.bloom.filters import FilterShape, SparkBloomFilter, decode_filter
from quality.domain.bloom.keys import Hashes, hash_keys, in_sample, sample_order
from quality.engines.scans.endpoint import MAX_NAMED_KEYS, ProbeCounts

_MAX_KEPT_HASHES = 16_000_000
"""128 MB."""


KeyBatch: TypeAlias = Sequence[bytes]


class StreamedEndpoint:
    """A side whose keys are handed over in batches, gone through by numpy with no JVM: memory is a batch and a filter."""

    def __init__(
        self,
        columns: Sequence[str],
        count: Callable[[], int],
        batches: Callable[[], Iterator[KeyBatch]],
        *,
        threads: int = 1,
    ) -> None:
        self.columns = columns
        self.count = count
        self._batches = batches
        self._threads = threads
        self._kept: tuple[float, list[Hashes]] | None = None
        """The hashes of the keys that a filter was built of, with the share: to probe another with them takes no scan."""

    def build(self, shape: FilterShape, share: float) -> str:
        built, kept = SparkBloomFilter(shape), list[Hashes]()

        def add(keys: KeyBatch, hashes: Hashes) -> None:
            built.add(hashes)
            if built.items <= _MAX_KEPT_HASHES:
                kept.append(hashes)

        _work_beside(self._sampled_batches(share), add)
        self._kept = (share, kept) if built.items <= _MAX_KEPT_HASHES else None
        return built.encode()

    def probe(self, filter_text: str, share: float) -> ProbeCounts:
        """By the hashes that were kept; where one is missing, by a scan that names it."""
        if self._kept is not None and self._kept[0] == share:
            known = _FilterProbe(filter_text).counts(self._kept[1], self._threads)
            if known is not None:
                return known
        probing = _FilterProbe(filter_text)
        _work_beside(self._sampled_batches(share), probing.add)
        return probing.result()

    def build_and_probe(self, shape: FilterShape, filter_text: str, share: float) -> tuple[str, ProbeCounts]:
        built, probing = SparkBloomFilter(shape), _FilterProbe(filter_text)

        def work(keys: KeyBatch, hashes: Hashes) -> None:
            built.add(hashes)
            probing.add(keys, hashes)

        _work_beside(self._sampled_batches(share), work)
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


def _work_beside(batches: Iterator[tuple[KeyBatch, Hashes]], work: Callable[[KeyBatch, Hashes], None]) -> None:
    """A batch is worked on by a thread while the next one is read: numpy lets Python go meanwhile."""
    with ThreadPoolExecutor(1) as thread:
        earlier: Future[None] | None = None
        for keys, hashes in batches:
            if earlier is not None:
                earlier.result()
            earlier = thread.submit(work, keys, hashes)
        if earlier is not None:
            earlier.result()


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

    def counts(self, batches: Sequence[Hashes], threads: int) -> ProbeCounts | None:
        """Of hashes alone; None where one is not in the filter, or the filter does not go by hashes."""
        probed = self._filter
        if not isinstance(probed, SparkBloomFilter):
            return None
        with ThreadPoolExecutor(threads) as side_by_side:
            if not all(side_by_side.map(lambda hashes: bool(probed.might_contain_hashes(hashes).all()), batches)):
                return None
        keys = sum(map(len, batches))
        return ProbeCounts(keys, keys)

    def result(self) -> ProbeCounts:
        return ProbeCounts(self._keys, self._matching, tuple(self._missing))
