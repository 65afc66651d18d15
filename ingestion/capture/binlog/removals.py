"""Statements that take rows away without a word about each: the binlog has the statement, and no row of it.

Read by their words only. What a definition has become is known from the next rows, or by asking the server; so of other statements only the table matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from ingestion.capture.binlog.events import Statement
from ingestion.capture.binlog.statement_words import FILLERS, Words, skip_settings, words_of

_PARTITION_VERBS = ("DROP", "TRUNCATE", "EXCHANGE", "CONVERT")
_WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "WITH")
_CALLS = ("CALL", "SELECT", "DO")
"""What a procedure or a function writes is not said."""
_NO_TABLE = ("COLUMN", "INDEX", "KEY")
"""What else an ALTER TABLE renames."""

ALL_TABLES = "*"
"""Of a database."""


class Loss(StrEnum):
    EMPTIED = "emptied"
    DROPPED = "dropped"
    RENAMED = "renamed"
    REPLACED = "replaced"
    """Another table has the name now, with rows that are not in the log."""
    PARTITION_REMOVED = "partition_removed"
    FILES_REPLACED = "files_replaced"
    DUPLICATES_DROPPED = "duplicates_dropped"
    """ALTER IGNORE TABLE drops the rows that a new key does not allow."""
    WRITTEN_BY_STATEMENT = "written_by_statement"
    """Rows were changed by a statement that is in the log in place of the rows: a session with another binlog_format than ROW."""


class Removal(NamedTuple):
    """`table` may be ALL_TABLES."""

    loss: Loss
    database: str
    table: str
    becomes: tuple[str, str] | None = None


def removals(statement: Statement) -> list[Removal]:
    """What a statement takes away."""
    return [removal for removal in _removals(words_of(statement)) if removal.table]


def _removals(words: Words) -> Iterator[Removal]:
    skip_settings(words)
    verb = words.take().word
    if verb in _CALLS:
        yield Removal(Loss.WRITTEN_BY_STATEMENT, words.database, ALL_TABLES)
    elif verb in _WRITES:
        yield from (Removal(Loss.WRITTEN_BY_STATEMENT, *name) for name in words.all_names())
    elif verb == "TRUNCATE":
        words.skip("TABLE")
        yield Removal(Loss.EMPTIED, *words.take_name())
    elif verb == "DROP":
        yield from _dropped(words)
    elif verb == "RENAME" and words.take().word in ("TABLE", "TABLES"):
        yield from _renamed(words)
    elif verb == "CREATE" and words.skip("OR") and words.skip("REPLACE"):
        if words.skip("TABLE"):
            words.skip(*FILLERS)
            yield Removal(Loss.DROPPED, *words.take_name())
    elif verb == "ALTER":
        words.skip("ONLINE")
        ignores = words.skip("IGNORE")
        if words.skip("TABLE"):
            yield from _altered(words, ignores=ignores)


def _dropped(words: Words) -> Iterator[Removal]:
    if words.peek() == "TEMPORARY":
        return
    kind = words.take().word
    words.skip(*FILLERS)
    if kind in ("DATABASE", "SCHEMA"):
        yield Removal(Loss.DROPPED, words.take().text, ALL_TABLES)
    elif kind in ("TABLE", "TABLES"):
        yield from (Removal(Loss.DROPPED, *name) for name in words.take_names())


def _renamed(words: Words) -> Iterator[Removal]:
    while words.is_more:
        words.skip(*FILLERS)
        name = words.take_name()
        words.skip_until("TO")
        words.skip("TO")
        becomes = words.take_name()
        yield Removal(Loss.RENAMED, *name, becomes=becomes)
        yield Removal(Loss.REPLACED, *becomes)
        words.skip(",")


def _altered(words: Words, *, ignores: bool) -> Iterator[Removal]:
    words.skip(*FILLERS)
    name = words.take_name()
    if ignores:
        yield Removal(Loss.DUPLICATES_DROPPED, *name)
    rest = words.rest()
    for place, (word, following) in enumerate(pairwise([*rest, ""])):
        if word == "RENAME" and following not in _NO_TABLE:
            renamed = words.after(place + 1)
            renamed.skip("TO", "AS", "=")
            becomes = renamed.take_name()
            yield Removal(Loss.RENAMED, *name, becomes=becomes)
            yield Removal(Loss.REPLACED, *becomes)
        elif word in _PARTITION_VERBS and following in ("PARTITION", "TABLE"):
            yield Removal(Loss.PARTITION_REMOVED, *name)
            if word == "CONVERT":
                yield _converted(words.after(place + 2), following)
        elif word == "WITH" and following == "TABLE":
            yield Removal(Loss.PARTITION_REMOVED, *words.after(place + 2).take_name())
        elif word in ("DISCARD", "IMPORT") and following in ("TABLESPACE", "PARTITION"):
            yield Removal(Loss.FILES_REPLACED, *name)


def _converted(words: Words, what: str) -> Removal:
    """A table that becomes a partition, or a partition that becomes a table, with its rows."""
    if what == "TABLE":
        return Removal(Loss.DROPPED, *words.take_name())
    words.take()
    words.skip("TO", "TABLE")
    return Removal(Loss.REPLACED, *words.take_name())
