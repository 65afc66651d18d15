"""deviation(x, 8w): how unusual x is, in spreads from what it was on comparable days of the last 8 weeks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from fractions import Fraction
from functools import partial

from lakehub.kernel.calendar import Grain
from quality.domain.anomaly import FEWEST, Point, TooFew, baseline, explained, shifts
from quality.domain.expression.amounts import shown
from quality.domain.expression.kinds import Kind
from quality.domain.expression.leaves import BadArguments
from quality.domain.expression.nodes import Amount, Literal
from quality.domain.expression.series import Past
from quality.domain.expression.values import Failed, Known, Moment, Value, no_data

SHORTEST, LONGEST = timedelta(weeks=1), timedelta(weeks=160)


class Deviation:
    signature = "deviation(x, 8w)"
    kind = Kind.NUMBER

    def shifts(self, kind: Kind, args: Sequence[Literal]) -> tuple[timedelta, ...]:
        return shifts(self._window(kind, args))

    def least(self, kind: Kind, args: Sequence[Literal], grain: Grain) -> timedelta:
        return -shifts(self._window(kind, args), grain)[:FEWEST][-1]

    def _window(self, kind: Kind, args: Sequence[Literal]) -> timedelta:
        if kind in (Kind.BOOLEAN, Kind.TEXT):
            raise BadArguments(f"What deviates is a number, a ratio or a duration, not a {kind}: {self.signature}.")
        if len(args) != 1 or not isinstance(window := args[0].value, timedelta):
            raise BadArguments(f"It takes a value and how far back it looks, as in {self.signature}.")
        if not SHORTEST <= window <= LONGEST:
            raise BadArguments(f"It looks back one week at least and {LONGEST.days // 7} weeks at most.", args[0])
        return window

    def value(self, kind: Kind, present: Known, past: Sequence[Past], moment: Moment) -> Value:
        found = baseline(
            _number(present.amount),
            moment.partition.start,
            [_point(one) for one in past],
            grain=moment.grain,
            zone=moment.zone,
            excluded=moment.excluded,
            kind=kind,
        )
        if isinstance(found, TooFew):
            return no_data(str(found))
        return Known(Fraction(found.score), facts=tuple(explained(found, partial(_shown, kind)).items()))


def _point(past: Past) -> Point:
    if isinstance(past.value, Failed):
        return Point(past.partition.start, None, past.value.cause)
    return Point(past.partition.start, _number(past.value.amount))


def _number(amount: Amount) -> float:
    """Durations in seconds."""
    assert not isinstance(amount, str)
    return amount.total_seconds() if isinstance(amount, timedelta) else float(amount)


def _shown(kind: Kind, number: float) -> str:
    return shown(timedelta(seconds=number) if kind is Kind.DURATION else Fraction(number), kind)


DEVIATION = Deviation()
