"""Row keys as HBase takes them: of 1 to 32,767 bytes, each once, in the order of their bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestion.index.hfile.columns import byte_lengths

MAX_KEY_BYTES = 2**15 - 1
_SHOWN_BYTES = 60


def check_rows(rows: pa.Array, last: bytes) -> None:
    """`rows`: at least one key. `last`: the key before them, empty where there is none. Raises ValueError with the key that cannot be taken, or the two out of order."""
    lengths = byte_lengths(rows)
    misfits = np.flatnonzero((lengths < 1) | (lengths > MAX_KEY_BYTES))
    if len(misfits):
        place = int(misfits[0])
        raise ValueError(
            f"The key of row {place} of the batch, {shown(rows[place].as_py())}, has {lengths[place]:,} bytes; HBase takes 1 to {MAX_KEY_BYTES:,}."
        )
    _check_pair(last, rows[0].as_py())
    ascending = pc.less(rows[:-1], rows[1:])
    if not pc.all(ascending, min_count=0).as_py():
        place = pc.index(ascending, False).as_py()
        _check_pair(rows[place].as_py(), rows[place + 1].as_py())


def _check_pair(before: bytes, key: bytes) -> None:
    if before == key:
        raise ValueError(f"The key {shown(key)} comes twice; a file has each once.")
    if before > key:
        raise ValueError(
            f"The key {shown(key)} comes after {shown(before)}; keys must ascend in the order of their bytes: sort the rows."
        )


def shown(key: bytes) -> str:
    return repr(key) if len(key) <= _SHOWN_BYTES else f"{key[:_SHOWN_BYTES]!r}... ({len(key):,} bytes)"
