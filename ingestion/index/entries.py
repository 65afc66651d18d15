"""What the Global Index says of a record key, and how that lies in HBase: a row for each key, a column for each part of its place."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from zlib import crc32

logger = logging.getLogger(__name__)
FAMILY = b"e"
FILE_ID, PARTITION, INSTANT = b"f", b"p", b"t"
QUALIFIERS = (FILE_ID, PARTITION, INSTANT)
"""In the order of their bytes, as HFiles want them."""
MAX_ROW_BYTES = 1024
"""Of a key that is a row as it is. HBase has rows of up to 32,767 bytes, and compares them byte by byte."""
_HASHED = b"\xfe"
STATE_ROW = b"\xff"
"""Of what the index has followed. Neither byte is in UTF-8, so no key begins with one."""
STATE_FAMILY = b"s"
FAMILIES = (FAMILY, STATE_FAMILY)
COLUMNS = {qualifier: FAMILY + b":" + qualifier for qualifier in QUALIFIERS}
MARK = STATE_FAMILY + b":mark"
"""Of the state's row, in each batch that is asked for: an answer without it is not whole."""
_BETWEEN = "\0"
"""Between the partition and a key that is hashed in its row. No path has it."""


class Entry(NamedTuple):
    """Where the row of a key lies. `instant`: of the commit that put it there."""

    partition: str
    file_id: str
    instant: str


def row_of(key: str) -> bytes:
    """A key as the table format writes it; one that is too long for a row goes by its SHA-256. Raises EmptyKey."""
    row = key.encode()
    if not row:
        raise EmptyKey(
            "A record key is an empty text: HBase has no row for it. Leave such rows out, or choose another index."
        )
    return row if len(row) <= MAX_ROW_BYTES else _HASHED + hashlib.sha256(row).digest()


def spread(keys: Iterable[str]) -> list[str]:
    """Each once, in an order in which any few in a row lie all over the table. In the order of a source, which often is that of its keys, all requests would
    go to one region at a time, and its server would be asked for what all together can answer."""
    return sorted(set(keys), key=lambda key: crc32(key.encode()))


def cells_of(key: str, entry: Entry) -> dict[bytes, bytes]:
    """By qualifier. Of a key that is hashed in its row the partition's column has the key as well."""
    is_hashed = row_of(key)[:1] == _HASHED
    partition = f"{entry.partition}{_BETWEEN}{key}" if is_hashed else entry.partition
    return {FILE_ID: entry.file_id.encode(), PARTITION: partition.encode(), INSTANT: entry.instant.encode()}


def entry_of(row: bytes, cells: Mapping[bytes, bytes]) -> tuple[str, Entry]:
    """A key with its place. Raises DamagedEntry."""
    try:
        partition, _, hashed_key = cells[PARTITION].decode().partition(_BETWEEN)
        key = hashed_key or row.decode()
        entry = Entry(_checked_path(partition), cells[FILE_ID].decode(), cells[INSTANT].decode())
    except (KeyError, ValueError) as problem:
        logger.warning("The row %r of the index is no entry: %r", row[:MAX_ROW_BYTES], problem)
        raise DamagedEntry(row) from problem
    return key, entry


def _checked_path(partition: str) -> str:
    """It is read below the table's folder. Raises ValueError."""
    if partition.startswith("/") or not {".", ".."}.isdisjoint(partition.split("/")):
        raise ValueError(f"{partition!r} is no path of a partition")
    return partition


class EmptyKey(ValueError):
    """HBase has no row without a name."""


class DamagedEntry(ValueError):
    """A row of the index is none of ours. Its name, which may be a record key, is in the log."""

    def __init__(self, row: bytes) -> None:
        super().__init__(
            f"The row of the index whose SHA-256 begins with {hashlib.sha256(row).hexdigest()[:16]} is no entry; the log has its name. "
            "Somebody else writes this table of HBase: stop that, then rebuild the index."
        )
