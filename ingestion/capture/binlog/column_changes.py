"""What an ALTER TABLE makes of the columns of its table, by its words: the binlog has the statement, and no row of it says what became of a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ingestion.capture.binlog.events import Statement
from ingestion.capture.binlog.statement_words import FILLERS, Words, skip_settings, words_of


@dataclass(frozen=True)
class ColumnChange:
    """`old` is called `new` from now on. Without `new` it is dropped; without `old` it is a new one."""

    old: str
    new: str


@dataclass(frozen=True)
class Alteration:
    """Of one table. `changes`: those of one statement are made at once, so two columns may change their names. `new_key`: the columns of another primary
    key, none if it is dropped or not told; None: it stays."""

    database: str
    table: str
    changes: tuple[ColumnChange, ...] = ()
    new_key: tuple[str, ...] | None = None

    def may_double(self, record_key: Sequence[str]) -> bool:
        """Two rows may have one record key from now on, where the primary key kept them apart."""
        known = {name.casefold() for name in record_key}
        return self.new_key is not None and not (self.new_key and {name.casefold() for name in self.new_key} <= known)


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
    begun = words.place
    changes = tuple(change for clause in _clauses(words) for change in _changes(clause))
    return Alteration(*name, changes, _new_key([*_clauses(words.between(begun, words.place))]))


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


def _new_key(clauses: Sequence[Words]) -> tuple[str, ...] | None:
    if not any(clause.starts_with("DROP", "PRIMARY") for clause in clauses):
        return None
    for clause in clauses:
        words = clause.rest()
        if words[:1] == ["ADD"] and ("PRIMARY", "KEY") in pairwise(words):
            clause.skip_until("(")
            clause.take()
            return tuple(part.take().text for part in _clauses(clause))
    return ()


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
