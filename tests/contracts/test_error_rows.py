"""An error table is read in pages, newest first, whatever its rows hold and whoever writes to it meanwhile."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import duckdb
import hudi
import pyarrow.parquet as pq
import pytest

from ingestion.lake import error_rows, raw_texts
from ingestion.lake.error_rows import (
    ErrorCursor,
    ErrorFilters,
    ErrorGroup,
    ErrorState,
    count_errors,
    read_error_keys,
    read_error_page,
    read_error_row,
)
from ingestion.lake.files import table_files
from ingestion.lake.files.table_files import MAX_AT_ONCE
from lakehub.kernel.errors import Busy, NotFound, Refused
from tests.error_tables import add_rows, at, error_row, error_table, key_of, resolve
from tests.factories import NOW

ALL = ErrorFilters()
REASONS = {
    '`amount` is "a, which is no b" (str), which is no decimal(12,2)': "not a valid decimal(12,2)",
    "`day` is '2026-13-01', which is no day": "not a valid day",
    "`day` is 'a/b': a partition's name is not empty, has no slash, colon or NUL, and at most 251 bytes": "not a valid partition name",
    "`id` is null, but it is a key": "null in a key",
    'null instead: `n` is "x" (str), which is no int; `m` is 7, which is no date': "null instead",
    "`x` is no column of the source's schema": "not a column of the source's schema",
    "the lake cannot hold the name `a-b`, so `a-b` is no column of the source's schema": "not a column of the source's schema",
    "4 fields, but the header has 3": "N fields, but the header has N",
    "the texts of the row take 70,000,000 bytes; 67,108,864 are the most": "the texts of the row take N bytes; N are the most",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "_errors" / "orders"


def numbers(page: error_rows.ErrorPage) -> list[int]:
    """Which rows they are, by their seconds before NOW."""
    return [int((at(0) - row.read_at).total_seconds()) for row in page.rows]


def test_where_there_is_no_table_there_are_no_rows(folder: Path) -> None:
    for uri in (folder.as_uri(), error_table(folder, [])):
        assert read_error_page(uri, ALL) == error_rows.ErrorPage()
        assert count_errors(uri) == error_rows.ErrorCounts()
        with pytest.raises(NotFound, match="has no row `nothing`"):
            read_error_row(uri, "nothing")


def test_a_lake_that_is_no_folder_is_said_to_be_none() -> None:
    with pytest.raises(Refused, match=r"s3a://lake/_errors/orders is in no lake on files.*Read it with Spark"):
        count_errors("s3a://lake/_errors/orders")


def test_a_table_without_a_commit_has_no_rows(folder: Path) -> None:
    uri = error_table(folder, [error_row(1)])
    for file in (folder / ".hoodie").glob("2026*"):
        file.unlink()
    assert read_error_page(uri, ALL).rows == ()
    assert count_errors(uri).rows == 0


def test_pages_hold_each_row_once_newest_first(folder: Path) -> None:
    uri = error_table(folder, [error_row(number) for number in (3, 1, 4)])
    add_rows(folder, [error_row(number) for number in (0, 5, 2)])
    pages, after = [], None
    while after is None or pages[-1].next_cursor:
        pages.append(read_error_page(uri, ALL, after=after, limit=2))
        after = ErrorCursor.parse(pages[-1].next_cursor or "0-end")
    assert [numbers(page) for page in pages] == [[0, 1], [2, 3], [4, 5]]


def test_rows_of_one_instant_are_told_apart_by_their_keys(folder: Path) -> None:
    uri = error_table(folder, [error_row(number, read_at=at(7)) for number in range(5)])
    first = read_error_page(uri, ALL, limit=3)
    rest = read_error_page(uri, ALL, after=ErrorCursor.parse(first.next_cursor), limit=3)
    keys = [row.error_key for page in (first, rest) for row in page.rows]
    assert keys == sorted(map(key_of, range(5)), reverse=True)


def test_rows_that_come_between_two_pages_move_nothing(folder: Path) -> None:
    uri = error_table(folder, [error_row(number) for number in range(2, 6)])
    first = read_error_page(uri, ALL, limit=2)
    add_rows(folder, [error_row(0), error_row(1)])
    rest = read_error_page(uri, ALL, after=ErrorCursor.parse(first.next_cursor), limit=9)
    assert numbers(rest) == [4, 5]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (ErrorFilters(column="id"), [1]),
        (ErrorFilters(column="ID"), []),
        (ErrorFilters(reason="IS NULL"), [1]),
        (ErrorFilters(reason="%"), []),
        (ErrorFilters(run="r2"), [2]),
        (ErrorFilters(column="amount", reason="DECIMAL", run="r1"), [0]),
        (ErrorFilters(column="' OR 1=1 --"), []),
    ],
)
def test_rows_are_chosen_by_column_reason_and_run(folder: Path, filters: ErrorFilters, expected: list[int]) -> None:
    null_key = error_row(1, column="id", reason="`id` is null, but it is a key", run="r1")
    uri = error_table(folder, [error_row(0, run="r1"), null_key, error_row(2, run="r2")])
    assert numbers(read_error_page(uri, filters)) == expected
    assert count_errors(uri, filters).rows == len(expected)


def test_counts_are_by_column_and_kind_of_reason(folder: Path) -> None:
    rows = [error_row(number) for number in range(3)]
    uri = error_table(folder, [*rows, error_row(9, column="", reason="not JSON: expected a value at 7")])
    counts = count_errors(uri)
    assert counts.groups == (
        ErrorGroup("amount", "not a valid decimal(12,2)", 3, at(0)),
        ErrorGroup("", "not JSON: expected a value at N", 1, at(9)),
    )
    assert (counts.rows, counts.group_count) == (4, 2)


@pytest.mark.parametrize(("reason", "kind"), REASONS.items())
def test_a_kind_of_reason_is_the_reason_without_the_value(folder: Path, reason: str, kind: str) -> None:
    (group,) = count_errors(error_table(folder, [error_row(1, reason=reason)])).groups
    assert group.kind == kind


def test_the_largest_groups_are_named_and_all_are_counted(folder: Path) -> None:
    rows = [error_row(number, column=f"c{number % 60}") for number in range(130)]
    counts = count_errors(error_table(folder, rows))
    assert [group.rows for group in counts.groups[:11]] == [3] * 10 + [2]
    assert (len(counts.groups), counts.group_count, counts.rows) == (50, 60, 130)


@pytest.mark.parametrize(
    "raw", ["", "a\0b", "\x1b[31mred", "<script>alert(1)</script>", "\u202eevil", '{"a": "\U0001f600"}', "x\n" * 3]
)
def test_odd_texts_are_given_as_they_are(folder: Path, raw: str) -> None:
    uri = error_table(folder, [error_row(1, raw=raw, reason=raw, column=raw)])
    (row,) = read_error_page(uri, ALL).rows
    assert (row.raw, row.raw_length, row.reason, row.column) == (raw, len(raw), raw, raw)
    assert numbers(read_error_page(uri, ErrorFilters(column=raw))) == [1]


def test_nulls_are_empty_texts(folder: Path) -> None:
    uri = error_table(folder, [error_row(1, raw=None, reason=None, column=None, source=None)])
    (row,) = read_error_page(uri, ALL).rows
    assert (row.raw, row.reason, row.column, row.source, row.run) == ("", "", "", "", "")
    assert count_errors(uri).groups[0].kind == ""


def test_a_long_row_is_cut_in_a_list_and_whole_by_itself(folder: Path) -> None:
    uri = error_table(folder, [error_row(1, raw="é" * 1_000_000), error_row(2)])
    row, short = read_error_page(uri, ALL).rows
    assert (len(row.raw), row.raw_length, row.is_cut, short.is_cut) == (2_000, 1_000_000, True, False)
    assert len(read_error_row(uri, key_of(1)).raw) == 1_000_000


def test_a_row_without_end_is_cut_even_by_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_rows, "MAX_RAW", 100)
    row = read_error_row(error_table(folder, [error_row(1, raw="x" * 101)]), key_of(1))
    assert (len(row.raw), row.raw_length, row.is_cut) == (100, 101, True)


def test_many_rows_of_a_megabyte_fit_the_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB reads 2,048 rows at a time: with the raw texts these are more than it may take."""
    rows = [error_row(number, raw=f"{number} " * 200_000) for number in range(700)]
    uri = error_table(folder, rows)
    file = next(folder.glob("*.parquet"))
    with pytest.raises(duckdb.OutOfMemoryException):
        table_files.query_files("SELECT left(raw, 9) FROM read_parquet($files) ORDER BY read_at", [str(file)], {})
    page = read_error_page(uri, ALL, limit=50)
    assert [row.raw[:3] for row in page.rows[10:12]] == ["10 ", "11 "]


