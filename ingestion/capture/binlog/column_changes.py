"""What an ALTER TABLE makes of the columns of its table, by its words: the binlog has the statement, and no row of it says what became of a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ingestion.capture.binlog.events import Statement
from ingestion.capture.binlog.statement_words import FILLERS, Words, skip_settings, words_of


@dataclass(frozen=True)
class ColumnChange:
    """`old` is called `new` from now on. Without `new` it is dropped; without `old` it is a new one."""

    old: str
    new: str


@dataclass(frozen=True)
class Alteration:
    """Of one table. `changes`: those of one statement are made at once, so two columns may change their names."""

    database: str
    table: str
    changes: tuple[ColumnChange, ...] = ()


def alteration(statement: Statement) -> Alteration | None:
    """None: it is no ALTER TABLE, and no CREATE TABLE, which says the columns of a table anew."""
    words = words_of(statement)
    skip_settings(words)
    if words.skip("CREATE"):
        return _created(words)
    if not words.skip("ALTER"):
        return None
    words.skip(*FILLERS)
    if not words.skip("TABLE"):
        return None
    words.skip(*FILLERS)
    name = words.take_name()
    return Alteration(*name, tuple(change for clause in _clauses(words) for change in _changes(clause)))


def _created(words: Words) -> Alteration | None:
    words.skip("OR", "REPLACE")
    if not words.skip("TABLE"):
        return None
    words.skip(*FILLERS)
    return Alteration(*words.take_name())


def _clauses(words: Words) -> Iterator[Words]:
    """Between commas that are in no parentheses."""
    if words.skip("WAIT"):
        words.take()
    words.skip("NOWAIT")
    depth, begun = 0, words.place
    while words.is_more:
        sign = words.take().word
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            yield words.between(begun, words.place - 1)
            begun = words.place
    yield words.between(begun, words.place)


def _changes(clause: Words) -> Iterator[ColumnChange]:
    verb = clause.take().word
    if verb == "RENAME" and clause.skip("COLUMN"):
        clause.skip("IF", "EXISTS")
        old = clause.take().text
        clause.skip("TO")
        yield ColumnChange(old, clause.take().text)
    elif verb == "CHANGE":
        clause.skip("COLUMN")
        clause.skip("IF", "EXISTS")
        yield ColumnChange(clause.take().text, clause.take().text)
    elif verb == "DROP" and clause.peek() not in _NO_COLUMNS:
        clause.skip("COLUMN")
        clause.skip("IF", "EXISTS")
        yield ColumnChange(clause.take().text, "")
    elif verb == "ADD" and clause.peek() not in _NO_COLUMNS:
        clause.skip("COLUMN")
        clause.skip("IF", "NOT", "EXISTS")
        yield from (ColumnChange("", name) for name in _added(clause))


_NO_COLUMNS = (
    *(
        "INDEX",
        "KEY",
        "PRIMARY",
        "UNIQUE",
        "FULLTEXT",
        "SPATIAL",
        "FOREIGN",
        "CONSTRAINT",
        "CHECK",
        "PARTITION",
        "PERIOD",
    ),
    "SYSTEM",
)
"""What else an ALTER TABLE adds and drops."""


def _added(clause: Words) -> Iterator[str]:
    """One, or several in parentheses."""
    if not clause.skip("("):
        yield clause.take().text
        return
    yield from (definition.take().text for definition in _clauses(clause))
