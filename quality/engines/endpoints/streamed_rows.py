"""Rows that arrive in batches, hashed by Python: memory is one batch and the sums of the cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from hashlib import md5
from typing import Any, TypeAlias

import numpy as np

from quality.domain.bloom.keys import UnsupportedKeyType, decode_key, encode_key
from quality.domain.difference.agreement import Agreement
from quality.domain.difference.kept_sums import KeptSums, WithinCells
from quality.domain.difference.reconcile import WantedRows
from quality.domain.difference.records import Row, Texts
from quality.domain.difference.sums import KEY_SHIFT, CellSums, Hashes
from quality.engines.scans.parts import CannotRead
from quality.engines.scans.row_endpoint import MAX_ROWS_OF_KEY, MAX_TEXT

ValueBatch: TypeAlias = Sequence[Sequence[Any]]
"""Rows with their values in the order of the agreement."""
_HashedBatch: TypeAlias = tuple[Hashes, Sequence[bytes]]


class StreamedRows(KeptSums):
    def __init__(self, batches: Callable[[], Iterator[ValueBatch]], agreement: Agreement, depth: int) -> None:
        super().__init__(self._scan_sums, depth)
        self._batches = batches
        self._names = agreement.names
        self._key_width = len(agreement.key)

    def _scan_sums(self, depth: int, within: WithinCells | None) -> CellSums:
        sums = CellSums.none(depth)
        for keys, texts in self._hashed():
            rows = np.fromiter(map(_hash, texts), np.uint64, len(texts))
            if within is not None:
                chosen = np.isin(keys >> np.uint64(64 - within.depth), within.prefixes)
                keys, rows = keys[chosen], rows[chosen]
            sums = sums.plus(CellSums.of_rows(keys, rows, depth))
        return sums

    def rows(self, wanted: WantedRows) -> Sequence[Row]:
        counts: Counter[tuple[int, int, Texts]] = Counter()
        of_key: Counter[int] = Counter()
        for keys, texts in self._hashed():
            chosen = np.isin(keys >> np.uint64(KEY_SHIFT), wanted.key_bits)
            if len(wanted.prefixes):
                chosen |= np.isin(keys >> np.uint64(64 - wanted.depth), wanted.prefixes)
            for place in np.flatnonzero(chosen).tolist():
                key = int(keys[place])
                row = (key, _hash(texts[place]), _shown(texts[place]))
                if row in counts or of_key[key] < MAX_ROWS_OF_KEY:
                    of_key[key] += row not in counts
                    counts[row] += 1
        return [Row(key, row, values, count) for (key, row, values), count in counts.items()]

    def _hashed(self) -> Iterator[_HashedBatch]:
        """The hashes of the keys of a batch, and the texts of its rows."""
        for batch in self._batches():
            try:
                texts = [encode_key(values, self._names) for values in batch]
                keys = (_hash(encode_key(values[: self._key_width], self._names)) for values in batch)
                yield np.fromiter(keys, np.uint64, len(batch)), texts
            except UnsupportedKeyType as unfit:
                raise CannotRead(str(unfit)) from unfit


def _hash(text: bytes) -> int:
    return int.from_bytes(md5(text, usedforsecurity=False).digest()[:8])


def _shown(text: bytes) -> Texts:
    return tuple(value if value is None else _shortened(value) for value in decode_key(text))


def _shortened(value: str) -> str:
    if len(value) <= MAX_TEXT:
        return value
    digest = md5(value.encode(), usedforsecurity=False).hexdigest()
    return f"{value[: MAX_TEXT // 2]}... ({len(value)} characters, md5 {digest})"
