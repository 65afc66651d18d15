"""Where a dataset wants it, a value that does not fit is null in its row, and the event says what it was; a key never is."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from ingestion.capture.binlog.table_map import ColumnKind, MappedColumn, TableMap
from ingestion.capture.null_instead import encode_or_null
from ingestion.capture.snapshot.chunks import SnapshotChunk
from ingestion.capture.tap.captured_table import CapturedTable, CaptureSpec
from ingestion.capture.tap.hidden_columns import HiddenColumns
from ingestion.heatpipe.broken_message import UnfitEvent
from ingestion.heatpipe.decoder import Decoded, Decoder
from ingestion.heatpipe.encoder import MENDED_SOURCE, Encoder, Mended
from ingestion.heatpipe.unencoded_row import UnencodedRow
from ingestion.raw_chunks.chunk_file import read_chunk_file
from ingestion.sources.logged_changes import metadata_column
from ingestion.sources.mysql.chunk_batches import batch_of
from ingestion.sources.mysql.chunk_reading import ChunkReader
from lakehub.kernel.cells.cell_tables import CellOptions
from tests.unit.ingestion.capture.cells import added, cell_table
from tests.unit.ingestion.capture.tapping import NOW, UTF8, Server, Tapping, inserted, transaction
from tests.unit.ingestion.capture.topic_tapping import ORDERS, TopicTapping
from tests.unit.ingestion.heatpipe.messages import change, decoder, encoder, subject_schema

MOODS = TableMap(
    "shop",
    "trips",
    (
        MappedColumn("id", ColumnKind.LONG),
        MappedColumn("mood", ColumnKind.ENUM, (1,), labels=(b"good", b"bad"), collation=UTF8),
        MappedColumn("city", ColumnKind.VARCHAR, (40, 0), collation=UTF8),
    ),
    ("id",),
)
SPEC = CaptureSpec("trips", "shop", "trips", record_key=("id",), required=frozenset({"id", "mood_day"}))


def decoded(tapping: Tapping | TopicTapping, topic: str, key: tuple[str, ...], kind: type = bytes) -> list[Decoded]:
    reader = Decoder(topic, key, kind, tapping.versions.of_id)
    return [reader.decode(each.value or b"", (0,)) for each in tapping.log.messages if each.topic == topic]


def rejected(tapping: Tapping | TopicTapping, topic: str) -> list[UnencodedRow]:
    rows = [
        UnencodedRow.from_json(each.value or b"") for each in tapping.log.messages if each.topic == f"{topic}.errors"
    ]
    return [row for row in rows if row is not None]


def taken(spec: CaptureSpec, definition: TableMap, *rows: dict[str, Any]) -> Tapping:
    tapping = Tapping(Server([transaction(1, inserted(definition, *rows))]))
    tapping.run([spec])
    return tapping


BROKEN = {"id": 1, "mood": 7, "city": "Ulm"}
"""There is no seventh label."""


def test_a_row_of_a_table_is_one_event_that_has_its_note() -> None:
    tapping = taken(SPEC, MOODS, BROKEN, {"id": 2, "mood": 2, "city": "Bonn"})
    first, second = decoded(tapping, "trips", ("id",))
    assert first.event.values == {"id": 1, "mood": None, "city": "Ulm"}
    assert first.nulled is not None
    assert (first.nulled.column, first.nulled.row, first.nulled.transaction) == ("mood", 0, "0-1-1")
    assert first.nulled.reason.startswith("null instead: `mood` cannot be read: there is no label 7")
    assert first.nulled.after == {"id": 1, "mood": 7, "city": "Ulm"}
    assert (second.event.values["mood"], second.nulled) == ("bad", None)
    assert rejected(tapping, "trips") == []


@pytest.mark.parametrize("required", [None, frozenset({"id", "mood"})])
def test_without_the_policy_and_in_a_column_of_the_partition_the_row_is_put_aside(
    required: frozenset[str] | None,
) -> None:
    tapping = taken(replace(SPEC, required=required), MOODS, BROKEN)
    assert decoded(tapping, "trips", ("id",)) == []
    (row,) = rejected(tapping, "trips")
    assert (row.after, row.is_nulled) == (BROKEN, False)


def test_what_nobody_may_see_is_in_no_note() -> None:
    hidden = HiddenColumns(hashed=frozenset({"mood"}), masked=frozenset({"city"}), key="secret")
    tapping = taken(replace(SPEC, hidden=hidden), MOODS, BROKEN)
    (event,) = decoded(tapping, "trips", ("id",))
    assert event.nulled is not None
    assert (event.event.values["mood"], event.nulled.after) == (None, {"id": 1, "mood": None, "city": None})
    assert "7" not in event.nulled.reason
    assert not any(b"Ulm" in (each.value or b"") for each in tapping.log.messages)


def test_the_load_notes_what_the_log_does() -> None:
    table = CapturedTable.of(SPEC, MOODS, Tapping(Server([])).versions, {UTF8: "utf8mb4"})
    rows = [{"id": 2, "mood": 1, "city": "Bonn"}, BROKEN]
    read = ChunkReader(table, 10, 0, is_landing=True).landing(SnapshotChunk(rows, 5, None), None)
    assert read_chunk_file(read.content or b"") == read.chunk
    batch = batch_of(read.chunk, ("id",), table.schema.row_columns, 1, metadata_column(bytes))
    assert (batch.columns["mood"], batch.unreadable, read.chunk.nulled.keys()) == (["good", None], (), {1})
    (note,) = batch.nulled
    assert (note.column, note.reason.startswith("null instead: `mood`"), "'mood': 7" in note.raw) == (
        "mood",
        True,
        True,
    )


def test_a_cell_keeps_the_fields_that_fit() -> None:
    cells = cell_table()
    spec = CaptureSpec("cells", "shop", "cells", cells=CellOptions(), required=frozenset({"row_key"}))
    tapping = Tapping(Server([transaction(1, added(cells, ("k", "base", 1, '{"n": 1, "m": 1}')))]))
    tapping.server.transactions.append(transaction(2, added(cells, ("k", "base", 2, '{"n": "x", "m": 2}'))))
    tapping.server.transactions.append(transaction(3, added(cells, ("k", "base", 3, "no JSON"))))
    tapping.run([spec])
    *_, last = decoded(tapping, "cells", ("row_key",), int)
    assert (last.event.values["base__n"], last.event.values["base__m"], last.event.reference_key) == (None, 2, 2)
    assert last.nulled is not None
    assert (last.nulled.column, last.nulled.after) == (
        "base__n",
        {**(last.nulled.after or {}), "body": '{"n": "x", "m": 2}'},
    )
    assert [row.after and row.after["body"] for row in rejected(tapping, "cells")] == ["no JSON"]


def test_a_message_of_a_topic_keeps_the_columns_that_fit() -> None:
    """But a key that does not fit, and a name that is unknown, put it aside."""
    tapping = TopicTapping(required=frozenset({"id"}))
    tapping.topic.send(None, {"id": 1, "n": 1, "m": 1})
    tapping.take()
    for value in ({"id": 2, "n": "x", "m": 2}, {"id": "?", "n": 1}, {"id": 3, "no name": 1}):
        tapping.topic.send(None, value)
    tapping.take()
    first, second = decoded(tapping, ORDERS, ("id",))
    assert (first.nulled, second.event.values) == (None, {"id": 2, "n": None, "m": 2})
    assert second.nulled is not None
    assert (second.nulled.column, second.nulled.after) == ("n", {"id": 2, "n": "x", "m": 2})
    assert len(rejected(tapping, ORDERS)) == 2


def test_several_values_are_one_note_and_a_key_is_none() -> None:
    def note_of(problem: UnfitEvent) -> UnencodedRow:
        return UnencodedRow("0-1-7", 3, problem.defect, problem.field, str(problem), None, {"id": 1})

    unfit = change({"id": 42, "fare": Decimal("99999999.99"), "seats": 2**40, "city": "\ud800", "is_shared": True})
    message = encode_or_null(encoder(), unfit, {}, note_of, required=frozenset({"id"}))
    event = decoder(subject_schema()).decode(message.value, (0,))
    assert {name for name in ("fare", "seats", "city") if event.event.values[name] is None} == {"fare", "seats", "city"}
    assert event.event.values["is_shared"] is True
    assert event.nulled is not None
    assert all(f"`{name}`" in event.nulled.reason for name in ("fare", "seats", "city"))
    with pytest.raises(UnfitEvent):
        encode_or_null(encoder(), unfit, {}, note_of, required=frozenset({"id", "seats"}))
    with pytest.raises(UnfitEvent):
        encode_or_null(encoder(), change({"id": None}, key=None), {}, note_of, required=frozenset())
    mended = Encoder(subject_schema(), ("id",), MENDED_SOURCE, "dc1", lambda: NOW)
    note = replace(event.nulled, is_nulled=True).to_json()
    again = mended.encode(change({"id": 42}), mended=Mended("null instead: it was", note))
    assert decoder(subject_schema()).decode(again.value, (0,)).nulled is None, "it is mended, and not noted again"
