"""Records of a text file, of bounded length, and chunks of them that are bounded by rows, cells and bytes.

What is too long for a record, or is none, becomes an UnreadableRow: it stands in the error table, and all after it is read.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ingestion.sources import UnreadableRow

MAX_RECORD_BYTES = 4 * 2**20
MAX_COLUMNS = 5_000
MAX_CHUNK_CELLS = 4_000_000
MAX_CHUNK_BYTES = 64 * 2**20
_MAX_SHOWN = 10_000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Record:
    """A row that can be read, as its format has it, and how much memory it stands for."""

    values: Any
    cells: int
    bytes: int


def read_line(file: io.BufferedReader) -> tuple[bytes, bool]:
    """The next line (empty at the end), and whether it is whole; of a longer one the beginning, and the rest is passed over."""
    line = file.readline(MAX_RECORD_BYTES + 1)
    if len(line) <= MAX_RECORD_BYTES or line.endswith(b"\n"):
        return line, True
    while (more := file.readline(MAX_RECORD_BYTES)) and not more.endswith(b"\n"):
        pass
    return line, False


def buffered(file: Any) -> io.BufferedReader:
    """What the file has behind a byte order mark, if there is one."""
    reader = io.BufferedReader(file)
    if reader.peek(3)[:3] == _BYTE_ORDER_MARK:
        reader.read(3)
    return reader


def refuse_repeated_names(names: Iterable[str]) -> None:
    """Of two columns of one name the values of one would be lost. Columns without a name are passed over."""
    repeated = [name for name, times in Counter(names).items() if name and times > 1]
    if repeated:
        raise ValueError(f"it has more than one column with the name `{repeated[0]}`: rename all but one of them")


def text_of(line: bytes) -> str:
    """A byte that is not UTF-8 is a surrogate, which fits no column: its row goes to the error table by that column's name."""
    return line.decode("utf-8", "surrogateescape")


def unreadable(line: str, reason: str) -> UnreadableRow:
    """The beginning of the line, with what is not UTF-8 written as `\\xe9`."""
    shown = line[:_MAX_SHOWN].rstrip("\r\n").encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return UnreadableRow(f"{shown}…" if len(line) > _MAX_SHOWN else shown, reason)


def chunked(records: Iterable[Record | UnreadableRow], rows: int) -> Iterator[list[Any]]:
    """At most so many rows (broken ones count), or fewer where these are wide or long."""
    piece: list[Any] = []
    cells = size = 0
    for record in records:
        more_cells, more_bytes = (record.cells, record.bytes) if isinstance(record, Record) else (0, len(record.raw))
        if piece and (
            len(piece) == rows or cells + more_cells > MAX_CHUNK_CELLS or size + more_bytes > MAX_CHUNK_BYTES
        ):
            yield piece
            piece, cells, size = [], 0, 0
        piece.append(record)
        cells, size = cells + more_cells, size + more_bytes
    if piece:
        yield piece
