"""A raw chunk comes back as it was written, wherever it lies, and one that was changed is not taken for one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import sha256
from io import BytesIO
from typing import Any

import pytest
from fastavro import reader
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs
from pyarrow._fs import _MockFileSystem

from ingestion.domain.schema import Schema
from ingestion.heatpipe.event_schema import event_schema
from ingestion.heatpipe.subject_schema import SubjectSchema
from ingestion.raw_chunks import chunk_file
from ingestion.raw_chunks.chunk_file import ChunkRange, ChunkWriter, DamagedChunk, NullNote, RawChunk, read_chunk_file
from ingestion.raw_chunks.folders import RawFolder

TYPES = {
    "id": "long",
    "small": "int",
    "fare": "decimal(9,2)",
    "ratio": "double",
    "is_open": "boolean",
    "day": "date",
    "at": "timestamp",
    "note": "string",
    "photo": "binary",
}
READ_AT = datetime(2026, 11, 27, 8, tzinfo=UTC)
RANGE = ChunkRange(("id",), [["int", "3"]], [["int", "9"]])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
ROW = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "small": st.none() | st.integers(-(2**31), 2**31 - 1),
        "fare": st.none() | st.decimals(-9999999, 9999999, places=2),
        "ratio": st.none() | st.floats(allow_nan=False),
        "is_open": st.none() | st.booleans(),
        "day": st.none() | st.dates(),
        "at": st.none() | st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)),
        "note": st.none() | TEXTS,
        "photo": st.none() | st.binary(),
    }
)


def schema() -> SubjectSchema:
    return SubjectSchema("trips", 3, 7, event_schema("trips", Schema.of(TYPES)))


def file_of(
    rows: list[dict[str, Any]],
    unreadable: list[tuple[str, str]] | None = None,
    nulled: Mapping[int, NullNote] | None = None,
) -> bytes:
    writer = ChunkWriter(schema())
    for place, row in enumerate(rows):
        writer.add(row, (nulled or {}).get(place))
    for each in unreadable or []:
        writer.add_unreadable(*each)
    return writer.content(RANGE, 42, READ_AT)


@given(st.lists(ROW, max_size=5), st.lists(st.tuples(TEXTS, TEXTS), max_size=2), st.sampled_from([1, 2**20]))
def test_a_chunk_comes_back_as_it_was(rows: list[Any], unreadable: list[Any], block_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(chunk_file, "_BLOCK_BYTES", block_bytes)
        nulled = {place: NullNote("note", "null instead", row["note"] or "") for place, row in enumerate(rows[::2])}
        content = file_of(rows, unreadable, nulled)
    columns = {name: [row[name] for row in rows] for name in TYPES}
    assert read_chunk_file(content) == RawChunk(RANGE, 42, READ_AT, Schema.of(TYPES), 3, columns, unreadable, nulled)
    assert [record["row"] for record in reader(BytesIO(content))] == [*rows, *[None] * len(unreadable)]


ROWS = [
    {"id": number, "note": sha256(bytes([number])).hexdigest(), "fare": Decimal("1.50"), "day": date(2026, 11, 27)}
    for number in range(200)
]


@given(st.integers(0), st.integers(1, 255))
def test_one_that_was_changed_or_cut_off_is_not_taken(place: int, change: int) -> None:
    content = file_of(ROWS)
    rows_begin = content.index(b"}", content.index(b"crc32")) + 1
    place = rows_begin + place % (len(content) - rows_begin)
    for damaged in (content[:place], content[:place] + bytes([content[place] ^ change]) + content[place + 1 :]):
        try:
            chunk = read_chunk_file(damaged)
        except DamagedChunk:
            continue
        assert chunk == read_chunk_file(content)  # the mark between two blocks says nothing


def test_a_row_that_avro_cannot_hold_is_refused_and_leaves_nothing() -> None:
    writer = ChunkWriter(schema())
    writer.add({"id": 1})
    for wrong in ({"id": "x"}, {"id": 2, "note": "half \ud83d"}, {"id": 2**70}, {"id": 3, "fare": Decimal("1.234")}):
        with pytest.raises(ValueError, match="cannot be written as Avro"):
            writer.add(wrong)
    writer.add({"id": 2})
    writer.add_unreadable("half \ud83d", "why")
    chunk = read_chunk_file(writer.content(RANGE, 1, READ_AT))
    assert (chunk.columns["id"], chunk.unreadable) == ([1, 2], [("half \\ud83d", "why")])


def test_a_load_ends_only_where_all_of_it_is_there() -> None:
    """On a storage that is no disk of this machine, too."""
    folder = RawFolder(_MockFileSystem(), "lake/raw/trips")
    load, content = folder.load("a run/1"), file_of(ROWS[:2])
    assert (load.beginning(), load.chunk(0), folder.loads(), load.written_at()) == (None, None, [], None)
    load.begin({"least": 7})
    load.land(0, content)
    load.land(1, content)
    load.end(3, {"rows": 6})
    assert (load.beginning(), load.end_facts(), folder.newest_whole_load()) == ({"least": 7}, None, None)
    load.end(2, {"rows": 4})
    assert load.end_facts() == {"rows": 4, "chunks": 2}
    assert (load.chunk(1), load.chunk(2)) == (read_chunk_file(content), None)
    names = {info.base_name for info in folder.filesystem.get_file_info(fs.FileSelector(load.path))}
    assert names == {"beginning.json", "end.json", "00000000.avro", "00000001.avro"}
    folder.load("begun").begin({})
    folder.keep_newest()
    assert [each.name for each in folder.loads()] == ["a run/1"]
    load.begin({"least": 9})
    assert (load.chunk(0), json.dumps(load.beginning())) == (None, '{"least": 9}')
    folder.remove()
    folder.remove()
    assert folder.loads() == []
