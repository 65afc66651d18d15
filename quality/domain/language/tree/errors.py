"""An expression that cannot be understood: where, why, and what was probably meant."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TextRange:
    """Start and end offset within the text of an expression."""

    start: int
    end: int


NO_RANGE = TextRange(0, 0)


class ExpressionError(ValueError):
    """Shows the line with a caret below the place; `line` and `column` count from 1."""

    def __init__(self, problem: str, *, text: str = "", where: TextRange = NO_RANGE) -> None:
        before = text[: where.start]
        self.problem = problem
        self.where = where
        self.line = before.count("\n") + 1
        self.column = where.start - (before.rfind("\n") + 1) + 1
        super().__init__(self._rendered(text))

    def located_in(self, text: str) -> ExpressionError:
        """The same error with the text that it is about."""
        return ExpressionError(self.problem, text=text, where=self.where)

    def _rendered(self, text: str) -> str:
        if not text:
            return self.problem
        shown = text.split("\n")[self.line - 1]
        width = max(1, min(self.where.end - self.where.start, len(shown) - self.column + 1))
        return f"line {self.line}, column {self.column}: {self.problem}\n  {shown}\n  {' ' * (self.column - 1)}{'^' * width}"
