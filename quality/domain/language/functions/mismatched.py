"""mismatched(table.column, 'pattern'): how many rows have a value that is not as a whole what the regular expression says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from quality.domain.language.function_support.arguments import (
    BadArguments,
    check_argument_count,
    column_argument,
    literal_argument,
)
from quality.domain.language.function_support.row_counts import RowCountFunction
from quality.domain.language.measures import ROWS, Ask, Measure
from quality.domain.language.tree.nodes import Argument, Literal
from quality.domain.value_types import ValueType

_UNPORTABLE_SYNTAX = re.compile(
    r"""(?<!\\)(?:\\\\)*(?P<found>
        \(\?(?!:)                                      # look-around, names, flags but (?i) at the start
        | \\(?![dDwWsStnrfx])[A-Za-z0-9]               # references, boundaries, classes by name
        | [*+?}]\+                                     # possessive repeats
        | \[\^?\]?(?:\\.|[^]\\[])*\[                  # a class within a class
        | \{\d*,?\d{4,}                                # more than RE2 repeats
    )""",
    re.VERBOSE,
)
"""What some engine lacks, DuckDB's RE2 most of it. The engines check again, by the same rules (quality.engines.sql.portable_patterns)."""


MAX_CHARACTERS = 1_000
MAX_GROUPS = 50
"""What reads a pattern goes down one step for each group in a group."""


class MismatchedFunction(RowCountFunction):
    signature = "mismatched(table.column, 'pattern')"

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        check_argument_count(args, 2, 2, self.signature)
        table, column = column_argument(args[0], self.signature)
        pattern = literal_argument(args[1], (ValueType.TEXT,), "a regular expression in single quotes", self.signature)
        return Ask(table, Measure("mismatched", (column,), values=(_check_pattern(pattern),))), Ask(table, ROWS)


def _check_pattern(pattern: Literal) -> str:
    text = pattern.value
    assert isinstance(text, str)
    for count, most, what in ((len(text), MAX_CHARACTERS, "characters"), (text.count("("), MAX_GROUPS, "groups")):
        if count > most:
            raise BadArguments(f"The pattern has {count:,} {what}; {most:,} are the most.", pattern)
    if special := _UNPORTABLE_SYNTAX.search(text.removeprefix("(?i)")):
        raise BadArguments(f"Not every engine knows `{special['found']}`; write the pattern without it.", pattern)
    try:
        re.compile(text)
    except re.error as problem:
        at = f" at character {problem.pos + 1}" if problem.pos is not None else ""
        raise BadArguments(f"'{text}' is not a regular expression: {problem.msg}{at}.", pattern) from None
    return text


MISMATCHED = MismatchedFunction()
