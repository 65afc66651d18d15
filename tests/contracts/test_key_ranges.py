"""A snapshot in ranges of the key: every row once, no key in two ranges, and what changes meanwhile is found by the look that follows."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import date, time, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.batch_limits import BatchLimits
from ingestion.domain.checkpoint import Position
from ingestion.sources import SourceConfig, SourceReading
from ingestion.sources.sql.key_ranges import KeyRanges
from ingestion.sources.sql.source import SqlSource
from ingestion.sources.sql.table import SqlTable
from ingestion.sources.sql.watermark import decode_value, encode_value
from tests.contracts.test_bounded_sql import utc

Row = tuple[Any, Any, Any]
NUMBERS = st.one_of(st.none(), st.integers(-2, 5))
TEXTS = st.sampled_from([None, "", "a", "A", "b", "é", "e", "Z"])
ROWS = st.lists(st.tuples(NUMBERS, TEXTS, st.integers(0, 9)), max_size=14)


class Table:
    """orders(id, part, at): the key is (id, part)."""

    def __init__(self, folder: Path, id_type: str = "integer", part_type: str = "text", cursor: str | None = "at"):
        self._file = folder / "shop.db"
        self.sql(f"create table orders(id {id_type}, part {part_type}, at integer)")
        self.config = SourceConfig(
            f"sqlite:///{self._file}", "orders", cursor, chunk_rows=3, key_columns=("id", "part")
        )

    def sql(self, statement: str, rows: Sequence[Any] = ()) -> None:
        connection = sqlite3.connect(self._file)
        connection.executemany(statement, rows) if rows else connection.execute(statement)
        connection.commit()
        connection.close()

    def add(self, rows: Sequence[Row]) -> None:
        if rows:
            self.sql("insert into orders values (?, ?, ?)", rows)

    @property
    def source(self) -> SqlSource:
        return SqlSource(self.config)

    def range(self, after: Position | None, rows: int) -> SourceReading:
        return self.source.snapshot(after=json.loads(json.dumps(after)), limits=BatchLimits(rows=rows))

    def ranges(self, rows: int) -> Iterator[tuple[list[Row], Position]]:
        """Each in a source of its own, as if each were read by another process."""
        after = None
        for _ in range(40):
            reading = self.range(after, rows)
            yield rows_of(reading), reading.position()
            after = reading.position()
            if not reading.has_more():
                return
        raise AssertionError(f"There is no end of ranges of {rows} rows.")

    def __iter__(self) -> Iterator[Row]:
        return iter(rows_of(self.source.snapshot()))


@given(rows=ROWS, size=st.integers(1, 6), part=st.sampled_from(["text", "text collate nocase"]))
def test_every_row_comes_once_and_no_key_is_in_two_ranges(rows: list[Row], size: int, part: str) -> None:
    with temporary_table(part_type=part) as table:
        table.add(rows)
        ranges = [read for read, _ in table.ranges(size)]
        assert Counter(row for read in ranges for row in read) == Counter(rows)
        keys = [{row[:2] for row in read} for read in ranges]
        assert sum(map(len, keys)) == len(set[Any]().union(*keys))


@given(rows=ROWS, size=st.integers(1, 4), changes=st.lists(st.tuples(st.integers(-2, 5), TEXTS), max_size=8))
def test_what_changes_meanwhile_is_found_by_the_look_that_follows(
    rows: list[Row], size: int, changes: list[tuple[Any, Any]]
) -> None:
    """The ranges and then the changes, last write wins by key: that is the table. Rows come before and behind where the snapshot is."""
    whole = {row[:2]: row for row in rows if None not in row[:2]}
    with temporary_table() as table:
        table.add(list(whole.values()))
        copied: dict[Any, Row] = {}
        last: Position = {}
        for number, (read, position) in enumerate(table.ranges(size)):
            copied |= {row[:2]: row for row in read}
            last = position
            for key in changes[number : number + 1]:
                table.sql("delete from orders where id = ? and part is ?", [key])
                table.add([(*key, 100 + number)])
        copied |= {row[:2]: row for row in rows_of(table.source.changes(last))}
        assert Counter(copied.values()) == Counter(table)


def test_rows_without_a_whole_key_come_with_the_first_range_only(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.add([(1, "x", 1), (2, "x", 1), (3, "x", 1), (3, None, 1), (None, "x", 1)])
    ranges = [sorted(read, key=str) for read, _ in table.ranges(1)]
    assert ranges == [[(1, "x", 1), (3, None, 1), (None, "x", 1)], [(2, "x", 1)], [(3, "x", 1)]]


def test_a_range_is_about_as_large_as_it_may_be_and_only_the_first_counts(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.add([(number, "x", 1) for number in range(10)])
    assert [len(read) for read, _ in table.ranges(4)] == [4, 4, 2]
    assert [len(read) for read, _ in table.ranges(5)] == [5, 5]
    first = table.range(None, 4)
    assert (first.total(), len(rows_of(first))) == (10, 4)
    assert table.range(first.position(), 4).total() is None


class PacedClock:
    """Shows as many seconds as rows were handed over, at so many a second."""

    def __init__(self, rows_per_s: float) -> None:
        self.rows_per_s, self.now = rows_per_s, 0.0

    def __call__(self) -> float:
        return self.now

    def wait_for(self, reading: SourceReading) -> int:
        """How many rows came."""
        rows = 0
        for batch in reading.batches:
            rows += batch.rows
            self.now += batch.rows / self.rows_per_s
        return rows


def test_a_range_ends_when_its_time_is_over(tmp_path: Path) -> None:
    """However many rows it may have: a job that is paced would take longer than its deadline, each time anew."""
    table, clock = Table(tmp_path), PacedClock(rows_per_s=10)
    table.add([(number, "x", 1) for number in range(1000)])
    sizes, after, has_more = [], None, True
    while has_more:
        source = SqlSource(table.config, clock)
        reading = source.snapshot(after=after, limits=BatchLimits(rows=5_000_000, seconds=20))
        sizes.append(clock.wait_for(reading))
        after, has_more = reading.position(), reading.has_more()
    assert sum(sizes) == 1000
    assert all(200 <= size <= 210 for size in sizes[:-1])


def test_a_range_ends_when_it_is_large_enough(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.add([(number, "x" * 5000, 1) for number in range(60)])
    readings, after, has_more = [], None, True
    while has_more:
        reading = table.source.snapshot(after=after, limits=BatchLimits(rows=5_000_000, bytes=100_000))
        readings.append(rows_of(reading))
        after, has_more = reading.position(), reading.has_more()
    assert sorted(row for rows in readings for row in rows) == sorted(table)
    assert all(18 <= len(rows) <= 25 for rows in readings[:-1])


def test_a_range_of_many_rows_is_read_in_few_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As each costs the database a look for its last key."""
    table, looks, look = Table(tmp_path), [], SqlTable.few_rows
    table.add([(number, "x", 1) for number in range(1000)])
    monkeypatch.setattr(SqlTable, "few_rows", lambda *given_: looks.append(given_) or look(*given_))
    source = SqlSource(table.config, lambda: 0.0)
    assert len(rows_of(source.snapshot(limits=BatchLimits(rows=5_000_000, bytes=2**40, seconds=900)))) == 1000
    assert len(looks) == 9  # 3, 6, 12 rows, and so on