def test_fewer_long_rows_are_read_at_a_time(folder: Path) -> None:
    error_table(folder, [error_row(number, raw=f"{number} " * 2**20) for number in range(10)])
    with pq.ParquetFile(next(folder.glob("*.parquet"))) as parquet:
        assert raw_texts._rows_at_a_time(parquet, 0, "raw") == 15
        assert raw_texts._rows_at_a_time(parquet, 0, "column") == 64


def test_each_row_has_its_own_raw_text_among_many(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_texts, "_BATCH_ROWS", 3)
    uri = error_table(folder, [error_row(number, raw=f"raw {number}") for number in range(50)])
    add_rows(folder, [error_row(number, raw=f"raw {number}") for number in range(50, 60)])
    rows = read_error_page(uri, ALL, limit=60).rows
    assert [row.raw for row in rows] == [f"raw {number}" for number in range(60)]


def test_at_most_200_rows_are_given(folder: Path) -> None:
    uri = error_table(folder, [error_row(number) for number in range(202)])
    assert len(read_error_page(uri, ALL, limit=10**9).rows) == 200
    assert len(read_error_page(uri, ALL, limit=-1).rows) == 1


@pytest.mark.parametrize("text", ["x", "-", "1-", "-1-a", "1", "٣-a", f"{'9' * 17}-a"])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="This is not a cursor"):
        ErrorCursor.parse(text)


