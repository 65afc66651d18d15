"""The words of a statement of SQL, as far as it takes to know what it changes: names, keywords and signs, without comments and texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
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
FILLERS = ("IF", "EXISTS", "NOT", "ONLINE", "IGNORE", "TEMPORARY")


def words_of(statement: Statement) -> Words:
    """Read as far as they are asked for: a procedure may have megabytes of them, and says what it is in the first three."""
    return Words(_tokens(_TOKEN.finditer(_with_executed_comments(statement.sql))), statement.database)


def _with_executed_comments(sql: str) -> str:
    """Behind the last end of a comment none is looked for: each sign that begins one would be followed to the end of the statement."""
    end = sql.rfind("*/") + 2
    return _EXECUTED_COMMENT.sub(r" \1 ", sql[:end]) + sql[end:]


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


def skip_settings(words: Words) -> None:
    """Of one statement: SET STATEMENT ... FOR."""
    if words.starts_with("SET", "STATEMENT"):
        words.skip_until("FOR")
        words.skip("FOR")


class Words:
    """The tokens of a statement, from a place on."""

    def __init__(self, tokens: Iterable[_Token], database: str) -> None:
        self._tokens, self._unread, self.database, self._place = list[_Token](), iter(tokens), database, 0

    @property
    def is_more(self) -> bool:
        self._read(self._place + 1)
        return self._place < len(self._tokens)

    def _read(self, upto: int | None = None) -> Sequence[_Token]:
        """The first ones; None: all."""
        self._tokens += islice(self._unread, None if upto is None else max(0, upto - len(self._tokens)))
        return self._tokens

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
        end = self._place + len(words)
        return tuple(token.word for token in self._read(end)[self._place : end]) == words

    def all_names(self) -> Iterator[tuple[str, str]]:
        """What may be the name of a table, each once: every name that comes, with the one before its dot."""
        names: dict[tuple[str, str], None] = {}
        while self.is_more:
            names[self.take_name()] = None
        yield from names

    def rest(self) -> list[str]:
        """The words that come."""
        return [token.word for token in self._read()[self._place :]]

    def split(self) -> Iterator[Words]:
        """What comes, between commas that are in no parentheses."""
        depth, begun = 0, self.place
        while self.is_more:
            sign = self.take().word
            depth += {"(": 1, ")": -1}.get(sign, 0)
            if sign == "," and depth == 0:
                yield self.between(begun, self.place - 1)
                begun = self.place
        yield self.between(begun, self.place)

    @property
    def place(self) -> int:
        return self._place

    def between(self, start: int, end: int) -> Words:
        """Places of the whole statement, the last one not included."""
        return Words(self._read(end)[start:end], self.database)

    def after(self, count: int) -> Words:
        return Words(self._read()[self._place + count :], self.database)
