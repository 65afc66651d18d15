"""Reading the arguments of a leaf: a table, a column of a table, bare column names after a table, or values."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from quality.domain.language.tree.literals import format_decimal
from quality.domain.language.tree.nodes import Argument, Literal, Name
from quality.domain.value_types import ValueType


def name_argument(arg: Argument, signature: str) -> Name:
    if isinstance(arg, Literal):
        raise BadArguments(f"The name of a table or column is wanted: {signature}.", arg)
    return arg


def table_argument(arg: Argument, signature: str) -> Name:
    name = name_argument(arg, signature)
    if name.column:
        raise BadArguments(f"A table is wanted, not the column `{name.column}`: {signature}.", arg)
    return name.table


def compared_tables(args: Sequence[Argument], signature: str) -> tuple[Name, Name]:
    """The first two arguments, of which the same partition is looked at."""
    table, other = (table_argument(arg, signature) for arg in args[:2])
    if other.shift:
        raise BadArguments("The same partition of both tables is compared: leave out the second shift.", args[1])
    return table, other


def column_argument(arg: Argument, signature: str) -> tuple[Name, str]:
    name = name_argument(arg, signature)
    if not name.column:
        raise BadArguments(f"A column is wanted, as in {name.dataset}.some_column: {signature}.", arg)
    return name.table, name.column


def column_names(args: Sequence[Argument], signature: str) -> tuple[str, ...]:
    names = [name_argument(arg, signature) for arg in args]
    for name in names:
        if name.column or name.data_center or name.shift:
            raise BadArguments(f"Only the name of a column is wanted here: {signature}.", name)
    return tuple(name.dataset for name in names)


def literal_argument(arg: Argument, kinds: Sequence[ValueType], expected: str, signature: str) -> Literal:
    """`expected` in words, as in `a text in single quotes`."""
    if not isinstance(arg, Literal) or arg.value_type not in kinds:
        raise BadArguments(f"{expected[0].upper()}{expected[1:]} is wanted here: {signature}.", arg)
    return arg


def exact_number(literal: Literal) -> int | Decimal:
    """The number as an engine is given it: with all its digits."""
    value = literal.value
    assert isinstance(value, Fraction)
    if value.denominator == 1:
        return value.numerator
    return Decimal(f"{'-' if value < 0 else ''}{format_decimal(abs(value))}")


def scalar_argument(arg: Argument, signature: str) -> int | Decimal | str:
    """A text or a number, as an engine is given it."""
    literal = literal_argument(
        arg, (ValueType.TEXT, ValueType.NUMBER), "a text in single quotes or a number", signature
    )
    return literal.value if isinstance(literal.value, str) else exact_number(literal)


def check_argument_count(args: Sequence[Argument], least: int, most: int, signature: str) -> None:
    if not least <= len(args) <= most:
        expected_count = f"{least}" if least == most else f"{least} to {most}"
        raise BadArguments(f"{len(args)} arguments, {expected_count} wanted: {signature}.")


class BadArguments(ValueError):
    """A leaf was given arguments that it cannot use; says what it wants, and which one it is about."""

    def __init__(self, problem: str, about: Argument | None = None) -> None:
        super().__init__(problem)
        self.argument = about
