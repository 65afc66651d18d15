"""Statements that take rows away without a word about each: the binlog has the statement, and no row of it.

Read by their words only. What a definition has become is known from the next rows, or by asking the server; so of other statements only the table matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from ingestion.capture.binlog.events import Statement

_TOKEN = re.compile(
    r"\s+|--[ \t][^\n]*|\#[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'"
    r'|`(?P<name>(?:[^`]|``)*)`|"(?P<ansi>(?:[^"\\]|\\.|"")*)"|(?P<word>[\w$]+)|(?P<sign>.)',
    re.DOTALL,
)
"""White space, comments and texts say nothing here."""
_EXECUTED_COMMENT = re.compile(r"/\*M?!\d*(.*?)\*/", re.DOTALL)
"""What the server executes although it looks like a comment."""
_PARTITION_VERBS = ("DROP", "TRUNCATE", "EXCHANGE", "CONVERT")
_WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "WITH")
_CALLS = ("CALL", "SELECT", "DO")
"""What a procedure or a function writes is not said."""
_NO_TABLE = ("COLUMN", "INDEX", "KEY")
"""What else an ALTER TABLE renames."""
_FILLERS = ("IF", "EXISTS", "NOT", "ONLINE", "IGNORE", "TEMPORARY")


ALL_TABLES = "*"
"""Of a database."""


class Loss(StrEnum):
    EMPTIED = "emptied"
    DROPPED = "dropped"
    RENAMED = "renamed"
    PARTITION_REMOVED = "partition_removed"
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
    return [removal for removal in _removals(_words_of(statement)) if removal.table]


def altered_table(statement: Statement) -> tuple[str, str] | None:
    """Whose definition an ALTER TABLE changes, by database and table. None: it is another statement."""
    words = _words_of(statement)
    _skip_settings(words)
    if not words.skip("ALTER"):
        return None
    words.skip(*_FILLERS)
    if not words.skip("TABLE"):
        return None
    words.skip(*_FILLERS)
    return words.take_name()


def _words_of(statement: Statement) -> _Words:
    return _Words([*_tokens(_TOKEN.finditer(_EXECUTED_COMMENT.sub(r" \1 ", statement.sql)))], statement.database)


class _Token(NamedTuple):
    text: str
    word: str
    """In capitals; empty for a name in quotes, which is no word of the language."""


def _tokens(matches: Iterator[re.Match[str]]) -> Iterator[_Token]:
    for match in matches:
        name, ansi_name, word, sign = match.group("name", "ansi", "word", "sign")
        if name is not None:
            yield _Token(name.replace("``", "`"), "")
        elif ansi_name is not None:
            yield _Token(ansi_name.replace('""', '"'), "")
        elif word or sign:
            yield _Token(word or sign, (word or sign).upper())


def _skip_settings(words: _Words) -> None:
    """Of one statement: SET STATEMENT ... FOR."""
    if words.starts_with("SET", "STATEMENT"):
        words.skip_until("FOR")
        words.skip("FOR")


def _removals(words: _Words) -> Iterator[Removal]:
    _skip_settings(words)
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
            words.skip(*_FILLERS)
            yield Removal(Loss.DROPPED, *words.take_name())
    elif verb == "ALTER":
        words.skip(*_FILLERS)
        if words.skip("TABLE"):
            yield from _altered(words)


def _dropped(words: _Words) -> Iterator[Removal]:
    if words.peek() == "TEMPORARY":
        return
    kind = words.take().word
    words.skip(*_FILLERS)
    if kind in ("DATABASE", "SCHEMA"):
        yield Removal(Loss.DROPPED, words.take().text, ALL_TABLES)
    elif kind in ("TABLE", "TABLES"):
        yield from (Removal(Loss.DROPPED, *name) for name in words.take_names())


def _renamed(words: _Words) -> Iterator[Removal]:
    while words.is_more:
        words.skip(*_FILLERS)
        name = words.take_name()
        words.skip_until("TO")
        words.skip("TO")
        yield Removal(Loss.RENAMED, *name, becomes=words.take_name())
        words.skip(",")


def _altered(words: _Words) -> Iterator[Removal]:
    words.skip(*_FILLERS)
    name = words.take_name()
    rest = words.rest()
    for place, (word, following) in enumerate(pairwise([*rest, ""])):
        if word == "RENAME" and following not in _NO_TABLE:
            renamed = words.after(place + 1)
            renamed.skip("TO", "AS", "=")
            yield Removal(Loss.RENAMED, *name, becomes=renamed.take_name())
        elif word in _PARTITION_VERBS and following in ("PARTITION", "TABLE"):
            yield Removal(Loss.PARTITION_REMOVED, *name)
        elif word == "WITH" and following == "TABLE":
            yield Removal(Loss.PARTITION_REMOVED, *words.after(place + 2).take_name())
        elif word in ("DISCARD", "IMPORT") and following in ("TABLESPACE", "PARTITION"):
            yield Removal(Loss.EMPTIED, *name)


class _Words:
    """The tokens of a statement, from a place on."""

    def __init__(self, tokens: Sequence[_Token], database: str) -> None:
        self._tokens, self.database, self._place = tokens, database, 0

    @property
    def is_more(self) -> bool:
        return self._place < len(self._tokens)

    def peek(self) -> str:
        """The word that comes; empty for a name in quotes, and at the end."""
        return self._tokens[self._place].word if self.is_more else ""

    def take(self) -> _Token:
        token = self._tokens[self._place] if self.is_more else _Token("", "")
        self._place += 1
        return token

    def skip(self, *words: str) -> bool:
        """As many of these as come; whether there was one."""
        place = self._place
        while self.peek() in words and self.is_more:
            self._place += 1
        return self._place > place

    def skip_until(self, word: str) -> None:
        while self.is_more and self.peek() != word:
            self._place += 1

    def take_name(self) -> tuple[str, str]:
        """With the database in which the statement was given, where it names none."""
        first = self.take().text
        if not self.skip("."):
            return self.database, first
        return first, self.take().text

    def take_names(self) -> Iterator[tuple[str, str]]:
        yield self.take_name()
        while self.skip(","):
            yield self.take_name()

    def starts_with(self, *words: str) -> bool:
        return tuple(token.word for token in self._tokens[self._place : self._place + len(words)]) == words

    def all_names(self) -> Iterator[tuple[str, str]]:
        """What may be the name of a table, each once: every name that comes, with the one before its dot."""
        names: dict[tuple[str, str], None] = {}
        while self.is_more:
            names[self.take_name()] = None
        yield from names

    def rest(self) -> list[str]:
        """The words that come."""
        return [token.word for token in self._tokens[self._place :]]

    def after(self, count: int) -> _Words:
        return _Words(self._tokens[self._place + count :], self.database)
