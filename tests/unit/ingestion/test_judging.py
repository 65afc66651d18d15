"""A small batch: the rule's fates, and where each applied row goes. The rule itself has its own tests; Spark's twin is held to it elsewhere."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from ingestion.domain.accounting import RowCounts
from ingestion.domain.write_races import WrittenSince
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import FileGroup
from ingestion.spark.file_groups.direct_write import PlacedRow
from ingestion.spark.loading.judging import Batch, Judged, StoredRow, judge, plain_rows
from ingestion.spark.loading.staging import SEQUENCE_COLUMN
from tests.fuzz_seed import REPEAT, SEED

TABLE = TableSpec("orders", "file:///lake/orders", "file:///lake/_errors", ("id",), "at", "day")
COLUMNS = ("id", "day", "at", "amount")
NAN = float("nan")


def row(id_: int, day: str = "d1", at: float = 1, amount: Any = 1.0) -> dict[str, Any]:
    return dict(zip(COLUMNS, (id_, day, at, amount), strict=True))


def stored(id_: int, day: str = "d1", at: float = 1, amount: Any = 1.0, file_id: str = "f") -> StoredRow:
    return StoredRow(str(id_), FileGroup(f"day={day}", file_id), "20261116", row(id_, day, at, amount))


def judged(rows: list[dict[str, Any]], held: list[StoredRow], *, table: TableSpec = TABLE, errors: int = 0) -> Judged:
    arriving = tuple(rows[0]) if rows else COLUMNS
    batch = Batch(rows, [str(each["id"]) for each in rows], arriving)
    return judge(batch, held, table, read=len(rows) + errors, errors=errors)


def test_a_new_key_goes_to_its_partition_and_a_change_to_where_the_row_is() -> None:
    result = judged([row(1, "d2"), row(2, at=5, amount=7.0)], [stored(2, file_id="g")], errors=3)
    assert result.rows == (
        PlacedRow("1", "day=d2", None, row(1, "d2")),
        PlacedRow("2", "day=d1", "g", row(2, at=5, amount=7.0)),
    )
    assert (result.counts, result.moved) == (RowCounts(read=5, applied=2, errors=3), 0)


def test_a_key_that_moves_is_removed_where_it_was() -> None:
    result = judged([row(1, "d2", at=2)], [stored(1, "d1", file_id="g")])
    assert result.rows == (
        PlacedRow("1", "day=d1", "g", None),
        PlacedRow("1", "day=d2", None, row(1, "d2", at=2)),
    )
    assert (result.counts.applied, result.moved) == (1, 1)


def test_where_keys_stay_a_row_is_changed_where_it_is_and_the_same_row_is_known() -> None:
    table = replace(TABLE, keys_stay=True)
    rows = [row(1, "d2", at=2), row(2, "d3"), row(3, "d3"), row(4, "d2", at=2), row(4, "d3", at=2)]
    held = [stored(1, file_id="g"), stored(2), stored(4, "d4", file_id="h")]
    result = judged(rows, held, table=table)
    assert result.rows == (
        PlacedRow("1", "day=d1", "g", row(1, "d1", at=2)),
        PlacedRow("3", "day=d3", None, row(3, "d3")),
        PlacedRow("4", "day=d4", "h", row(4, "d4", at=2)),
    )
    assert (result.counts, result.moved) == (RowCounts(read=5, applied=3, redelivered=2), 0)


def test_a_column_that_the_batch_lacks_keeps_its_value() -> None:
    arriving = {"id": 1, "day": "d1", "at": 3}
    assert judged([arriving], [stored(1, amount=8.0)]).rows[0].row == row(1, at=3, amount=8.0)
    assert judged([arriving], []).rows[0].row == arriving


def test_older_rows_and_rows_that_come_again_write_nothing() -> None:
    held = [stored(1, at=5.0), stored(2, at=1.0), stored(3, at=1.0, amount=NAN), stored(4, at=NAN)]
    result = judged([row(1, at=4.0), row(2, at=1.0), row(3, at=1.0, amount=NAN), row(4, at=9.0)], held)
    assert (result.rows, result.counts) == ((), RowCounts(read=4, superseded=2, redelivered=2))


def test_of_one_key_the_greater_reference_wins_and_of_equals_the_later() -> None:
    result = judged([row(1, at=3, amount=1.0), row(1, at=3, amount=2.0), row(1, at=2, amount=9.0)], [])
    assert [placed.row for placed in result.rows] == [row(1, at=3, amount=2.0)]
    assert result.counts == RowCounts(read=3, applied=1, superseded=2)


def test_a_key_that_the_table_holds_twice_is_named() -> None:
    assert judged([row(1, at=2)], [stored(1), stored(1, file_id="g"), stored(2)]).doubled == ("1",)


def test_a_table_without_partitions_and_without_a_reference_key() -> None:
    table = replace(TABLE, partition_column=None, reference_key=None)
    held = [StoredRow("1", FileGroup("", "f"), "20261116", row(1, at=9))]
    assert judged([row(1, at=1)], held, table=table).rows == (PlacedRow("1", "", "f", row(1, at=1)),)


def test_a_row_that_was_written_since_the_batch_was_read_stands_unless_the_batch_is_newer() -> None:
    batch = Batch([row(1, at=5, amount=2.0), row(2, at=6)], ["1", "2"], COLUMNS)
    held = [stored(1, at=5), stored(2, at=5)]
    for began, applied in (("20261117", ["1", "2"]), ("20261115", ["2"])):
        result = judge(batch, held, TABLE, read=2, errors=0, since=WrittenSince(began))
        assert [placed.key for placed in result.rows] == applied


def test_random_batches_leave_what_a_plain_loop_leaves() -> None:
    randomly = random.Random(SEED)
    for _ in range(300):
        held = {id_: row(id_, *_values(randomly)) for id_ in range(5)}
        rows = [row(randomly.randrange(8), *_values(randomly)) for _ in range(randomly.randrange(1, 9))]
        result = judged(rows, [stored(**_named(each)) for each in held.values()])
        after = {(f"day={each['day']}", id_): each for id_, each in held.items()}
        for placed in result.rows:
            assert placed.row is not None or (placed.partition, int(placed.key)) in after, REPEAT
            after.pop((placed.partition, int(placed.key)), None)
            after |= {} if placed.row is None else {(placed.partition, int(placed.key)): dict(placed.row)}
        for each in rows:
            if each["id"] not in held or each["at"] >= held[each["id"]]["at"]:
                held[each["id"]] = each
        assert {id_: each for (_, id_), each in after.items()} == held, REPEAT
        assert len(after) == len(held), REPEAT
        assert result.counts.is_balanced, REPEAT


def _values(randomly: random.Random) -> tuple[str, int, float]:
    return randomly.choice(["d1", "d2", "d3"]), randomly.randrange(4), float(randomly.randrange(2))


def _named(values: dict[str, Any]) -> dict[str, Any]:
    return {"id_" if name == "id" else name: value for name, value in values.items()}


def test_times_are_numbers_and_the_place_in_the_batch_is_no_column() -> None:
    rows = pa.table(
        {
            "day": pa.array([date(1582, 10, 10), None]),
            "at": pa.array([datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC), None], pa.timestamp("us", "UTC")),
            "note": ["a", None],
            SEQUENCE_COLUMN: [0, 1],
        }
    )
    assert plain_rows(rows) == [
        {"day": -141_432, "at": 253_402_300_799_999_999, "note": "a"},
        {"day": None, "at": None, "note": None},
    ]
