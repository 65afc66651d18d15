"""CSV: a header line, then rows; an empty field is null. Types are inferred from the first rows that can be read."""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

import pyarrow.csv as pa_csv

from ingestion.domain.schema import Schema
from ingestion.sources import Chunk, UnreadableRow
from ingestion.sources.files.formats.arrow_types import schema_of
from ingestion.sources.files.formats.records import (
    MAX_COLUMNS,
    MAX_RECORD_BYTES,
    Record,
    buffered,
    chunked,
    read_line,
    refuse_repeated_names,
    text_of,
    unreadable,
)

_MAX_INFERRED_ROWS = 5_000
_MAX_INFERRED_BYTES = 2**20
_MAX_TAKEN_BACK = 50
"""A quote that is never closed takes the lines behind it along. So often in a file they are read again, without that line; each time
costs a record of the largest size."""

# One setting for all of a process. What is longer than a record is noticed before this is.
csv.field_size_limit(2 * MAX_RECORD_BYTES + 1)


class CsvFormat:
    def schema(self, file: Any, _known_names: Collection[str] = (), /) -> Schema:
        lines = _Lines(file)
        sample = io.StringIO(newline="")
        writer = csv.writer(sample)
        writer.writerow(_header(lines))
        rows = (record.values for record in _records(lines) if isinstance(record, Record))
        for row in islice(rows, _MAX_INFERRED_ROWS):
            writer.writerow(row)
            if sample.tell() > _MAX_INFERRED_BYTES:
                break
        content = io.BytesIO(sample.getvalue().encode("utf-8", "replace"))
        options = pa_csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
        block = pa_csv.ReadOptions(block_size=len(content.getbuffer()) + 1)
        return schema_of(
            pa_csv.open_csv(
                content,
                read_options=block,
                convert_options=options,
                parse_options=pa_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=lambda row: "skip"),
            ).schema
        )

    def chunks(self, file: Any, rows: int) -> Iterator[Chunk]:
        lines = _Lines(file)
        names = _header(lines)
        for piece in chunked(_fitted(_records(lines), names), rows):
            whole = [record.values for record in piece if isinstance(record, Record)]
            columns = zip(*whole, strict=True) if whole else ((),) * len(names)
            broken = tuple(record for record in piece if isinstance(record, UnreadableRow))
            yield Chunk(
                {name: [value or None for value in values] for name, values in zip(names, columns, strict=True)}, broken
            )


class _TooLong(ValueError):
    """A record takes more than a record may."""


class _Lines:
    """The lines of a file, which remembers those of the record that is being read."""

    def __init__(self, file: Any) -> None:
        self._file = buffered(file)
        self._again: deque[str] = deque()
        self._taken_back = 0
        self.begin()

    def begin(self) -> None:
        """A record begins."""
        self.taken: list[str] = []
        self.size = 0
        self.is_unclosed = False
        """Whether the file ended before the record did."""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self.size > MAX_RECORD_BYTES:
            raise _TooLong
        line, whole = (self._again.popleft(), True) if self._again else self._read()
        if not line:
            self.is_unclosed = bool(self.taken)
            raise StopIteration
        self.taken.append(line)
        self.size += len(line)
        if not whole:
            raise _TooLong
        return line

    def _read(self) -> tuple[str, bool]:
        line, whole = read_line(self._file)
        return text_of(line), whole

    def take_back(self) -> None:
        """All lines but the record's first come again, as if that one were not there."""
        if self._taken_back < _MAX_TAKEN_BACK:
            self._taken_back += 1
            self._again.extendleft(reversed(self.taken[1:]))


def _header(lines: _Lines) -> list[str]:
    lines.begin()
    try:
        names = next(csv.reader(lines), [])
    except _TooLong:
        raise ValueError(f"its header has more than {MAX_RECORD_BYTES:,} bytes") from None
    except csv.Error as bad:
        raise ValueError(f"its header cannot be read: {bad}") from None
    if len(names) > MAX_COLUMNS:
        raise ValueError(f"its header has {len(names):,} columns; {MAX_COLUMNS:,} are the most")
    for name in names:
        name.encode()
    refuse_repeated_names(names)
    return names


def _records(lines: _Lines) -> Iterator[Record | UnreadableRow]:
    reader = csv.reader(lines)
    while True:
        lines.begin()
        try:
            fields = next(reader)
        except StopIteration:
            return
        except _TooLong:
            yield _without_its_line(lines, f"longer than {MAX_RECORD_BYTES:,} bytes")
            continue
        except csv.Error:  # the reader begins anew with the next line
            broken = unreadable(lines.taken[0], "a carriage return stands in a field without quotes")
            lines.take_back()
            yield broken
            continue
        if lines.is_unclosed:
            yield _without_its_line(lines, "the file ends")
        elif fields:
            yield Record(fields, len(fields), lines.size)


def _without_its_line(lines: _Lines, why: str) -> UnreadableRow:
    several = len(lines.taken) > 1 or lines.is_unclosed
    broken = unreadable(lines.taken[0], f"a quote is opened and not closed: {why}" if several else why)
    lines.take_back()
    return broken


def _fitted(records: Iterator[Record | UnreadableRow], names: list[str]) -> Iterator[Record | UnreadableRow]:
    for record in records:
        if isinstance(record, Record) and len(record.values) != len(names):
            reason = f"{len(record.values)} fields, but the header has {len(names)}"
            yield unreadable(",".join(record.values), reason)
        else:
            yield record
