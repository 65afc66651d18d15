"""An expression as pages show it: understood, or where it is wrong."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import timedelta
from textwrap import dedent

from frontend.ui import words
from lakehub.catalog.models import Dataset
from quality.domain.language import (
    Expression,
    ExpressionError,
    flattened,
    formula,
    function_calls,
    parse,
    readable,
    understand,
)
from quality.domain.slas import BadOverride
from quality.state.dataset_facts import dataset_facts


@dataclass(frozen=True)
class ExpressionCheck:
    """Either the forms of what was understood, or the problem with the line and a caret below the place."""

    readable: str = ""
    flattened: str = ""
    measures: tuple[str, ...] = ()
    problem: str = ""
    excerpt: str = ""

    @property
    def understood(self) -> bool:
        return not self.problem


def check_expression(dataset: Dataset, text: str) -> ExpressionCheck:
    """`text` as the dataset's tests would read it."""
    try:
        expression = understand(text, dataset_facts(dataset).scope)
    except ExpressionError as error:
        _, _, place = str(error).partition("\n")
        return ExpressionCheck(
            problem=f"Line {error.line}, column {error.column}: {error.problem}", excerpt=dedent(place)
        )
    except BadOverride as bad:
        return ExpressionCheck(problem=str(bad))
    return ExpressionCheck(readable(expression), flattened(expression), measure_formulas(expression))


def measure_formulas(expression: Expression) -> tuple[str, ...]:
    """What is measured, each thing once."""
    return tuple(dict.fromkeys(formula(call) for call in function_calls(expression)))


def measures_and_parameters(stored: str) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    """(what is measured, the parameters of the run) of a stored expression; nothing of one from another time."""
    try:
        expression = parse(stored)
    except ExpressionError:
        return (), []
    given = {name: value for name, value in asdict(expression.parameters).items() if value is not None}
    parameters = [
        (name, words.duration(value) if isinstance(value, timedelta) else str(value)) for name, value in given.items()
    ]
    return measure_formulas(expression), parameters
