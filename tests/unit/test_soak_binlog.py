"""The fault rounds for captured tables know what the server has changed, and what the lake keeps of a column that is gone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from lakehub.setup.artifacts import PROJECT_ROOT
from tests.soak.breaking import require_line
from tests.soak.capture.accounting.binlog import Change, parse
from tests.soak.capture.alterations import LostColumn
from tests.soak.capture.broken import BREAKS
from tests.soak.index.broken import BREAKS as BREAKS_OF_INDEX
from tests.soak.pipelines.broken import BREAKS as BREAKS_OF_PIPELINES

WIDTHS = {"riders": 2, "trips": 1}


def transaction(number: int, *lines: str, end: str = "COMMIT/*!*/;") -> list[str]:
    """As `mariadb-binlog -vv` writes it."""
    begin = f"#261127 15:47:51 server id 1  end_log_pos 1583 CRC32 0x0069f773 \tGTID 0-1-{number} trans"
    return [f"{line}\n" for line in (begin, "START TRANSACTION", *lines, "# Number of rows: 1", end) if line]


def image(kind: str, *values: str) -> list[str]:
    columns = enumerate(values, 1)
    return [f"### {kind}", *(f"###   @{n}={value} /* INT meta=0 nullable=0 is_null=0 */" for n, value in columns)]


def inserted(*values: str, table: str = "trips") -> list[str]:
    return [f"### INSERT INTO `shop`.`{table}`", *image("SET", *values)]


def updated(before: str, after: str) -> list[str]:
    return ["### UPDATE `shop`.`trips`", *image("WHERE", before, "'a'"), *image("SET", after, "'b'")]


def test_rows_of_one_event_are_told_apart() -> None:
    lines = transaction(7, *inserted("1"), *inserted("2"), *inserted("2"))
    assert parse(lines, WIDTHS) == {"trips": {Change(7, ("1",), False): 1, Change(7, ("2",), False): 2}}


def test_a_changed_key_is_a_delete_and_an_insert() -> None:
    changes = parse(transaction(8, *updated("1", "2"), *updated("3", "3")), WIDTHS)["trips"]
    assert set(changes) == {Change(8, ("1",), True), Change(8, ("2",), False), Change(8, ("3",), False)}


def test_a_delete_has_the_key_that_was() -> None:
    lines = transaction(9, "### DELETE FROM `shop`.`trips`", *image("WHERE", "5"))
    assert parse(lines, WIDTHS) == {"trips": {Change(9, ("5",), True): 1}}


def test_keys_of_several_columns_are_texts_and_numbers_without_a_sign() -> None:
    lines = transaction(7, *inserted("'DE'", "-1 (18446744073709551615)", "-3", table="riders"))
    assert parse(lines, WIDTHS) == {"riders": {Change(7, ("DE", "18446744073709551615"), False): 1}}


@pytest.mark.parametrize("end", ["ROLLBACK", ""])
def test_a_transaction_that_has_not_been_committed_never_was(end: str) -> None:
    lines = [*transaction(7, *inserted("1"), end=end), *transaction(8, *inserted("2"))]
    assert parse(lines, WIDTHS) == {"trips": {Change(8, ("2",), False): 1}}


def test_a_row_whose_text_is_none_is_put_aside_and_its_key_may_change_with_it() -> None:
    no_text = "'\xff'"
    lines = ["### UPDATE `shop`.`trips`", *image("WHERE", "1", "'a'"), *image("SET", "2", no_text)]
    assert set(parse(transaction(7, *lines), WIDTHS)["trips"]) == {
        Change(7, ("1",), is_deleted=True, is_put_aside=True),
        Change(7, ("2",), is_deleted=False, is_put_aside=True),
    }
    lines = ["### UPDATE `shop`.`trips`", *image("WHERE", "1", no_text), *image("SET", "1", "'a'")]
    assert set(parse(transaction(8, *lines), WIDTHS)["trips"]) == {Change(8, ("1",), is_deleted=False)}
    lines = ["### DELETE FROM `shop`.`trips`", *image("WHERE", "1", no_text)]
    assert set(parse(transaction(9, *lines), WIDTHS)["trips"]) == {Change(9, ("1",), is_deleted=True)}


def test_other_tables_are_left_out() -> None:
    assert parse(transaction(7, *inserted("1", table="others")), WIDTHS) == {}


def test_a_roll_back_to_a_savepoint_within_the_log_is_not_guessed() -> None:
    with pytest.raises(ValueError, match="transaction 7"):
        parse(transaction(7, *inserted("1"), "ROLLBACK TO `here`"), WIDTHS)


def test_a_key_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="`trips`: the key"):
        parse(transaction(7, "### INSERT INTO `shop`.`trips`", "### SET", "###   @2=1 /* INT */"), WIDTHS)


def test_a_lost_column_keeps_what_it_had_until_its_row_is_written() -> None:
    lost = LostColumn("trips", "added_1", 10, {("1",): 7, ("2",): 8})
    lost.note_written({"trips": Counter([Change(10, ("1",), False), Change(11, ("2",), False)])})
    may_be = {(key, value) for key in ("1", "2", "3") for value in (7, 8, None) if lost.may_be((key,), value)}
    assert may_be == {("1", 7), ("2", None), ("3", None)}


def test_a_row_that_was_loaded_meanwhile_may_have_either() -> None:
    lost = LostColumn("trips", "added_1", 10, {("1",): 7}, is_loaded=True)
    assert [lost.may_be(("1",), value) for value in (7, None, 8)] == [True, True, False]


def test_the_lines_that_are_to_be_broken_are_there() -> None:
    for each in (*BREAKS, *BREAKS_OF_INDEX, *BREAKS_OF_PIPELINES):
        require_line(PROJECT_ROOT / each.file, each)
    with pytest.raises(SystemExit, match=r"tap\.py has this line 0 times"):
        require_line(PROJECT_ROOT / BREAKS[0].file, replace(BREAKS[0], line="no line"))
