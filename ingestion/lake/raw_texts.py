"""The raw texts of some rows of Parquet files, in little memory whatever their length: a few rows at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded where a file is read: every process has this module, and few read files
    import pyarrow as pa
    import pyarrow.parquet as pq

_BATCH_ROWS, _BATCH_BYTES = 64, 32 * 1024 * 1024
"""Read at a time: so many rows, or fewer where rows of a group are long by its metadata."""


@dataclass(frozen=True)
class RowPlace:
    """A row of a file, counted from 0."""

    file: str
    number: int


@dataclass(frozen=True)
class RawText:
    """`text` is the beginning; `length` counts the characters of all of it."""

    text: str = ""
    length: int = 0


def read_raw_texts(places: Collection[RowPlace], max_length: int, column: str = "raw") -> dict[RowPlace, RawText]:
    numbers: dict[str, list[int]] = defaultdict(list)
    for place in places:
        numbers[place.file].append(place.number)
    return {
        RowPlace(file, number): text
        for file, wanted in numbers.items()
        for number, text in _texts_of_file(file, sorted(wanted), max_length, column)
    }


def _texts_of_file(file: str, wanted: Sequence[int], max_length: int, column: str) -> Iterator[tuple[int, RawText]]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(file, pre_buffer=False) as parquet:
        start = 0
        for group in range(parquet.num_row_groups):
            end = start + parquet.metadata.row_group(group).num_rows
            here = [number - start for number in wanted if start <= number < end]
            for number, text in _texts_of_group(parquet, group, here, max_length, column):
                yield start + number, text
            start = end


def _texts_of_group(
    parquet: pq.ParquetFile, group: int, wanted: Sequence[int], max_length: int, column: str
) -> Iterator[tuple[int, RawText]]:
    """The group is read up to the last row that is wanted."""
    if not wanted:
        return
    start = 0
    for batch in parquet.iter_batches(
        _rows_at_a_time(parquet, group, column), row_groups=[group], columns=[column], use_threads=False
    ):
        end = start + batch.num_rows
        for number in wanted:
            if start <= number < end:
                yield number, _raw_text(batch.column(0)[number - start], max_length)
        if end > wanted[-1]:
            return
        start = end


def _rows_at_a_time(parquet: pq.ParquetFile, group: int, column: str) -> int:
    metadata = parquet.metadata.row_group(group)
    row_bytes: int = (
        metadata.column(parquet.schema_arrow.names.index(column)).total_uncompressed_size // metadata.num_rows
    )
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES // max(1, row_bytes)))


def _raw_text(value: pa.Scalar, max_length: int) -> RawText:
    import pyarrow as pa

    if not value.is_valid:
        return RawText()
    text = value.cast(pa.binary()).as_py().decode(errors="replace")
    return RawText(text[:max_length], len(text))