# Beside a writer


def failing(times: int, problem: Exception, then: Callable[..., Any]) -> Callable[..., Any]:
    left = [problem] * times

    def call(*args: Any) -> Any:
        if left:
            raise left.pop()
        return then(*args)

    return call


def test_a_file_that_was_cleaned_away_between_listing_and_reading_is_looked_for_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = error_table(folder, [error_row(1)])
    listed = table_files._list_files
    answers = [[str(folder / "gone.parquet")], [str(folder / "gone.parquet")]]
    monkeypatch.setattr(table_files, "_list_files", lambda uri: answers.pop() if answers else listed(uri))
    assert numbers(read_error_page(uri, ALL)) == [1]


def test_a_properties_file_that_is_being_written_is_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = error_table(folder, [error_row(1)])
    core_error, usual = type("HudiCoreError", (Exception,), {})("Config 'hoodie.table.name' not found"), hudi.HudiTable
    monkeypatch.setattr(hudi, "HudiTable", failing(2, core_error, usual))
    assert numbers(read_error_page(uri, ALL)) == [1]
    monkeypatch.setattr(hudi, "HudiTable", failing(3, core_error, usual))
    with pytest.raises(Refused, match=r"cannot be read: Config 'hoodie.table.name' not found"):
        read_error_page(uri, ALL)


def test_a_damaged_file_is_named(folder: Path) -> None:
    uri = error_table(folder, [error_row(1)])
    file = next(folder.glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(Refused, match=file.name):
        count_errors(uri)


def test_a_table_that_goes_while_it_is_read_has_no_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = error_table(folder, [error_row(1)])
    run = table_files.query_files

    def drop_first(*args: Any) -> Any:
        shutil.rmtree(folder, ignore_errors=True)
        return run(*args)

    monkeypatch.setattr(error_rows, "query_files", drop_first)
    assert read_error_page(uri, ALL).rows == ()


def test_a_query_that_takes_too_long_is_stopped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = error_table(folder, [error_row(1)])
    monkeypatch.setattr(table_files, "TIMEOUT", at(0) - at(1))
    monkeypatch.setattr(error_rows, "_TABLE", f"{error_rows._TABLE}, range(1000000000000)")
    with pytest.raises(Refused, match=r"took longer than 1 s and was stopped\. Narrow it by column or run"):
        count_errors(uri)


def test_whoever_comes_while_others_read_is_told_to_come_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = error_table(folder, [error_row(1)])
    monkeypatch.setattr(table_files, "_TURN_S", 0.01)
    for _ in range(table_files.MAX_AT_ONCE):
        table_files._turns.acquire()
    try:
        with pytest.raises(Busy):
            count_errors(uri)
    finally:
        table_files._turns.release(table_files.MAX_AT_ONCE)
    assert count_errors(uri).rows == 1


def test_many_readers_at_once_read_the_same(folder: Path) -> None:
    uri = error_table(folder, [error_row(number) for number in range(20)])
    pages: list[list[int]] = []
    most = MAX_AT_ONCE + 1  # and one that waits
    readers = [Thread(target=lambda: pages.append(numbers(read_error_page(uri, ALL)))) for _ in range(most)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert pages == [list(range(20))] * most


def test_what_was_appended_last_holds(tmp_path: Path) -> None:
    """A row that was rejected again has the new reason, and one that was resolved is no longer among the open ones."""
    uri = error_table(tmp_path / "t", [error_row(number) for number in range(3)])
    add_rows(tmp_path / "t", [error_row(0, reason="other", raw="newer"), error_row(1)])
    resolve(tmp_path / "t", error_row(1), by="olga", fixed="{}")
    rows = read_error_page(uri, ErrorFilters()).rows
    assert [(row.error_key, row.reason == "other", row.raw == "newer") for row in rows] == [
        (key_of(0), True, True),
        (key_of(2), False, False),
    ]
    (resolved,) = read_error_page(uri, ErrorFilters(state=ErrorState.RESOLVED)).rows
    assert (resolved.error_key, resolved.resolved_by, resolved.resolved_at) == (key_of(1), "olga", NOW)
    assert len(read_error_page(uri, ErrorFilters(state=ErrorState.ALL)).rows) == 3
    assert (count_errors(uri).rows, read_error_row(uri, key_of(0)).raw) == (2, "newer")
    assert read_error_keys(uri, ErrorFilters(keys=(key_of(0), key_of(1), key_of(9))), limit=9) == [key_of(0)]
