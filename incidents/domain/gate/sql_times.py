"""What a condition of SQL says about the times in one column: the instants that rows which meet it can have.

A constant is a moment with an earliest and a latest instant that it can mean: a time without an offset is some zone's. A bound
is taken from the end that leaves more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeAlias, TypeGuard
from zoneinfo import ZoneInfo

from sqlglot import exp

from lakehub.kernel.interval import BEGINNING, EVERYTHING, FOREVER, Interval, union
from lakehub.kernel.partitions import Grain, parse_partition_name, partition_at, partition_name
from lakehub.kernel.partitions.form import EPOCHS, PartitionForm

_MAX_EAST_OFFSET, _MAX_WEST_OFFSET = timedelta(hours=14), timedelta(hours=12)
"""How far zones lie ahead of UTC, and behind it."""
_INSTANT = timedelta(microseconds=1)
_CANONICAL = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d(:?\d\d)?)?)?", re.ASCII)
_ROUNDING = frozenset({"mysql", "tsql"})
"""Dialects in which a time that is cast may come out up to a second later."""
_COMPARED_ROUNDED = frozenset({"tsql"})
"""Dialects in which a text becomes a time of the column's own precision, to the nearest: SMALLDATETIME knows minutes."""
_UNIT_WIDTHS = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=2),
    "day": timedelta(hours=25),
    "week": timedelta(days=8),
    "month": timedelta(days=32),
    "quarter": timedelta(days=94),
    "year": timedelta(days=367),
}
"""How much of time one value of a column that was cut off to it may stand for; the clocks may change meanwhile."""
_TIMES = {exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP, exp.DataType.Type.DATETIME, exp.DataType.Type.TIMESTAMPTZ,
          exp.DataType.Type.TIMESTAMPNTZ, exp.DataType.Type.TIMESTAMPLTZ, exp.DataType.Type.DATETIME2}  # fmt: skip

Ranges: TypeAlias = tuple[Interval, ...]
UNBOUNDED: Ranges = (EVERYTHING,)


@dataclass(frozen=True)
class QueryClock:
    """What a query takes the time from: `now`, and the zone of its session; None: not known."""

    now: datetime
    zone: ZoneInfo | None = None


@dataclass(frozen=True)
class TimeColumn:
    """A column that holds the names of partitions (with `grain`), or instants; `zone` is the dataset's."""

    name: str
    zone: ZoneInfo
    grain: Grain = Grain.NONE
    form: PartitionForm | None = None
    """How it says partitions, where it does not hold their names: by a pattern, or as a number."""

    @property
    def names_partitions(self) -> bool:
        return self.grain is not Grain.NONE


@dataclass(frozen=True)
class _Moment:
    """What a constant can mean. `is_name`: it is written as the name of a partition, so that texts compare as times do."""

    earliest: datetime
    latest: datetime
    is_name: bool = False
    is_typed: bool = False
    """A DATE or TIMESTAMP, and no text."""


def column_bounds(
    condition: exp.Expr, column: TimeColumn, is_own: Callable[[exp.Expr], bool], clock: QueryClock, dialect: str = ""
) -> Ranges:
    """The instants that `column` can hold where the condition is true; ALL where it says nothing that is sure."""
    return _Bounds(column, is_own, clock, dialect).of(condition)


