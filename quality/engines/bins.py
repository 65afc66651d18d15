"""The bins of numbers: exponential, the same on every engine, so that distributions measured in two places can be compared.

Each power of two is cut into four equal bins: of the size x = m * 2^e with 1 <= m < 2 the bin is (e + 32) * 4 + floor((m - 1) * 4) + 1,
negative for negative numbers. So a bin is at most a quarter of its lower bound wide, and every bound is a number that a
double holds exactly. What is smaller than 2^-32 is bin 0, what reaches 2^64 the last one, and NaN has its own:
772 bins at most. Integers and decimals are taken as doubles.

An engine's logarithm may miss a power of two by its last digit, so `e` is mended by a comparison with the powers,
which are exact everywhere.
"""

from __future__ import annotations

import math

MOST = 1000
"""More bins than this are no distribution but a list of values."""
SMALLEST, LARGEST = -32, 64
"""Powers of two: what is smaller than the first is 0, what reaches the second is in the last bin."""
PARTS = 4
LAST = (LARGEST - SMALLEST) * PARTS + 1
NAN = LAST + 1


def bin_of(value: float) -> int:
    """The definition; the engines' SQL is tested against it."""
    if math.isnan(value):
        return NAN
    size = abs(value)
    if size < 2.0**SMALLEST:
        return 0
    if size >= 2.0**LARGEST:
        return int(math.copysign(LAST, value))
    half, exponent = math.frexp(size)
    part = int((half * 2 - 1) * PARTS)
    return int(math.copysign((exponent - 1 - SMALLEST) * PARTS + part + 1, value))


def bin_name(number: int) -> str:
    """Its bounds, for people: `[10, 12)`, of negative numbers `(-12, -10]`."""
    if number in (0, NAN):
        return "NaN" if number else "0"
    low, high = _bound(abs(number) - 1), "" if abs(number) == LAST else _bound(abs(number))
    if number < 0:
        return f"({'-' + high if high else ''}, -{low}]"
    return f"[{low}, {high})"


def _bound(number: int) -> str:
    exponent, part = divmod(number, PARTS)
    return f"{2.0 ** (exponent + SMALLEST) * (1 + part / PARTS):.6g}"
