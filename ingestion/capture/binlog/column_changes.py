"""What an ALTER TABLE makes of the columns of its table, by its words: the binlog has the statement, and no row of it says what became of a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ingestion.capture.binlog.computed_columns import definitions_in, names_in_expressions
from ingestion.capture.binlog.events import Statement
from ingestion.capture.binlog.statement_words import FILLERS, Words, skip_settings, words_of


@dataclass(frozen=True)
class ColumnChange:
    """`old` is called `new` from now on. Without `new` it is dropped; without `old` it is a new one."""

    old: str
    new: str


@dataclass(frozen=True)
class Alteration:
    """Of one table. `changes`: those of one statement are made at once, so two columns may change their names. `computed`: by column that the statement
    defines, the names in the expression from which the server makes it. `is_like`: the columns are those of another table, which it does not say."""

    database: str
    table: str
    changes: tuple[ColumnChange, ...] = ()
    computed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    is_like: bool = False


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
    if words.skip("WAIT"):
        words.take()
    words.skip("NOWAIT")
    clauses = [*words.split()]
    computed = _computed(definition for clause in clauses for definition in definitions_in(clause.again()))
    return Alteration(*name, tuple(change for clause in clauses for change in _changes(clause)), computed)


def _created(words: Words) -> Alteration | None:
    words.skip("OR", "REPLACE")
    if not words.skip("TABLE"):
        return None
    words.skip(*FILLERS)
    name = words.take_name()
    words.skip("(")
    if words.peek() == "LIKE":
        return Alteration(*name, is_like=True)
    return Alteration(*name, computed=_computed((each.take().text, each) for each in words.split()))


def _computed(definitions: Iterable[tuple[str, Words]]) -> dict[str, frozenset[str]]:
    return {name: names for name, definition in definitions if (names := names_in_expressions(definition))}


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
    yield from (definition.take().text for definition in clause.split())
