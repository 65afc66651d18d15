"""An expression as pages show it: understood, or where it is wrong."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import timedelta
from textwrap import dedent

from frontend import words
from lakehub.catalog.models import Dataset
from quality.described import described
from quality.domain.expression import (
    Expression,
    ExpressionError,
    flattened,
    formula,
    leaf_calls,
    parse,
    readable,
    understand,
)
from quality.domain.tiers import BadOverride


@dataclass(frozen=True)
class Checked:
    """Either the forms of what was understood, or the problem with the line and a caret below the place."""

    readable: str = ""
    flattened: str = ""
    measures: tuple[str, ...] = ()
    problem: str = ""
    place: str = ""

    @property
    def understood(self) -> bool:
        return not self.problem


def checked(dataset: Dataset, text: str) -> Checked:
    """`text` as the dataset's tests would read it."""
    try:
        expression = understand(text, described(dataset).scope)
    except ExpressionError as error:
        _, _, place = str(error).partition("\n")
        return Checked(problem=f"Line {error.line}, column {error.column}: {error.problem}", place=dedent(place))
    except BadOverride as bad:
        return Checked(problem=str(bad))
    return Checked(readable(expression), flattened(expression), measures(expression))


def measures(expression: Expression) -> tuple[str, ...]:
    """What is measured, each thing once."""
    return tuple(dict.fromkeys(formula(call) for call in leaf_calls(expression)))


def asked(stored: str) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    """(what is measured, the parameters of the run) of a stored expression; nothing of one from another time."""
    try:
        expression = parse(stored)
    except ExpressionError:
        return (), []
    given = {name: value for name, value in asdict(expression.parameters).items() if value is not None}
    said = [
        (name, words.duration(value) if isinstance(value, timedelta) else str(value)) for name, value in given.items()
    ]
    return measures(expression), said
