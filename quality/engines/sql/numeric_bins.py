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

MAX_BINS = 1000
"""More bins than this are no distribution but a list of values."""
MIN_EXPONENT, MAX_EXPONENT = -32, 64
"""Powers of two: what is smaller than the first is 0, what reaches the second is in the last bin."""
BINS_PER_POWER = 4
LAST_BIN = (MAX_EXPONENT - MIN_EXPONENT) * BINS_PER_POWER + 1
NAN_BIN = LAST_BIN + 1


def bin_of(value: float) -> int:
    """The definition; the engines' SQL is tested against it."""
    if math.isnan(value):
        return NAN_BIN
    size = abs(value)
    if size < 2.0**MIN_EXPONENT:
        return 0
    if size >= 2.0**MAX_EXPONENT:
        return int(math.copysign(LAST_BIN, value))
    half, exponent = math.frexp(size)
    part = int((half * 2 - 1) * BINS_PER_POWER)
    return int(math.copysign((exponent - 1 - MIN_EXPONENT) * BINS_PER_POWER + part + 1, value))


def bin_name(number: int) -> str:
    """Its bounds, for people: `[10, 12)`, of negative numbers `(-12, -10]`."""
    if number in (0, NAN_BIN):
        return "NaN" if number else "0"
    low, high = _bound(abs(number) - 1), "" if abs(number) == LAST_BIN else _bound(abs(number))
    if number < 0:
        return f"({'-' + high if high else ''}, -{low}]"
    return f"[{low}, {high})"


def _bound(number: int) -> str:
    exponent, part = divmod(number, BINS_PER_POWER)
    return f"{2.0 ** (exponent + MIN_EXPONENT) * (1 + part / BINS_PER_POWER):.6g}"
