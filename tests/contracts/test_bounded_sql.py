"""Bounded readings of an SQL table: together they hand over what one reading does, whatever is in the cursor and whatever changes meanwhile."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.batch_limits import UNLIMITED, BatchLimits
from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import UnknownColumn
from ingestion.sources import SourceConfig, SourceReading
from ingestion.sources.sql.source import SqlSource
from ingestion.sources.sql.watermark import MAX_REMEMBERED_HASHES

Row = tuple[int, Any]
TIMES = [None, "garbage", *(f"2026-11-16 08:00:{second:02}" for second in range(8))]
MIXED_CASE = [None, *(f"2026-11-16{'Tt'[second % 2]}08:00:{second:02}" for second in range(8))]
"""A column that ignores case orders these by their seconds, and Python does not."""
NUMBERS = [None, "many", *range(6), 2.5]
LIMITS = st.one_of(
    st.integers(1, 6).map(lambda rows: BatchLimits(rows=rows)),
    st.integers(1, 400).map(lambda size: BatchLimits(bytes=size)),
    st.just(BatchLimits(seconds=1e-9)),
)
KINDS = st.sampled_from(
    [("timestamp", TIMES), ("integer", NUMBERS), ("text", TIMES), ("text collate nocase", MIXED_CASE)]
)
PAGES = st.integers(1, 4)


class Table:
    """orders(id, at) in a file of SQLite."""

    def __init__(self, folder: Path, type_: str, *, pages: int = 3, overlap_s: float = 0.0) -> None:
        self._file = folder / "shop.db"
        self._file.unlink(missing_ok=True)
        self.sql(f"create table orders(id integer, at {type_})")
        self.config = SourceConfig(f"sqlite:///{self._file}", "orders", "at", overlap_s, pages)

    def sql(self, statement: str, rows: Sequence[Row] = ()) -> None:
        connection = sqlite3.connect(self._file)
        connection.executemany(statement, rows) if rows else connection.execute(statement)
        connection.commit()
        connection.close()

    def add(self, rows: Sequence[Row]) -> None:
        if rows:
            self.sql("insert into orders values (?, ?)", rows)

    def changes(self, position: Position, limits: BatchLimits = UNLIMITED) -> SourceReading:
        return SqlSource(self.config).changes(json.loads(json.dumps(position)), limits=limits)

    def start(self) -> Position:
        reading = SqlSource(self.config).snapshot()
        rows_of(reading)
        return reading.position()


@given(kind=KINDS, pages=PAGES, limits=LIMITS, overlap=st.sampled_from([0.0, 3.0]), data=st.data())
def test_together_they_hand_over_what_one_reading_does(
    kind: tuple[str, list[Any]], pages: int, limits: BatchLimits, overlap: float, data: st.DataObject
) -> None:
    type_, values = kind
    cursors = st.lists(st.sampled_from(values), max_size=8)
    with temporary_table(type_, pages, overlap) as table:
        before = data.draw(cursors)
        table.add(list(enumerate(before)))
        start = table.start()
        table.add(list(enumerate(data.draw(cursors), 100)))
        whole = table.changes(start)
        assert Counter(bounded_rows(table, start, limits)) == Counter(rows_of(whole))


@given(pages=PAGES, limits=LIMITS, batches=st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=4))
def test_nothing_is_missed_that_comes_between_readings(
    pages: int, limits: BatchLimits, batches: list[list[int]]
) -> None:
    """Rows come with the value that the last reading ended at, or a greater one."""
    with temporary_table("integer", pages) as table:
        position, handed, highest = table.start(), Counter[Row](), 0
        for number, steps in enumerate(batches):
            table.add([(100 * number + place, highest + step) for place, step in enumerate(steps)])
            reading = table.changes(position, limits)
            handed.update(rows_of(reading))
            position = reading.position()
            highest = max([highest, *(at for _, at in handed)])
        handed.update(bounded_rows(table, position, limits))
        everything = Counter(rows_of(SqlSource(table.config).snapshot()))
        assert handed == everything


def test_a_reading_ends_about_where_the_limit_is_and_never_within_a_value(tmp_path: Path) -> None:
    table = Table(tmp_path, "integer", pages=2)
    start = table.start()
    table.add([(number, number // 4) for number in range(20)])
    sizes = []
    has_more = True
    while has_more:
        reading = table.changes(start, BatchLimits(rows=5))
        sizes.append(len(rows_of(reading)))
        start, has_more = reading.position(), reading.has_more()
    assert sizes == [8, 8, 4]


def test_a_crowd_that_cannot_be_remembered_is_passed_in_small_readings(tmp_path: Path) -> None:
    table = Table(tmp_path, "integer", pages=500)
    start = table.start()
    table.add([(number, 1) for number in range(MAX_REMEMBERED_HASHES + 100)])
    table.add([(number, number) for number in range(2, 8)])
    rows = bounded_rows(table, start, BatchLimits(rows=2))
    assert len(rows) == len(set(rows)) == MAX_REMEMBERED_HASHES + 106


def test_rows_without_a_place_in_the_order_are_not_handed_over_again(tmp_path: Path) -> None:
    """Those that are behind the end of a small reading are not looked at: what was known of them is carried on."""
    table = Table(tmp_path, "timestamp")
    table.add([(1, "garbage"), (2, None), (3, "2026-11-16 08:00:00")])
    start = table.start()
    table.add([(number, f"2026-11-16 08:00:0{number}") for number in range(4, 8)])
    table.add([(8, "more garbage")])
    assert sorted(row[0] for row in bounded_rows(table, start, BatchLimits(rows=1))) == [4, 5, 6, 7, 8]


@pytest.mark.parametrize("limits", [BatchLimits(rows=1), BatchLimits(bytes=1)])
def test_where_the_database_orders_otherwise_everything_is_read(tmp_path: Path, limits: BatchLimits) -> None:
    table = Table(tmp_path, "text collate nocase", pages=1)
    start = table.start()
    table.add([(second, f"2026-11-16{'Tt'[second % 2]}08:00:0{second}") for second in range(6)])
    assert sorted(row[0] for row in bounded_rows(table, start, limits)) == [0, 1, 2, 3, 4, 5]


def test_rows_after_upto_are_no_more_to_read(tmp_path: Path) -> None:
    table = Table(tmp_path, "timestamp")
    start = table.start()
    table.add([(number, f"2026-11-16 08:00:{number:02}") for number in range(6)])
    reading = SqlSource(table.config).changes(start, upto=utc("2026-11-16 08:00:02"), limits=BatchLimits(rows=3))
    assert [row[0] for row in rows_of(reading)] == [0, 1, 2]
    again = SqlSource(table.config).changes(
        reading.position(), upto=utc("2026-11-16 08:00:02"), limits=BatchLimits(rows=3)
    )
    assert (rows_of(again), again.has_more()) == ([], False)


def test_a_look_that_finds_nothing_does_not_ask_for_the_columns(tmp_path: Path) -> None:
    table = Table(tmp_path, "timestamp")
    table.add([(1, "2026-11-16 08:00:00")])
    start = table.start()
    with counted_statements() as statements:
        assert rows_of(table.changes(start, BatchLimits(rows=100))) == []
    assert len(statements) == 3  # where the limit lies, the rows, and those without a value
    assert all("orders" in statement and "pragma" not in statement.lower() for statement in statements)


def test_a_cursor_that_is_gone_is_named(tmp_path: Path) -> None:
    table = Table(tmp_path, "timestamp")
    table.add([(1, "2026-11-16 08:00:00")])
    start = table.start()
    table.sql("alter table orders rename column at to att")
    with pytest.raises(UnknownColumn, match=r"has no column `at`\. Did you mean `att`"):
        rows_of(table.changes(start))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@contextmanager
def temporary_table(type_: str, pages: int, overlap_s: float = 0.0) -> Iterator[Table]:
    with TemporaryDirectory() as folder:
        yield Table(Path(folder), type_, pages=pages, overlap_s=overlap_s)


@contextmanager
def counted_statements() -> Iterator[list[str]]:
    statements: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        statements.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)


def bounded_rows(table: Table, position: Position, limits: BatchLimits) -> list[Row]:
    rows: list[Row] = []
    for _ in range(60):
        reading = table.changes(position, limits)
        rows += rows_of(reading)
        position = reading.position()
        if not reading.has_more():
            return rows
    raise AssertionError(f"There is no end with {limits}.")


def rows_of(reading: SourceReading) -> list[Row]:
    return [row for batch in reading.batches for row in zip(batch.columns["id"], batch.columns["at"], strict=True)]