class _Bounds:
    def __init__(self, column: TimeColumn, is_own: Callable[[exp.Expr], bool], clock: QueryClock, dialect: str) -> None:
        self._column, self._is_own, self._clock, self._dialect = column, is_own, clock, dialect

    def of(self, node: exp.Expr) -> Ranges:
        if isinstance(node, exp.Paren):
            return self.of(node.this)
        if isinstance(node, exp.And):
            return intersection(self.of(node.this), self.of(node.expression))
        if isinstance(node, exp.Or):
            return union((*self.of(node.this), *self.of(node.expression)))
        if isinstance(node, exp.Between):
            return self._between(node)
        if isinstance(node, exp.In):
            return self._one_of(node)
        if type(node) in _MIRRORED:
            return self._compared(node)
        return UNBOUNDED

    def _between(self, node: exp.Between) -> Ranges:
        if node.args.get("symmetric"):
            return UNBOUNDED
        low = self._range(exp.GTE, node.this, node.args["low"])
        return intersection(low, self._range(exp.LTE, node.this, node.args["high"]))

    def _one_of(self, node: exp.In) -> Ranges:
        if not node.expressions or node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
            return UNBOUNDED
        return union(piece for constant in node.expressions for piece in self._range(exp.EQ, node.this, constant))

    def _compared(self, node: exp.Expr) -> Ranges:
        kind: type[exp.Expr] = type(node)
        ranges = self._range(kind, node.this, node.expression)
        return ranges if ranges != UNBOUNDED else self._range(_MIRRORED[kind], node.expression, node.this)

    def _range(self, kind: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> Ranges:
        """`left` is the column, perhaps cut off to a unit; `right` the constant. What is no time, or lies near the ends
        of all times, bounds nothing."""
        try:
            return self._range_in_time(kind, left, right)
        except (OverflowError, ValueError):
            return UNBOUNDED

    def _range_in_time(self, kind: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> Ranges:
        if self._column.form is not None:
            return self._by_form(kind, left, right, self._column.form)
        wrapped = self._unwrapped(left)
        if wrapped is None:
            return UNBOUNDED
        width, is_time = wrapped
        moment = self._moment(right)
        if moment is None:
            return UNBOUNDED
        if _is_text(right) and not self._is_own(left):  # what is compared with a date is cut off to one
            moment = replace(moment, earliest=moment.earliest - _UNIT_WIDTHS["day"])
        if self._dialect in _ROUNDING and not self._column.names_partitions and not self._is_own(left):
            moment = replace(moment, earliest=moment.earliest - _UNIT_WIDTHS["second"])
        moment = self._rounded(moment, right)
        if self._dialect == "sqlite" and not moment.is_name:
            moment = _as_text(moment, right)
        if self._column.names_partitions:
            if not (moment.is_name or moment.is_typed or is_time):
                return UNBOUNDED  # texts compare letter by letter
            return self._by_name(kind, moment, width)
        return _interval(*_ends(kind, moment.earliest, moment.latest, width))

    def _rounded(self, moment: _Moment, constant: exp.Expr) -> _Moment:
        """As far as the constant may be rounded: 23:59:59.999 is midnight in a DATETIME of SQL Server."""
        if moment.is_name or self._dialect not in _ROUNDING:
            return moment
        unit = _UNIT_WIDTHS["minute" if self._dialect in _COMPARED_ROUNDED else "second"]
        if self._dialect not in _COMPARED_ROUNDED and isinstance(constant.unnest(), exp.Literal):
            return moment
        over = (moment.latest - BEGINNING) % unit
        return replace(moment, latest=moment.latest + (unit - over if over else timedelta()))

    def _by_form(self, kind: type[exp.Expr], left: exp.Expr, right: exp.Expr, form: PartitionForm) -> Ranges:
        """The bare column, compared with a constant that is written just as its values are: texts compare letter by letter."""
        constant = right.unnest()
        if not self._is_own(left.unnest()) or not isinstance(constant, exp.Literal):
            return UNBOUNDED
        is_number = not constant.is_string
        keeps_order = form.text in EPOCHS if is_number else form.is_ordered
        keeps_order |= is_number and form.is_ordered and constant.this.isdecimal()
        if kind not in (exp.EQ, exp.NullSafeEQ) and not keeps_order:
            return UNBOUNDED
        first = form.parse(constant.this)
        last = partition_at(first.end, form.grain, form.zone)
        if form.value_of(last) != constant.this:  # an hour that comes twice is written once
            last = first
        return self._by_name(kind, _Moment(first.start, last.start, is_name=True), timedelta())

    def _by_name(self, kind: type[exp.Expr], moment: _Moment, width: timedelta) -> Ranges:
        """A partition stands for all that is in it."""
        grain, zone = self._column.grain, self._column.zone
        first = partition_at(moment.earliest, grain, zone)
        end = partition_at(moment.latest + width, grain, zone).end
        if kind is exp.LT and moment.is_name and not width:
            return _interval(BEGINNING, first.start)
        if kind in (exp.LT, exp.LTE):
            return _interval(BEGINNING, end)
        if kind in (exp.GT, exp.GTE):
            return _interval(first.start, FOREVER)
        return _interval(first.start, end)

    def _unwrapped(self, node: exp.Expr) -> tuple[timedelta, bool] | None:
        """How far a value that the expression gives may lie before the column's, and whether it is a time and no text.

        None where the expression is not the column, or not one of the few that keep its order.
        """
        if self._is_own(node):
            return timedelta(), not self._column.names_partitions
        if isinstance(node, exp.Paren):
            return self._unwrapped(node.this)
        if self._is_cast_to_time(node):
            inside = self._unwrapped(node.this)
            cut = self._day if node.to.this is exp.DataType.Type.DATE else timedelta()
            return None if inside is None else (inside[0] + cut, True)
        if _is_plain_date(node):
            inside = self._unwrapped(node.this)
            return None if inside is None else (inside[0] + self._day, True)
        if isinstance(node, exp.TimestampTrunc | exp.DateTrunc) and not node.args.get("zone"):
            inside, unit = self._unwrapped(node.this), str(getattr(node.args.get("unit"), "name", "")).lower()
            return None if inside is None or unit not in _UNIT_WIDTHS else (inside[0] + _UNIT_WIDTHS[unit], True)
        return None

    def _is_cast_to_time(self, node: exp.Expr) -> TypeGuard[exp.Cast]:
        """To all that a time has, with the usual way to read a text. SQLite makes numbers of times."""
        if not isinstance(node, exp.Cast | exp.TryCast) or self._dialect == "sqlite" or node.to.this not in _TIMES:
            return False
        return not node.to.expressions and not any(node.args.get(part) for part in ("format", "default", "action"))

    @property
    def _day(self) -> timedelta:
        """What a cast to a date cuts off; the name of a day has nothing that could be."""
        return timedelta() if self._column.grain is Grain.DAY else _UNIT_WIDTHS["day"]

    # Constants

    def _moment(self, node: exp.Expr) -> _Moment | None:
        if isinstance(node, exp.Paren):
            return self._moment(node.this)
        if isinstance(node, exp.Literal) and node.is_string:
            return self._written(node.this)
        if self._is_cast_to_time(node):
            return self._typed(node.this, is_date=node.to.this is exp.DataType.Type.DATE)
        if _is_plain_date(node):
            return self._typed(node.this, is_date=True)
        if isinstance(node, exp.CurrentDate | exp.CurrentTimestamp | exp.CurrentDatetime) and not node.this:
            return self._now(is_date=isinstance(node, exp.CurrentDate))
        if isinstance(node, exp.Add | exp.Sub):
            return self._moved(node)
        return None

    def _typed(self, node: exp.Expr, *, is_date: bool) -> _Moment | None:
        moment = self._moment(node)
        if moment is None:
            return None
        # A date may be a day before the time that it was cut from.
        earliest = moment.earliest - (_UNIT_WIDTHS["day"] if is_date and not _is_day(node) else timedelta())
        return _Moment(earliest, moment.latest, moment.is_name and is_date and self._column.grain is Grain.DAY, True)

    def _written(self, text: str) -> _Moment | None:
        if self._column.names_partitions:
            try:
                named = parse_partition_name(text, self._column.grain, self._column.zone)
            except (ValueError, OverflowError):
                named = None
            if named is not None and text == partition_name(named, self._column.grain, self._column.zone):
                return _Moment(named.start, named.start, is_name=True)
        if _CANONICAL.fullmatch(text) is None:
            return None  # `20261116` stands before all that 2026 has, where a column holds texts
        try:
            at = datetime.fromisoformat(text)
            return self._in_some_zone(at)
        except (ValueError, OverflowError):
            return None

    def _in_some_zone(self, at: datetime) -> _Moment:
        """A column may hold instants, or what a clock showed: in the session's zone, in UTC, in the dataset's. The catalog knows
        how a source writes it, and not how the database does that runs the query.
        """
        session, shown = self._clock.zone, [at.replace(tzinfo=None)]
        meant: list[datetime] = []
        if (
            at.tzinfo is not None
        ):  # some databases overlook the offset, others take the column to be in the session's zone
            meant.append(at.astimezone(UTC))
            shown += [at.astimezone(session).replace(tzinfo=None)] if session else []
        elif session is None or self._column.names_partitions:
            plain = at.replace(tzinfo=UTC)
            return _Moment(plain - _MAX_EAST_OFFSET, plain + _MAX_WEST_OFFSET)
        zones = [UTC, session, self._column.zone] if session else [UTC]
        meant += [
            local_time.replace(tzinfo=zone, fold=fold).astimezone(UTC)
            for local_time in shown
            for zone in zones
            for fold in (0, 1)
        ]
        return _Moment(min(meant), max(meant))

    def _now(self, *, is_date: bool) -> _Moment:
        """A moment ago or in a moment: the query runs later than it is asked about."""
        now = self._clock.now
        earliest = now - _UNIT_WIDTHS["day"] - _MAX_EAST_OFFSET if is_date else now - _MAX_EAST_OFFSET
        return _Moment(earliest, now + _UNIT_WIDTHS["day"] + _MAX_WEST_OFFSET, is_typed=True)

    def _moved(self, node: exp.Expr) -> _Moment | None:
        moment, by = self._moment(node.this), _length(node.expression)
        if moment is None or by is None or (isinstance(node.this, exp.Literal) and not moment.is_typed):
            return None
        sign = 1 if isinstance(node, exp.Add) else -1
        ends = [moment.earliest + sign * length for length in by] + [moment.latest + sign * length for length in by]
        return _Moment(min(ends), max(ends), is_typed=True)


_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.NullSafeEQ: exp.NullSafeEQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


def _ends(kind: type[exp.Expr], earliest: datetime, latest: datetime, width: timedelta) -> tuple[datetime, datetime]:
    if kind in (exp.GT, exp.GTE):
        return earliest, FOREVER
    end = latest if kind is exp.LT and not width else latest + width + _INSTANT
    return (BEGINNING, end) if kind in (exp.LT, exp.LTE) else (earliest, end)


def _interval(start: datetime, end: datetime) -> Ranges:
    start, end = max(start, BEGINNING), min(end, FOREVER)
    return (Interval(start, end),) if start < end else ()


def intersection(left: Ranges, right: Ranges) -> Ranges:
    pieces = (first.clip(second) for first in left for second in right)
    return union(piece for piece in pieces if piece is not None)


def _as_text(moment: _Moment, constant: exp.Expr) -> _Moment:
    """SQLite compares letters: of one day `2026-11-16 23:59` stands before `2026-11-16T00:00`. A constant with one of these may
    let through what is written with the other.
    """
    text = constant.unnest().name if isinstance(constant.unnest(), exp.Literal) else "0000-00-00 "
    if len(text) > len("2026-11-16"):  # `2026-11-16` and `2026-11-16 05:00` stand before `2026-11-16 05:00:00`
        moment = replace(moment, latest=moment.latest + _INSTANT)
    if text[10:11] == "T":
        return replace(moment, latest=moment.latest + _UNIT_WIDTHS["day"])
    return replace(moment, earliest=moment.earliest - _UNIT_WIDTHS["day"]) if text[10:11] == " " else moment


def _is_text(node: exp.Expr) -> bool:
    """Without a type of its own, and more than a day."""
    return isinstance(node.unnest(), exp.Literal) and not _is_day(node.unnest())


def _is_day(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and len(node.this) == len("2026-11-16")


def _is_plain_date(node: exp.Expr) -> TypeGuard[exp.Date | exp.TsOrDsToDate]:
    """Of one argument: a second one is a zone, a way to read texts, or moves the day."""
    parts = (part for part, value in node.args.items() if value not in (None, False, []))
    return isinstance(node, exp.Date | exp.TsOrDsToDate) and set(parts) == {"this"}


def _length(node: exp.Expr) -> tuple[timedelta, timedelta] | None:
    """The shortest and the longest that an INTERVAL, or a number of days, may be."""
    if isinstance(node, exp.Interval):
        # Of `DAY TO SECOND` it depends on the database which of both is counted.
        unit = node.unit.name.lower().removesuffix("s") if isinstance(node.unit, exp.Var) else ""
        count = node.this
        if (
            isinstance(count, exp.Literal)
            and count.this.isdecimal()
            and len(count.this) < 6
            and unit in _INTERVAL_LENGTHS
        ):
            least, most = _INTERVAL_LENGTHS[unit]
            return int(count.this) * least, int(count.this) * most + timedelta(hours=1)
    return None


_INTERVAL_LENGTHS = {
    "minute": (timedelta(minutes=1), timedelta(minutes=1)),
    "hour": (timedelta(hours=1), timedelta(hours=1)),
    "day": (timedelta(hours=23), timedelta(hours=25)),
    "week": (timedelta(days=6, hours=23), timedelta(days=7, hours=1)),
    "month": (timedelta(days=27, hours=23), timedelta(days=31, hours=1)),
    "year": (timedelta(days=364, hours=23), timedelta(days=366, hours=1)),
}
