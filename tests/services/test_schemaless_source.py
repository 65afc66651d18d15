"""The source of tables of cells: rows by ranges of their key, from the newest cell that is sound, and the same keys and values as the log has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from ingestion.domain.batch_limits import BatchLimits
from ingestion.domain.merging.stored_metadata import METADATA_COLUMN, row_state
from ingestion.heatpipe.decoder import Decoder
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.heatpipe.reading import KnownSchemas
from ingestion.sources import EventBatch, LoggedEvents, SourceConfig, SourceError, has_changes
from ingestion.sources.mysql.schemaless import SchemalessSource
from lakehub.kernel.cells.cell_tables import CellOptions
from tests.services.cell_table import CellTable
from tests.services.tapped_server import TappedServer, tapped_server

DATABASE = "lakehub_cells"


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, DATABASE, tmp_path / "log") as tapped:
        tapped.versions.keeps = True
        yield tapped


def config(server: TappedServer, table: str = "cells", behind: str = "", **fields: Any) -> SourceConfig:
    schemas = tuple(schema for schema, _ in server.versions.known if schema.subject == table)
    topic = EventTopic("segments", server.log_url, table, schemas, KnownSchemas(len(schemas), datetime.now(UTC)))
    url = server.url.render_as_string(hide_password=False)
    options = {"chunk_rows": 2, "options": topic.as_options(), "key_columns": ("row_key",), **fields}
    return SourceConfig(url, f"{DATABASE}.{table}{behind}", **options)


def rows_in(batches: Sequence[EventBatch]) -> dict[Any, dict[str, Any]]:
    """By row key, without nulls and metadata."""
    rows = {}
    for batch in batches:
        columns = {name: values for name, values in batch.columns.items() if name != METADATA_COLUMN}
        for values in zip(*columns.values(), strict=True):
            row = {name: value for name, value in zip(columns, values, strict=True) if value is not None}
            rows[row["row_key"]] = row
    return rows


def metadata_in(batches: Sequence[EventBatch]) -> dict[Any, Any]:
    return {
        key: state
        for batch in batches
        for key, state in zip(batch.columns["row_key"], batch.columns[METADATA_COLUMN].to_pylist(), strict=True)
    }


def load(server: TappedServer, *, rows: int | None = None, **fields: Any) -> list[EventBatch]:
    """In as many readings as it takes, each by another process."""
    batches: list[EventBatch] = []
    after: Any = None
    for _ in range(50):
        source = SchemalessSource(config(server, **fields))
        reading = source.snapshot(after=after, limits=BatchLimits(rows=rows))
        read = [*reading.batches]
        assert len({str(batch.schema) for batch in read}) <= 1
        batches += read
        after = json.loads(json.dumps(reading.position()))
        if not reading.has_more():
            return batches
    raise AssertionError("The load does not end.")


def unreadable(batches: Sequence[EventBatch]) -> list[str]:
    return [row.reason for batch in batches for row in batch.unreadable]


def test_a_row_has_the_newest_cell_of_each_column_and_says_which_reference_key_each_has(server: TappedServer) -> None:
    table = CellTable(server, "cells", body="json")
    table.add("a", "base", 3, {"city": "Bonn", "fare": 1})
    table.add("a", "base", 2, {"city": "older", "gone": 1})
    table.add("a", "status", -7, {"word": "begun"})
    table.add("b", "base", 9, {"fare": 2.5})
    for is_registered in (False, True):
        batches = load(server)
        assert rows_in(batches) == {
            "a": {"row_key": "a", "base__ref_key": 3, "base__city": "Bonn", "base__fare": 1, "status__ref_key": -7, "status__word": "begun"},
            "b": {"row_key": "b", "base__ref_key": 9, "base__fare": 2.5},
        }  # fmt: skip
        state = metadata_in(batches)["a"]
        assert (state["row_key"], state["reference_key"], state["schema_version"] > 0) == ('["a"]', 3, is_registered)
        columns = row_state(dict.fromkeys(batches[0].columns), state, lambda version: ()).columns
        versions = {name: column.version.reference_key for name, column in columns.items()}
        assert versions.items() >= {"row_key": 3, "base__city": 3, "base__gone": 3, "status__word": -7}.items()
        server.take("cells", cells=CellOptions())


def test_a_load_goes_on_in_other_processes_and_what_comes_meanwhile_is_in_the_log(server: TappedServer) -> None:
    table = CellTable(server, "cells")
    for number in range(9):
        table.add(f"k{number}", "base", 1, {"n": number})
    server.take("cells", cells=CellOptions())
    start = SchemalessSource(config(server)).snapshot(limits=BatchLimits(rows=2))
    assert len([*start.batches]) == 1
    table.add("k0", "base", 2, {"n": 100})
    after = json.loads(json.dumps(start.position()))
    rest = SchemalessSource(config(server)).snapshot(after=after)
    batches = [*rest.batches]
    assert ([*rows_in(batches)], max(batch.rows for batch in batches)) == ([f"k{number}" for number in range(2, 9)], 2)
    assert rest.has_more() is False
    source = SchemalessSource(config(server))
    assert not has_changes(source, rest.position())
    server.take("cells", cells=CellOptions())
    (events,) = SchemalessSource(config(server)).changes(rest.position()).batches
    assert isinstance(events, LoggedEvents)
    (change,) = events.decoded
    assert (change.event.row_key, change.event.reference_key, change.source_column) == (("k0",), 2, "base")


def test_a_reading_ends_before_rows_that_need_other_columns_and_the_next_knows_those_before(
    server: TappedServer,
) -> None:
    """Some 2,000 cells are looked at first: these are in the middle."""
    CellTable(server, "cells")
    server.execute(
        "INSERT INTO cells (row_key, column_name, ref_key, body) SELECT concat('k', lpad(seq, 5, '0')), 'base', 1, "
        'CASE WHEN seq < 1500 THEN \'{"n": 1}\' WHEN seq = 1500 THEN \'{"n": 1.5, "late": true}\' ELSE \'{"n": 2}\' END FROM seq_1_to_3000'
    )
    pieces: list[int] = []
    source = SchemalessSource(config(server, chunk_rows=1_000, on_rows_read=pieces.append))
    first = source.snapshot()
    assert [batch.schema.types["base__n"] for batch in first.batches] == ["int"]
    assert first.has_more()
    second = source.snapshot(after=first.position(), limits=BatchLimits(rows=1_000))
    assert [batch.schema.types["base__n"] for batch in second.batches] == ["double"]
    last = source.snapshot(after=second.position())
    assert [batch.schema.types["base__n"] for batch in last.batches] == ["double"]
    assert (last.has_more(), sum(pieces)) == (False, 3000)


def test_a_broken_cell_is_put_aside_and_the_one_before_it_counts(server: TappedServer) -> None:
    table = CellTable(server, "cells")
    for ref_key, body in ((1, {"n": 1}), (2, "{broken"), (3, '{"n": NaN}'), (4, '{"n": "text"}')):
        table.add("a", "base", ref_key, body)
    for number in range(150):
        table.add("b", "base", number, "[]" if number else {"n": 7})
    table.add("c", "base", 1, "nothing but this")
    table.add("d", "base", 1, None)
    batches = load(server)
    rows = rows_in(batches)
    assert (rows["a"]["base__n"], rows["b"]["base__n"]) == (1, 7)
    assert rows["d"] == {"row_key": "d", "base__ref_key": 1}
    assert "c" not in rows
    assert len(unreadable(batches)) == 3 + 149 + 1
    assert sum("broken message (type)" in reason for reason in unreadable(batches)) == 2


def test_cells_of_the_column_that_deletes(server: TappedServer) -> None:
    table = CellTable(server, "cells")
    for key, column, ref_key in (
        ("a", "base", 1),
        ("a", "gone", 1),
        ("b", "gone", 5),
        ("b", "base", 6),
        ("b", "old", 4),
    ):
        table.add(key, column, ref_key, {"n": 1})
    batches = load(server, behind="?delete=gone")
    assert rows_in(batches) == {"b": {"row_key": "b", "base__ref_key": 6, "base__n": 1}}
    assert metadata_in(batches)["b"]["deleted"]["ref_key"] == 5


UUIDS = ("123e4567-e89b-12d3-a456-426655440000", "01890a5d-ac96-774b-bcce-b302099a8057", "00000000-0000-4000-8000-000000000001")  # fmt: skip
KEYS: dict[str, tuple[list[Any], list[Any]]] = {
    "uuid": ([*UUIDS], [*UUIDS]),
    "binary(16)": ([UUID(text).bytes for text in UUIDS], [*UUIDS]),
    "varbinary(9)": ([b"\x00", b"a", b"\xff\xff"], ["00", "61", "ffff"]),
    "varchar(20)": (["a", "A", "ä", "a ", "Zoë"], ["a", "A", "ä", "a ", "Zoë"]),
    "char(20) CHARACTER SET latin1": (["a", "B", "ä"], ["a", "B", "ä"]),
    "bigint": ([-(2**63), 0, 2**63 - 1], [-(2**63), 0, 2**63 - 1]),
}


@pytest.mark.parametrize("key", KEYS)
def test_row_keys_are_the_same_by_the_load_and_by_the_log(server: TappedServer, key: str) -> None:
    """Texts that the collation takes for one are two rows, as their bytes differ."""
    values, expected = KEYS[key]
    table = CellTable(server, "cells", key=key)
    for number, value in enumerate(values):
        table.add(value, "base", number, {"n": number})
    table.add(values[0], "status", 99, {"word": "ü"})
    rows = rows_in(load(server))
    assert {name: row["base__n"] for name, row in rows.items()} == {name: n for n, name in enumerate(expected)}
    server.take("cells", cells=CellOptions())
    decoder = Decoder("cells", ("row_key",), int, server.versions.of_id)
    events = [decoder.decode(message, (0,)).event for message in server.messages("cells")]
    assert {event.row_key for event in events} == {(name,) for name in rows}


@pytest.mark.parametrize("body", ["json", "longblob", "text CHARACTER SET latin1"])
def test_bodies_of_texts_and_of_bytes(server: TappedServer, body: str) -> None:
    table = CellTable(server, "cells", body=body)
    table.add("a", "base", 1, '{"city": "Köln"}'.encode() if "blob" in body else '{"city": "Köln"}')
    assert rows_in(load(server))["a"]["base__city"] == "Köln"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"object": f"{DATABASE}.nowhere"}, "There is no table"),
        ({"object": f"{DATABASE}.plain"}, "not known to hold cells"),
        ({"object": f"{DATABASE}.cells?bodi=x"}, "Did you mean `body`"),
        ({"url": "mysql://reader:hunter2@127.0.0.1:1/ops"}, "cannot be read"),
        ({"key_columns": ("added_id",)}, "rows are named by `row_key`"),
    ],
)
def test_what_cannot_be_read_is_said_without_the_password(
    server: TappedServer, change: dict[str, Any], reason: str
) -> None:
    CellTable(server, "cells")
    server.execute("CREATE TABLE plain (id int PRIMARY KEY)")
    source = SchemalessSource(replace(config(server), **change))
    with pytest.raises(SourceError, match=reason) as failed:
        next(iter(source.snapshot().batches))
    assert "hunter2" not in str(failed.value)
    with pytest.raises(SourceError):
        source.schema()
