"""Which keys may occur more than once, in bounded memory: a Bloom filter of the keys seen so far.

A key that the filter has was seen before, or looks like one that was: it is a candidate, and whoever asks counts the candidates
exactly. The filter never denies a key that it has seen, so that no repetition is missed.
"""

from __future__ import annotations

import numpy as np

from quality.domain.bloom.filters import MAX_BITS, FilterShape, SparkBloomFilter
from quality.domain.bloom.keys import Hashes

FALSE_POSITIVE_RATE = 0.001
MAX_KEYS_AT_ONCE = MAX_BITS // 15
"""So many keys a filter holds at that rate; of more rows the keys are looked at in slices, one after the other."""
MAX_CANDIDATES = 2_000_000
"""16 MB of hashes. Of more keys that repeat not all are counted, and that is said."""


def slices_for(rows: int) -> int:
    """In how many slices the keys of a table with so many rows are looked at."""
    return max(1, -(-rows // MAX_KEYS_AT_ONCE))


def in_slice(hashes: Hashes, number: int, of: int) -> Hashes:
    """Those of the hashes that belong to a slice: by bits that the filter does not go by alone."""
    return hashes if of == 1 else hashes[(hashes >> np.uint64(17)) % np.uint64(of) == np.uint64(number)]


class RepeatFinder:
    """Takes the hashes of keys in batches; a key is as often among them as it occurs."""

    def __init__(self, rows: int) -> None:
        self._filter = SparkBloomFilter(FilterShape.for_keys(min(max(rows, 1), MAX_KEYS_AT_ONCE), FALSE_POSITIVE_RATE))
        self._candidates = np.empty(0, np.uint64)
        self.again = 0
        """Rows whose key was seen before, with the false positives among them."""
        self.is_cut = False
        """There are more candidates than are kept."""

    def add(self, hashes: Hashes) -> None:
        keys, counts = np.unique(hashes, return_counts=True)
        seen = self._filter.might_contain_hashes(keys)
        self._filter.add(keys[~seen])
        self.again += int(len(hashes) - len(keys) + seen.sum())
        self._keep(keys[seen | (counts > 1)])

    def _keep(self, keys: Hashes) -> None:
        known = np.union1d(self._candidates, keys) if len(keys) else self._candidates
        self.is_cut |= len(known) > MAX_CANDIDATES
        if not self.is_cut:
            self._candidates = known

    @property
    def candidates(self) -> Hashes:
        """The hashes of the keys that may repeat, sorted."""
        return self._candidates