def test_a_later_range_is_found_by_its_place_in_the_index(tmp_path: Path) -> None:
    """Without a bound of the first column each range begins at the beginning of the index, or asks it three times."""
    table = Table(tmp_path)
    table.add([(number, "x", 1) for number in range(100)])
    table.sql("create unique index by_key on orders(id, part)")
    first = table.range(None, 10)
    rows_of(first)
    plans: list[str] = []

    def explain(_: Any, cursor: Any, statement: str, parameters: Any, *rest: Any) -> None:
        if " OR " in statement:
            plan = cursor.connection.execute(f"explain query plan {statement}", parameters).fetchall()
            plans.extend(line[-1] for line in plan if "orders" in line[-1])

    sa.event.listen(sa.Engine, "before_cursor_execute", explain)
    try:
        assert len(rows_of(table.range(first.position(), 10))) == 10
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", explain)
    assert plans, "ranges have conditions"
    assert all("USING" in plan and "by_key (id>?" in plan for plan in plans), plans


def test_rows_that_the_database_takes_for_equal_end_no_step(tmp_path: Path) -> None:
    table = Table(tmp_path, part_type="text collate nocase")
    table.add([(1, letter, 1) for letter in "aAaAaA"] + [(2, "b", 1)])
    clock = PacedClock(rows_per_s=1)
    first = SqlSource(table.config, clock).snapshot(limits=BatchLimits(seconds=2))
    assert (clock.wait_for(first), first.has_more()) == (6, True)
    assert [row[0] for row in rows_of(table.range(first.position(), 100))] == [2]


def test_a_table_that_takes_long_to_count_is_loaded_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(tmp_path)
    endless = "with recursive n(id) as (select 1 union all select id + 1 from n) select id, 'x' part, 1 at from n"
    table.sql("drop table orders")
    table.sql(f"create view orders as {endless}")
    monkeypatch.setattr("ingestion.sources.sql.table._COUNT_LIMIT", timedelta(seconds=0.1))
    with closing(table.source.snapshot()) as reading:
        assert reading.total() is None
        assert next(reading.batches).rows == 3


def test_a_table_without_a_cursor_is_known_by_the_sum_over_all_ranges(tmp_path: Path) -> None:
    table = Table(tmp_path, cursor=None)
    table.add([(number, "x", 1) for number in range(7)])
    *_, (_, position) = table.ranges(2)
    look = table.source.changes(position)
    assert len(rows_of(look)) == 7
    assert look.unchanged()


