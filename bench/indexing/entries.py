"""The entries of which HFiles are made: by our own writer, by HBase's ImportTsv, and row by row through Thrift."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from ingestion.index.entries import FAMILY, QUALIFIERS, Entry
from ingestion.index.hfile.writer import HFileWriter, WrittenHFile

TIMESTAMP_MS = 1_767_225_600_000
COLUMNS = ("row", *(qualifier.decode() for qualifier in QUALIFIERS))
_BATCH = 10_000
"""Rows of a batch that Spark hands over."""
_KEY_LENGTH, _ROWS_A_FILE, _DAYS = 36, 20_000, 60
_INSTANT = "20260701000000000"


def entries(first: int, last: int) -> pa.Table:
    """Those of the numbers from `first` to before `last`, in the order of their rows."""
    numbers = pa.array(np.arange(first, last))
    day, group = (
        pc.cast(part, pa.string()) for part in (np.arange(first, last) % _DAYS + 10, numbers.to_numpy() // _ROWS_A_FILE)
    )
    place = {
        "f": _joined("00000000-0000-4000-8000-", pc.utf8_lpad(group, 12, "0"), "-0"),
        "p": _joined("day=2026-01-", day),
    }
    columns = [_key(numbers), place["f"], place["p"], pa.array([_INSTANT] * len(numbers))]
    return pa.table(dict(zip(COLUMNS, (column.cast(pa.binary()) for column in columns), strict=True)))


def key(number: int) -> str:
    return f"{number:0{_KEY_LENGTH}}"


def some_entries(first: int, last: int) -> dict[str, Entry]:
    """The same, for who puts them one by one."""
    rows = entries(first, last).to_pylist()
    return {row["row"].decode(): Entry(row["p"].decode(), row["f"].decode(), row["t"].decode()) for row in rows}


def write_hfile(table: pa.Table, file: Path) -> WrittenHFile:
    """Of entries in the order of their rows."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as out:
        writer = HFileWriter(out, family=FAMILY, qualifiers=QUALIFIERS, timestamp_ms=TIMESTAMP_MS)
        for batch in table.to_batches(max_chunksize=_BATCH):
            writer.append(batch.column(0), batch.columns[1:])
        return writer.close()


def write_tsv(table: pa.Table, file: Path) -> None:
    """In no order, as a table has its rows."""
    shuffled = table.take(np.random.default_rng(1).permutation(len(table)))
    texts = pa.table({name: shuffled[name].cast(pa.string()) for name in COLUMNS})
    csv.write_csv(texts, file, csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none"))


def read_tsv(file: Path) -> pa.Table:
    """In the order of its rows."""
    types = dict.fromkeys(COLUMNS, pa.binary())
    read = csv.read_csv(
        file,
        read_options=csv.ReadOptions(column_names=list(COLUMNS)),
        parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
        convert_options=csv.ConvertOptions(column_types=types),
    )
    return read.take(pc.sort_indices(read["row"])).combine_chunks()


def pieces(rows: int, files: int) -> Iterator[tuple[int, int]]:
    """The numbers of `rows` entries in as many pieces."""
    ends = [rows * place // files for place in range(files + 1)]
    yield from pairwise(ends)


def _key(numbers: pa.Array) -> pa.Array:
    return pc.utf8_lpad(numbers.cast(pa.string()), _KEY_LENGTH, "0")


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")
