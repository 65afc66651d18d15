"""What an ALTER TABLE says of columns, and what is known of those with another name."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from ingestion.capture.binlog.column_changes import Alteration, ColumnChange, alteration
from ingestion.capture.binlog.events import Statement
from ingestion.capture.tap.hidden_columns import HiddenColumns
from ingestion.capture.tap.rename_notes import RenameNotes
from ingestion.domain.schema import Schema
from tests.unit.ingestion.capture.tapping import SPECS, Server, Tapping, transaction


def changes(sql: str) -> list[tuple[str, str]]:
    altered = alteration(Statement("shop", sql))
    assert altered is not None
    return [(change.old, change.new) for change in altered.changes]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE t RENAME COLUMN a TO b", [("a", "b")]),
        ("alter online table if exists shop.t rename column if exists a to b", [("a", "b")]),
        ("ALTER TABLE t NOWAIT CHANGE a b int", [("a", "b")]),
        ("ALTER TABLE t WAIT 5 CHANGE COLUMN IF EXISTS `a b` `c``d` varchar(9) DEFAULT 'x, RENAME COLUMN p TO q' AFTER z", [("a b", "c`d")]),
        ("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a", [("a", "b"), ("b", "a")]),
        ("ALTER TABLE t CHANGE a a decimal(8,2), RENAME COLUMN größe TO `x,y`", [("größe", "x,y")]),
        ("ALTER TABLE t /* RENAME COLUMN a TO b */ ADD c int -- , RENAME COLUMN a TO b\n, DROP d", [("", "c"), ("d", "")]),
        ("ALTER TABLE t ADD COLUMN (c enum('a','(b') , d decimal(8,2)), DROP COLUMN IF EXISTS e", [("", "c"), ("", "d"), ("e", "")]),
        ("ALTER TABLE t ADD IF NOT EXISTS c int, MODIFY d int, ALTER e SET DEFAULT (1, 2)", [("", "c")]),
        ("ALTER TABLE t ADD INDEX i (a), DROP PRIMARY KEY, DROP FOREIGN KEY f, ADD CONSTRAINT c CHECK (a > 0), RENAME INDEX i TO j", []),
        ("ALTER TABLE t RENAME KEY i TO j, DROP PARTITION p, ADD PARTITION (PARTITION p VALUES LESS THAN (1))", []),
        ("ALTER TABLE t ADD period int, CHANGE system p int, DROP PERIOD", [("", "period"), ("system", "p"), ("PERIOD", "")]),
        ("ALTER TABLE t ADD PERIOD FOR SYSTEM_TIME (a, b), ADD SYSTEM VERSIONING, DROP SYSTEM VERSIONING, ALTER KEY k IGNORED", []),
        ("ALTER TABLE t DROP PERIOD IF EXISTS FOR p, ADD PERIOD IF NOT EXISTS FOR q(a, b), ADD VECTOR INDEX v (e)", []),
        ("ALTER TABLE t ADD (c int, KEY (c), CONSTRAINT x CHECK (c > 0), period int)", [("", "c"), ("", "period")]),
        ("SET STATEMENT lock_wait_timeout=1 FOR ALTER TABLE t RENAME COLUMN `select` TO `from`", [("select", "from")]),
        ("ALTER TABLE t /*M!100500 RENAME COLUMN a TO b */", [("a", "b")]),
        ("ALTER TABLE t CHANGE " + "a" * 64 + " " + "b" * 64 + " int", [("a" * 64, "b" * 64)]),
        ("ALTER TABLE t ENGINE=InnoDB", []),
    ],
)  # fmt: skip
def test_columns_are_renamed_added_and_dropped(sql: str, expected: list[tuple[str, str]]) -> None:
    assert changes(sql) == expected


def test_other_statements_alter_no_table() -> None:
    for sql in ("RENAME TABLE a TO b", "CREATE INDEX t ON a (b)", "ALTER DATABASE d CHARACTER SET utf8mb4", ""):
        assert alteration(Statement("shop", sql)) is None
    assert alteration(Statement("shop", "ALTER TABLE `o``d`.`t.u` RENAME COLUMN a TO b")) == Alteration(
        "o`d", "t.u", (ColumnChange("a", "b"),)
    )


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE t ADD last varchar(4) AS (right(phone, 4)) STORED COMMENT 'n', ADD n int", {"last": {"right", "phone"}}),
        ("alter table t add column if not exists (a int, `l a` text generated always as (`PHONE`) virtual)", {"l a": {"PHONE"}}),
        ("ALTER TABLE t CHANGE COLUMN a b varchar(9) DEFAULT left(phone, 2) AFTER email, MODIFY c int DEFAULT (d)", {"b": {"phone"}, "c": {"d"}}),
        ("ALTER TABLE t ALTER COLUMN a SET DEFAULT (concat(`e``m`, 'phone'))", {"a": {"concat", "e`m"}}),
        ("ALTER TABLE t ADD n int DEFAULT 0 CHECK (n > phone) AFTER phone, ADD INDEX (phone), MODIFY m decimal(8,2)", {}),
        ("ALTER TABLE t MODIFY IF EXISTS period int AS (phone), ADD system int DEFAULT (`KEY`)", {"period": {"phone"}, "system": {"KEY"}}),
        ("CREATE OR REPLACE TABLE t (id int PRIMARY KEY, a int AS (b + (c)) , KEY (a), b int, c int) ENGINE=InnoDB", {"a": {"b", "c"}}),
        ("CREATE TABLE t /*! (id int, a int AS (b)) */", {"a": {"b"}}),
        ("CREATE TABLE t SELECT 1 AS a", {}),
    ],
)  # fmt: skip
def test_columns_that_the_server_makes_of_others(sql: str, expected: dict[str, set[str]]) -> None:
    altered = alteration(Statement("shop", sql))
    assert altered is not None
    assert {name: {each for each in names if each[0].isalpha()} for name, names in altered.computed.items()} == expected


@pytest.mark.parametrize("sql", ["CREATE TABLE t LIKE u", "create or replace table if not exists t (like u)"])
def test_a_table_that_is_made_like_another_says_no_columns(sql: str) -> None:
    altered = alteration(Statement("shop", sql))
    assert altered is not None
    assert altered.is_like


STORED = Schema.of({"id": "int", "a": "string", "b": "int", "Gone": "string"})


def notes(*statements: str) -> RenameNotes:
    noted = RenameNotes()
    for sequence, sql in enumerate(statements, 1):
        altered = alteration(Statement("shop", sql))
        assert altered is not None
        noted = noted.noted(sequence, altered.changes)
    return noted


@pytest.mark.parametrize(
    ("statements", "columns", "seen"),
    [
        (["ALTER TABLE t RENAME COLUMN A TO name"], {"name": "string"}, {"name": "a"}),
        (["ALTER TABLE t RENAME COLUMN a TO x", "ALTER TABLE t RENAME COLUMN `X` TO y"], {"y": "string"}, {"y": "a"}),
        (["ALTER TABLE t RENAME COLUMN a TO x", "ALTER TABLE t RENAME COLUMN x TO a"], {"a": "string"}, {}),
        (["ALTER TABLE t RENAME COLUMN a TO gone"], {"Gone": "string"}, {"Gone": "a"}),
        (["ALTER TABLE t CHANGE b n bigint"], {"n": "long"}, {"n": "b"}),
        (["ALTER TABLE t CHANGE b n varchar(9)"], {"n": "string"}, {}),
        (["ALTER TABLE t CHANGE a n int"], {"n": "int"}, {}),
        (["ALTER TABLE t RENAME COLUMN a TO x", "ALTER TABLE t DROP x", "ALTER TABLE t ADD x int"], {"x": "string"}, {}),
        (["ALTER TABLE t RENAME COLUMN a TO x, ADD a int"], {"x": "string", "a": "string"}, {"x": "a"}),
        (["ALTER TABLE t DROP gone, RENAME COLUMN a TO gone"], {"Gone": "string"}, {"Gone": "a"}),
        (["ALTER TABLE t RENAME COLUMN other TO x"], {"x": "string"}, {}),
        (["ALTER TABLE t RENAME COLUMN a TO x"], {"y": "string"}, {}),
        (["ALTER TABLE t RENAME COLUMN a TO gone, RENAME COLUMN gone TO a"], {"a": "string", "Gone": "string"}, {"Gone": "a", "a": "Gone"}),
    ],
)  # fmt: skip
def test_a_column_is_the_one_that_it_was_before_all_statements(
    statements: list[str], columns: dict[str, str], seen: dict[str, str]
) -> None:
    assert notes(*statements).seen(STORED, Schema.of({"id": "int", **columns})) == seen


def test_a_statement_counts_once_and_what_was_seen_is_kept_with_its_transaction() -> None:
    first = notes("ALTER TABLE t RENAME COLUMN a TO x")
    assert first.noted(1, [ColumnChange("b", "y")]) == first
    columns = Schema.of({"id": "int", "x": "string"})
    kept = first.kept(columns, first.seen(STORED, columns))
    assert (kept.pending, [*kept.renames]) == ({}, [[1, {"x": "a"}]])
    assert kept.seen(STORED, columns) == {}
    (rename,) = RenameNotes(**asdict(kept)).column_renames()
    assert (rename.mark[4:20], rename.origins) == (f"{1:016x}", {"x": "a"})
    waits = first.kept(Schema.of({"id": "int"}), {})
    assert waits == first, "its column may be seen later"
    assert first.kept(Schema.of({"id": "int", "X": "int"}), {}).pending == {}


def test_a_tap_notes_each_change_once_and_stops_where_a_hidden_column_has_another_name() -> None:
    """Also where another column has its name now: nobody could tell them apart by their names."""
    sql = "ALTER TABLE trips RENAME COLUMN city TO town, RENAME COLUMN town TO city"
    tapping = Tapping(Server([transaction(7, Statement("shop", sql))]))
    hidden = SPECS[0].__class__("hidden", "shop", "trips", hidden=HiddenColumns(masked=frozenset(["City"])))
    tapping.run([*SPECS[:2], hidden])
    assert tapping.versions.notes_of("trips").pending == {"city": "town", "town": "city"}
    assert tapping.versions.notes_of("trips").sequence == 7
    assert (tapping.altered, [*tapping.stopped]) == (["trips"], ["hidden"])
    assert "changed its column `city`, which nobody is to see" in tapping.stopped["hidden"]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("ALTER TABLE trips ADD town varchar(9) AS (left(CITY, 9)) VIRTUAL", "`town` is generated from `City`, which is to be masked"),
        ("ALTER TABLE trips ADD town varchar(9) DEFAULT (city)", "`town` is generated from `City`"),
        ("CREATE TABLE trips LIKE others", "was made like another table"),
    ],
)  # fmt: skip
def test_a_tap_stops_where_a_new_column_shows_a_hidden_one(sql: str, why: str) -> None:
    tapping = Tapping(Server([transaction(7, Statement("shop", sql))]))
    hidden = SPECS[0].__class__("hidden", "shop", "trips", hidden=HiddenColumns(masked=frozenset(["City"])))
    tapping.run([*SPECS[:2], hidden])
    assert [*tapping.stopped] == ["hidden"]
    assert why in tapping.stopped["hidden"]


def test_a_column_of_a_hidden_one_may_be_hidden_itself() -> None:
    sql = "ALTER TABLE trips MODIFY town varchar(9) AS (left(city, 9)), ADD n int AS (id + 1), ADD INDEX (city)"
    tapping = Tapping(Server([transaction(7, Statement("shop", sql))]))
    hidden = SPECS[0].__class__("hidden", "shop", "trips", hidden=HiddenColumns(masked=frozenset(["city", "Town"])))
    tapping.run([*SPECS[:2], hidden])
    assert (tapping.altered, tapping.stopped) == (["trips", "hidden"], {})
