"""Reading the arguments of a leaf: a table, a column of a table, bare column names after a table, or values."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from quality.domain.expression.amounts import decimal_text
from quality.domain.expression.kinds import Kind
from quality.domain.expression.leaves import BadArguments
from quality.domain.expression.nodes import Argument, Literal, Name


def a_name(arg: Argument, signature: str) -> Name:
    if isinstance(arg, Literal):
        raise BadArguments(f"The name of a table or column is wanted: {signature}.", arg)
    return arg


def a_table(arg: Argument, signature: str) -> Name:
    name = a_name(arg, signature)
    if name.column:
        raise BadArguments(f"A table is wanted, not the column `{name.column}`: {signature}.", arg)
    return name.table


def a_column(arg: Argument, signature: str) -> tuple[Name, str]:
    name = a_name(arg, signature)
    if not name.column:
        raise BadArguments(f"A column is wanted, as in {name.dataset}.some_column: {signature}.", arg)
    return name.table, name.column


def bare_columns(args: Sequence[Argument], signature: str) -> tuple[str, ...]:
    names = [a_name(arg, signature) for arg in args]
    for name in names:
        if name.column or name.data_center or name.shift:
            raise BadArguments(f"Only the name of a column is wanted here: {signature}.", name)
    return tuple(name.dataset for name in names)


def a_literal(arg: Argument, kinds: Sequence[Kind], wanted: str, signature: str) -> Literal:
    """`wanted` in words, as in `a text in single quotes`."""
    if not isinstance(arg, Literal) or arg.kind not in kinds:
        raise BadArguments(f"{wanted[0].upper()}{wanted[1:]} is wanted here: {signature}.", arg)
    return arg


def exact(literal: Literal) -> int | Decimal:
    """The number as an engine is given it: with all its digits."""
    value = literal.value
    assert isinstance(value, Fraction)
    if value.denominator == 1:
        return value.numerator
    return Decimal(f"{'-' if value < 0 else ''}{decimal_text(abs(value))}")


def a_scalar(arg: Argument, signature: str) -> int | Decimal | str:
    """A text or a number, as an engine is given it."""
    literal = a_literal(arg, (Kind.TEXT, Kind.NUMBER), "a text in single quotes or a number", signature)
    return literal.value if isinstance(literal.value, str) else exact(literal)


def exactly(args: Sequence[Argument], least: int, most: int, signature: str) -> None:
    if not least <= len(args) <= most:
        wanted = f"{least}" if least == most else f"{least} to {most}"
        raise BadArguments(f"{len(args)} arguments, {wanted} wanted: {signature}.")
