"""What an ALTER TABLE makes of the columns of its table, by its words: the binlog has the statement, and no row of it says what became of a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ingestion.capture.binlog.computed_columns import names_in_expressions
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
    columns = [column for clause in words.split() for column in _columns(clause)]
    changes = tuple(ColumnChange(each.old, each.new) for each in columns if each.old != each.new)
    return Alteration(*name, changes, _computed((each.new, each.definition) for each in columns if each.definition))


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


class _Column(NamedTuple):
    """`old` and `new` are its names, as in ColumnChange; equal where it keeps its name."""

    old: str
    new: str
    definition: Words | None = None


def _columns(clause: Words) -> Iterator[_Column]:
    """Of which a clause of an ALTER TABLE says something."""
    verb = clause.take().word
    if verb not in _VERBS or _is_no_column(clause) or (verb == "RENAME" and clause.peek() != "COLUMN"):
        return
    clause.skip("COLUMN")
    clause.skip("IF", "NOT", "EXISTS")
    if verb == "ADD":
        added = clause.split() if clause.skip("(") else [clause]
        yield from (_Column("", each.take().text, each) for each in added if not _is_no_column(each))
        return
    old = clause.take().text
    if verb == "DROP":
        yield _Column(old, "")
    elif verb == "RENAME":
        clause.skip("TO")
        yield _Column(old, clause.take().text)
    else:
        yield _Column(old, clause.take().text if verb == "CHANGE" else old, clause)


_VERBS = ("ADD", "ALTER", "CHANGE", "DROP", "MODIFY", "RENAME")
_NO_COLUMNS = (
    *("CHECK", "CONSTRAINT", "FOREIGN", "FULLTEXT", "INDEX", "KEY", "PARTITION", "PRIMARY", "SPATIAL"),
    "UNIQUE",
)
"""What else an ALTER TABLE adds, alters and drops: words that name a column only in quotes."""


def _is_no_column(clause: Words) -> bool:
    """`PERIOD` and `SYSTEM` may be names of columns."""
    pairs = (("PERIOD", "FOR"), ("PERIOD", "IF"), ("SYSTEM", "VERSIONING"), ("VECTOR", "INDEX"))
    return clause.peek() in _NO_COLUMNS or any(clause.starts_with(*pair) for pair in pairs)
