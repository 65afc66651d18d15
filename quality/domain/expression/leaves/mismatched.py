"""mismatched(table.column, 'pattern'): how many rows have a value that is not as a whole what the regular expression says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from quality.domain.expression.kinds import Kind
from quality.domain.expression.leaves import BadArguments
from quality.domain.expression.leaves.arguments import a_column, a_literal, exactly
from quality.domain.expression.leaves.counted import Counted
from quality.domain.expression.measures import ROWS, Ask, Measure
from quality.domain.expression.nodes import Argument, Literal

_NOT_EVERYWHERE = re.compile(
    r"""(?<!\\)(?:\\\\)*(?P<found>
        \(\?(?!:)                                      # look-around, names, flags but (?i) at the start
        | \\(?![dDwWsStnrfx])[A-Za-z0-9]               # references, boundaries, classes by name
        | [*+?}]\+                                     # possessive repeats
        | \[\^?\]?(?:\\.|[^]\\[])*\[                  # a class within a class
        | \{\d*,?\d{4,}                                # more than RE2 repeats
    )""",
    re.VERBOSE,
)
"""What some engine lacks, DuckDB's RE2 most of it. The engines check again, by the same rules (quality.engines.patterns)."""


class Mismatched(Counted):
    signature = "mismatched(table.column, 'pattern')"

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        exactly(args, 2, 2, self.signature)
        table, column = a_column(args[0], self.signature)
        pattern = a_literal(args[1], (Kind.TEXT,), "a regular expression in single quotes", self.signature)
        return Ask(table, Measure("mismatched", (column,), values=(_checked(pattern),))), Ask(table, ROWS)


def _checked(pattern: Literal) -> str:
    text = pattern.value
    assert isinstance(text, str)
    if special := _NOT_EVERYWHERE.search(text.removeprefix("(?i)")):
        raise BadArguments(f"Not every engine knows `{special['found']}`; write the pattern without it.", pattern)
    try:
        re.compile(text)
    except re.error as problem:
        at = f" at character {problem.pos + 1}" if problem.pos is not None else ""
        raise BadArguments(f"'{text}' is not a regular expression: {problem.msg}{at}.", pattern) from None
    return text


MISMATCHED = Mismatched()
