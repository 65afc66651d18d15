"""New cells become partial events, and whatever the order in which they come the newest of each column counts."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ingestion.capture.binlog.events import RowChange, RowsChanged
from ingestion.capture.binlog.table_map import ColumnKind, MappedColumn, TableMap
from ingestion.capture.tap.captured_cells import CapturedCells
from ingestion.capture.tap.captured_table import CaptureSpec, NotCaptured
from ingestion.domain.merging.row_state import RowState
from ingestion.domain.merging.stored_metadata import METADATA_COLUMN
from ingestion.domain.schema import Schema, evolve_schema
from ingestion.heatpipe.decoder import Decoded, Decoder
from ingestion.heatpipe.unencoded_row import UnencodedRow
from ingestion.spark.changes.cells import siblings_of
from ingestion.spark.changes.fitting import fit_changes
from ingestion.spark.changes.merging import MergeRules, merge_changes
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import FileGroup
from ingestion.spark.loading.judging import StoredRow
from lakehub.kernel.cells.cell_tables import CellOptions
from tests.fuzz_seed import REPEAT, SEED
from tests.unit.ingestion.capture.cells import CellValues, added, cell_row, cell_table, rows_of
from tests.unit.ingestion.capture.tapping import UTF8, Server, Tapping, Versions, transaction

TABLE = cell_table()
SPEC = CaptureSpec("cells", "shop", "cells", record_key=("row_key",), cells=CellOptions(delete="gone"))


SPEC_OF_TABLE = TableSpec("cells", "file:///lake/cells", "file:///lake/_errors", ("row_key",))


def tapped(*changes: RowsChanged, versions: Versions | None = None) -> Tapping:
    """Each by a transaction of its own."""
    server = Server([transaction(number, change) for number, change in enumerate(changes, 1)])
    tapping = Tapping(server, versions=versions or Versions(keeps=True))
    tapping.run([SPEC])
    return tapping


def decoded(tapping: Tapping) -> list[Decoded]:
    decoder = Decoder("cells", ("row_key",), int, tapping.versions.of_id)
    messages = [message for message in tapping.log.messages if message.topic == "cells"]
    return [decoder.decode(message.value or b"", (0, offset)) for offset, message in enumerate(messages)]


def rejected(tapping: Tapping) -> list[UnencodedRow]:
    texts = [message.value or b"" for message in tapping.log.messages if message.topic == "cells.errors"]
    return [row for text in texts if (row := UnencodedRow.from_json(text)) is not None]


def test_a_cell_carries_what_comes_from_its_column_under_its_reference_key() -> None:
    tapping = tapped(
        added(TABLE, ("a", "base", 5, '{"city": "Ulm"}'), ("a", "status", 9, '{"word": "begun"}')),
        added(TABLE, ("a", "base", 6, '{"fare": 1.5}'), ("b", "base", 7, None)),
    )
    events = [(each.source_column, each.event.reference_key, dict(each.event.values)) for each in decoded(tapping)]
    assert events == [
        ("base", 5, {"row_key": "a", "base__ref_key": 5, "base__city": "Ulm"}),
        ("status", 9, {"row_key": "a", "status__ref_key": 9, "status__word": "begun"}),
        ("base", 6, {"row_key": "a", "base__ref_key": 6, "base__city": None, "base__fare": 1.5}),
        ("base", 7, {"row_key": "b", "base__ref_key": 7, "base__city": None, "base__fare": None}),
    ]
    assert [each.event.schema_version for each in decoded(tapping)] == [2, 3, 4, 4]


def test_a_cell_of_the_column_that_deletes_deletes_its_row() -> None:
    (event,) = decoded(tapped(added(TABLE, ("a", "gone", 5, "{broken"))))
    assert (event.event.operation.value, event.event.row_key, event.event.reference_key) == ("delete", ("a",), 5)


@pytest.mark.parametrize(
    ("cell", "defect"),
    [
        (("a", "base", 2, "{broken"), "corrupt"),
        (("a", "base", 2, '{"n": NaN}'), "type"),
        (("a", "base", 2, '{"n": "text"}'), "type"),
        (("a", "base", 2, '{"a-b": 1}'), "field"),
        (("a", "base", 2, '{"s": "\udcff"}'), "invalid_utf8"),
        (("a", "base", None, "{}"), "reference_key"),
        ((None, "base", 2, "{}"), "row_key"),
        (("\udcff", "base", 2, "{}"), "invalid_utf8"),
        (("a", "row_key", 2, "{}"), "field"),
        (("a", "BASE", 2, "{}"), "field"),
    ],
)
def test_a_broken_cell_is_put_aside_whole_and_those_after_it_are_taken(cell: Any, defect: str) -> None:
    tapping = tapped(added(TABLE, ("a", "base", 1, '{"n": 1}'), cell, ("a", "base", 3, '{"n": 3}')))
    assert [each.event.values["base__n"] for each in decoded(tapping)] == [1, 3]
    (row,) = rejected(tapping)
    shown = dict(zip(("row_key", "column", "ref_key", "body"), cell, strict=True))
    assert (row.defect, row.after, tapping.stopped) == (defect, shown, {})


def test_a_cell_that_is_changed_where_it_lies_is_put_aside_and_one_that_is_purged_is_ignored() -> None:
    before, after = cell_row("a", "base", 1, '{"n": 1}'), cell_row("a", "base", 1, '{"n": 2}')
    tapping = tapped(
        RowsChanged(TABLE, [RowChange(before, after), RowChange(before, {**before, "added_id": 9})]),
        RowsChanged(TABLE, [RowChange(before, None)]),
    )
    assert decoded(tapping) == []
    (row,) = rejected(tapping)
    assert "never changed" in row.reason
    assert (row.before, row.after) == tuple(
        {"row_key": "a", "column": "base", "ref_key": 1, "body": body} for body in ('{"n": 1}', '{"n": 2}')
    )


def test_a_version_that_the_rule_is_against_stops_the_table() -> None:
    versions = Versions(refuses=("base__n",), keeps=True)
    tapping = tapped(added(TABLE, ("a", "base", 1, '{"m": 1}'), ("a", "base", 2, '{"n": 1}')), versions=versions)
    assert (len(decoded(tapping)), "base__n" in tapping.stopped["cells"]) == (1, True)


KEYS: list[tuple[MappedColumn, Any, Any, str]] = [
    (MappedColumn("row_key", ColumnKind.LONGLONG), 5, 5, "long"),
    (MappedColumn("row_key", ColumnKind.VARCHAR, (16, 0)), bytes(range(16)), "00010203-0405-0607-0809-0a0b0c0d0e0f", "string"),
    (MappedColumn("row_key", ColumnKind.VARCHAR, (16, 0)), b"\x01\xff", "01ff", "string"),
    (MappedColumn("row_key", ColumnKind.STRING, (254, 16)), b"\x01", "01000000-0000-0000-0000-000000000000", "string"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "stored", "key", "type_"), KEYS)
def test_a_row_key_may_be_a_number_or_bytes(column: MappedColumn, stored: Any, key: Any, type_: str) -> None:
    tapping = tapped(added(cell_table(key=column), (stored, "base", 1, "{}")))
    assert [each.event.row_key for each in decoded(tapping)] == [(key,)]
    assert tapping.versions.known[0][1].types == {"row_key": type_}


def test_a_body_of_bytes_is_json_too() -> None:
    table = cell_table(body=MappedColumn("body", ColumnKind.BLOB, (4,)))
    (event,) = decoded(tapped(added(table, ("a", "base", 1, '{"city": "Köln"}'.encode()))))
    assert event.event.values["base__city"] == "Köln"


@pytest.mark.parametrize(
    ("table", "spec", "reason"),
    [
        (TableMap("shop", "cells", TABLE.columns[:3], ()), SPEC, "no column for `ref_key`"),
        (cell_table(key=MappedColumn("row_key", ColumnKind.DOUBLE)), SPEC, "`row_key` is double"),
        (cell_table(body=MappedColumn("body", ColumnKind.LONG)), SPEC, "`body` is int"),
        (TABLE, replace(SPEC, record_key=("added_id",)), "rows are named by `row_key`"),
        (TABLE, replace(SPEC, cells=CellOptions(ref_key="body", body="column_name", column="row_key", row_key="added_id")), "`body` is string"),
    ],
)  # fmt: skip
def test_a_table_that_holds_no_cells_is_not_captured(table: TableMap, spec: CaptureSpec, reason: str) -> None:
    with pytest.raises(NotCaptured, match=reason):
        CapturedCells.of(spec, table, Versions(), {UTF8: "utf8mb4"})


@dataclass
class Lake:
    """What a job makes of the events, without files: its columns grow as those of the events do."""

    columns: Schema = field(default_factory=lambda: Schema.of({"row_key": "string"}))
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    graves: dict[str, RowState] = field(default_factory=dict)
    versions: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def merge(self, events: list[Decoded]) -> None:
        for event in events:
            self.columns = evolve_schema(self.columns, event.schema.row_columns).target
        self.versions |= {each.schema.version: each.schema.columns for each in events}
        fitted = fit_changes(events, SPEC_OF_TABLE, self.columns)
        assert not fitted.rejected
        rules = MergeRules(
            SPEC_OF_TABLE, self.columns.names, self.versions.__getitem__, int, siblings_of(events, self.columns.names)
        )
        none = dict.fromkeys(self.columns.names)
        stored = [StoredRow(key, FileGroup("", "f"), "1", {**none, **row}) for key, row in self.rows.items()]
        merged = merge_changes(fitted.changes, stored, self.graves, rules, errors=0)
        for row in merged.rows:
            if row.row is None:
                del self.rows[row.key]
            else:
                self.rows[row.key] = dict(row.row)
        self.graves |= merged.tombstones

    def without_nulls(self) -> dict[str, dict[str, Any]]:
        return {
            key: {
                name: value
                for name, value in row.items()
                if value is not None and name not in ("row_key", METADATA_COLUMN)
            }
            for key, row in self.rows.items()
        }


def random_cells(chance: random.Random) -> list[CellValues]:
    def body() -> dict[str, Any] | None:
        if chance.random() < 0.15:
            return None
        fields = {
            "n": chance.choice([1, 2, 2.5, None]),
            "t": chance.choice(["x", "ü", None]),
            "flag": chance.choice([True, False]),
            "late": chance.randrange(2**33),
        }
        return {name: value for name, value in fields.items() if chance.random() < 0.5}

    cells = {
        (chance.choice("ab"), chance.choice(["base", "base_x", "status"]), chance.randrange(-3, 6)): body()
        for _ in range(chance.randrange(1, 14))
    }
    return [(*identity, content) for identity, content in cells.items()]


@pytest.mark.parametrize("number", range(60))
def test_any_order_batches_and_repetitions_of_cells_give_the_newest_of_each_column(number: int) -> None:
    chance = random.Random(f"{SEED}-{number}")
    cells = random_cells(chance)
    written = chance.sample(cells, len(cells))
    tapping = tapped(
        *(
            added(TABLE, (key, column, ref, None if body is None else json.dumps(body)))
            for key, column, ref, body in written
        )
    )
    events = decoded(tapping)
    events += chance.choices(events, k=3)
    chance.shuffle(events)
    lake = Lake()
    while events:
        size = chance.randrange(1, 5)
        batch, events = events[:size], events[size:]
        lake.merge(batch)
    assert lake.without_nulls() == rows_of(cells), REPEAT