@pytest.mark.parametrize(
    ("id_type", "values"), [("real", [1.0, 2.0, 3.0]), ("integer", [1, "x", 2]), ("", [1, "1", 2])]
)
def test_a_key_whose_values_may_be_one_in_the_lake_is_read_in_one_piece(
    tmp_path: Path, id_type: str, values: list[Any]
) -> None:
    table = Table(tmp_path, id_type)
    table.add([(value, "x", 1) for value in values])
    assert [len(read) for read, _ in table.ranges(1)] == [3]


def test_a_source_that_is_not_told_the_key_reads_in_one_piece(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.add([(number, "x", 1) for number in range(5)])
    source = SqlSource(SourceConfig(table.config.url, "orders", "at"))
    reading = source.snapshot(limits=BatchLimits(rows=2))
    assert (len(rows_of(reading)), reading.has_more()) == (5, False)


def test_cursors_that_are_of_no_use_are_counted_over_all_ranges(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.add([(1, "x", 5), (2, "x", float("inf")), (3, "x", 7)])
    assert [len(read) for read, _ in table.ranges(1)] == [3]  # the greatest cursor is no watermark
    table.sql("update orders set at = -1e400 where id = 2")
    table.sql("drop table orders")
    table.sql("create table orders(id integer, part text, at timestamp)")
    table.add([(1, "x", "2026-11-16 08:00:00"), (2, "x", "0 o'clock"), (3, "x", "1 o'clock")])
    readings, after = [], None
    for _ in range(3):
        readings.append(table.range(after, 1))
        rows_of(readings[-1])
        after = readings[-1].position()
    assert [reading.unusable_cursors().rows for reading in readings] == [0, 1, 2]
    assert readings[-1].unusable_cursors().sample == ("0 o'clock", "1 o'clock")


def test_rows_after_upto_are_left_to_the_changes(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.sql("drop table orders")
    table.sql("create table orders(id integer, part text, at timestamp)")
    table.add([(number, "x", f"2026-11-16 08:00:0{number}") for number in range(4)])
    reading = table.source.snapshot(upto=utc("2026-11-16 08:00:01"), limits=BatchLimits(rows=1))
    assert len(rows_of(reading)) == 2
    assert [row[0] for row in rows_of(table.source.changes(reading.position()))] == [2, 3]


@contextmanager
def temporary_table(part_type: str = "text") -> Iterator[Table]:
    with TemporaryDirectory() as folder:
        yield Table(Path(folder), part_type=part_type)


def rows_of(reading: SourceReading) -> list[Row]:
    columns = ("id", "part", "at")
    return [row for batch in reading.batches for row in zip(*(batch.columns[name] for name in columns), strict=True)]


@pytest.mark.parametrize("key", [UUID("7a0e6a4e-9f0b-4d0e-8a55-3d2f2c1b0a99"), time(23, 59, 1, 5)])
def test_keys_that_the_lake_holds_as_text_are_where_the_next_range_begins(key: object) -> None:
    """PostgreSQL's driver hands over UUIDs and times of day as such."""
    assert decode_value(json.loads(json.dumps(encode_value(key)))) == key


def test_a_key_that_no_position_holds_is_read_in_one_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As MySQL's TIME, of which the driver makes a length of time."""
    table = Table(tmp_path)
    table.add([(number, "a", number) for number in range(6)])
    monkeypatch.setattr(SqlTable, "few_rows", lambda *_: [(1, timedelta(hours=30)), (2, timedelta(hours=31))])
    ranges = list(table.ranges(2))
    assert [len(rows) for rows, _ in ranges] == [6]


@pytest.mark.parametrize(
    ("key", "ends_a_step"),
    [
        ((date(2026, 11, 16), "a"), True),
        (("infinity", "a"), False),
        (("0044-03-15 BC", "a"), False),
        (("infinity", time(8)), False),
        ((date(2026, 11, 16), time(8)), True),
        ((date(2026, 11, 16), timedelta(hours=30)), False),
    ],
)
def test_a_step_ends_only_where_the_database_can_be_asked_what_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: tuple[object, object], ends_a_step: bool
) -> None:
    """PostgreSQL has dates that Python does not have, which its driver hands over as texts. It compares no date with a text."""
    table = SqlTable(Table(tmp_path, id_type="date").config)
    table.is_file = False
    monkeypatch.setattr(SqlTable, "few_rows", lambda *_: [key, key])
    assert KeyRanges(table, ("id", "part"), None, 2).end_of_step(None, 2) == (key if ends_a_step else None)


def test_dates_of_sqlite_are_texts_and_read_in_ranges(tmp_path: Path) -> None:
    table = Table(tmp_path, id_type="date")
    table.add([(f"2026-11-1{number}", "x", 1) for number in range(3)])
    assert [len(rows) for rows, _ in table.ranges(1)] == [1, 1, 1]
