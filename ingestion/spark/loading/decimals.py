"""Numbers of any kind as decimals of a fixed precision and scale, without losing a digit.

A whole number fits, and so does a fraction or the text of a number that needs no more places than the column has. Databases
without decimals of their own (SQLite) hand over 12 as a whole number and 12.5 as a fraction, in one column.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Context, Decimal, InvalidOperation

import pyarrow as pa

_EXACT = Context(prec=100)
_WIDEST = 76
_FLOAT_DIGITS = 15
"""Every number of 15 significant digits survives being a float; what follows them is noise of its arithmetic."""


def to_decimals(array: pa.Array, target: pa.Decimal128Type) -> pa.Array:
    """All or nothing. Raises ArrowInvalid, or ValueError for a text that is no number, where a value does not fit."""
    if pa.types.is_decimal(array.type):
        return array.cast(target)
    if pa.types.is_integer(array.type):
        return array.cast(pa.decimal256(_WIDEST, target.scale)).cast(target)
    if pa.types.is_floating(array.type) or pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        fractions = pa.types.is_floating(array.type)
        texts = array.cast(pa.string()).to_pylist()
        return decimals_of((float(text) if fractions and text else text for text in texts), target)
    raise pa.ArrowInvalid(f"{array.type} holds no numbers")


def decimals_of(values: Iterable[object], target: pa.Decimal128Type) -> pa.Array:
    """The same of Python's numbers and texts, which may be mixed."""
    return pa.array([None if value is None else _exact(value, target) for value in values], target)


def _exact(value: object, target: pa.Decimal128Type) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise ValueError(f"{value!r} is no number")
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        raise ValueError(f"{value!r} is not a number of the digits 0 to 9")  # Python reads 1_000 and Arabic digits too
    fitted = _places(value, target)
    if fitted is None and isinstance(value, float):
        fitted = _places(f"{value:.{_FLOAT_DIGITS}g}", target)
    if fitted is None:
        raise ValueError(f"{value!r} does not fit {target}")
    return fitted


def _places(value: int | float | Decimal | str, target: pa.Decimal128Type) -> Decimal | None:
    """The number with the places of `target`; None where it has more digits before or after the point."""
    try:
        number = Decimal(repr(value) if isinstance(value, float) else value)
        fitted = number.quantize(Decimal(1).scaleb(-target.scale), context=_EXACT)
    except InvalidOperation:
        return None
    digits = len(fitted.as_tuple().digits)
    return fitted if fitted == number and digits <= target.precision else None
