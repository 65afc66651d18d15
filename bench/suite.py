"""The 20 checks that every contender of bench.checks runs, as data. Some are meant to fail: agreement on passes proves little.

Only the standard library, since each contender runs in an environment of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

KEY = ("flight_date", "carrier", "flight", "origin")
ROWS_A_COPY = 336_776


@dataclass(frozen=True)
class Check:
    """Holds where the value of `kind` over `columns` is in the order `op` with `bound`. Shares are fractions of one."""

    name: str
    kind: str
    columns: tuple[str, ...]
    op: str
    bound: float
    low: float = 0
    high: float = 0
    """For `outside`: the range, both ends within."""
    values: tuple[str, ...] = ()
    """For `unexpected`: the values that are accepted."""
    pattern: str = ""
    """For `mismatched`: what a whole value looks like."""

    @property
    def column(self) -> str:
        (column,) = self.columns
        return column

    def holds(self, value: float) -> bool:
        orders = {
            "<": value < self.bound,
            ">": value > self.bound,
            "<=": value <= self.bound,
            "==": value == self.bound,
        }
        return orders[self.op]


def suite(copies: int) -> tuple[Check, ...]:
    """For `copies` years of the flights."""
    complete = ("carrier", "flight", "origin", "dest")
    return (
        Check("rows", "rows", (), ">", ROWS_A_COPY * copies - 1),
        *(Check(f"{column} is there", "nulls", (column,), "==", 0) for column in complete),
        Check("tailnum mostly there", "null_share", ("tailnum",), "<", 0.01),
        Check("dep_delay mostly there", "null_share", ("dep_delay",), "<", 0.03),
        Check("arr_delay mostly there", "null_share", ("arr_delay",), "<", 0.025),
        Check("shortest flight", "minimum", ("distance",), ">", 0),
        Check("longest flight", "maximum", ("distance",), "<", 5000),
        Check("earliest departure", "minimum", ("dep_delay",), ">", -60),
        Check("latest arrival", "maximum", ("arr_delay",), "<", 1000),
        Check("mean delay", "mean", ("dep_delay",), "<", 15),
        Check("mean time in the air", "mean", ("air_time",), ">", 120),
        Check("miles flown", "sum", ("distance",), ">", 300_000_000 * copies),
        Check("carriers", "distinct", ("carrier",), "<=", 16),
        Check("primary key", "duplicates", KEY, "<", 0.001),
        Check("delay within reason", "outside", ("dep_delay",), "==", 0, low=-60, high=720),
        Check("origin known", "unexpected", ("origin",), "==", 0, values=("EWR", "JFK", "LGA")),
        Check("tailnum well formed", "mismatched", ("tailnum",), "==", 0, pattern="N[0-9A-Z]{1,5}"),
    )
