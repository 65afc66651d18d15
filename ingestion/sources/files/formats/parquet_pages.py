"""How many values the pages of a Parquet column hold, read from the file itself.

pyarrow is not asked: of a column whose statistics are damaged, it ends the process when it is asked for its numbers. And what the
footer says may be wrong: what is read at once is what the header of each page says.

The structures are Parquet's, written in Thrift's compact protocol: https://github.com/apache/parquet-format, `parquet.thrift`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

ROW_GROUPS = 4
"""Of the footer. Each has `COLUMNS`, and each of these `COLUMN_METADATA`."""
COLUMNS = 1
COLUMN_METADATA = 3
NUM_VALUES, COMPRESSED_SIZE, DATA_OFFSET, DICTIONARY_OFFSET = 5, 7, 9, 11
PAGE_SIZE = 3
"""Of the header of a page, which has one of `DATA_HEADERS` if it holds values."""
DATA_HEADERS = (5, 8)
PAGE_VALUES = 1
HEADER_BYTES = 512
MAX_HEADER_BYTES = 16 * 2**20
MAX_DEPTH = 32


def row_group_values(file: Any, footer_bytes: int, places: list[int]) -> Iterator[list[int]]:
    """Of each row group: the values in the columns at these places. ValueError where the file is damaged."""
    footer, _ = _struct_at(file, file.size() - 8 - footer_bytes, footer_bytes)
    try:
        for group in footer[ROW_GROUPS]:
            columns = [group[COLUMNS][place][COLUMN_METADATA] for place in places]
            yield [_values(file, column) for column in columns]
    except (IndexError, KeyError, TypeError):
        raise ValueError("its footer is damaged") from None


def _values(file: Any, column: dict[int, Any]) -> int:
    """A reader ends with the page that has the last value, or with the bytes of the column."""
    start, dictionary = column[DATA_OFFSET], column.get(DICTIONARY_OFFSET, 0)
    if 0 < dictionary < start:
        start = dictionary
    end = min(start + column[COMPRESSED_SIZE], file.size())
    values, claimed = 0, int(column[NUM_VALUES])
    while values < claimed and start < end:
        header, size = _struct_at(file, start, HEADER_BYTES)
        values += next((header[kind][PAGE_VALUES] for kind in DATA_HEADERS if kind in header), 0)
        if header[PAGE_SIZE] < 0:
            raise ValueError("a page of it has a size below 0")
        start += size + header[PAGE_SIZE]
    return max(values, claimed)


def _struct_at(file: Any, start: int, size: int) -> tuple[dict[int, Any], int]:
    """The structure and how many bytes it takes; `size` is a first guess."""
    while True:
        reader = _CompactReader(file.read_at(size, start))
        try:
            return reader.struct(), reader.place
        except IndexError:
            if size >= MAX_HEADER_BYTES or start + size >= file.size():
                raise ValueError("the header of a page or the footer is damaged") from None
            size *= 8


class _CompactReader:
    """Thrift's compact protocol. IndexError where the bytes end too early."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.place = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Number of the field -> its value."""
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested deeper than {MAX_DEPTH}")
        fields, number = {}, 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._signed()
            kind = head & 15
            # A boolean field has no bytes: its kind is its value.
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind, depth + 1)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        match kind:
            case 1 | 2 | 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._signed()
            case 7:
                return self._take(8)
            case 8:
                return self._take(self._unsigned())
            case 9 | 10:
                return self._list(depth)
            case 12:
                return self.struct(depth)
        raise ValueError(f"it has a field of the unknown kind {kind}")

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        size = self._unsigned() if head >> 4 == 15 else head >> 4
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested deeper than {MAX_DEPTH}")
        return [self._value(head & 15, depth + 1) for _ in range(size)]

    def _byte(self) -> int:
        self.place += 1
        return self._content[self.place - 1]

    def _take(self, size: int) -> bytes:
        self.place += size
        if self.place > len(self._content):
            raise IndexError
        return self._content[self.place - size : self.place]

    def _unsigned(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("it has a number of more than 64 bits")

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
