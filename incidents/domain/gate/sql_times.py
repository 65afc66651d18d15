"""What a condition of SQL says about the times in one column: the instants that rows which meet it can have.

A constant is a moment with an earliest and a latest instant that it can mean: a time without an offset is some zone's. A bound
is taken from the end that leaves more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeAlias, TypeGuard
from zoneinfo import ZoneInfo

from sqlglot import exp

from incidents.domain.gate.sql_constants import (
    are_of_one_kind,
    interval_length,
    is_count,
    is_day,
    is_plain_date,
    is_text,
    written_time,
)
from lakehub.kernel.interval import BEGINNING, EVERYTHING, FOREVER, Interval, union
from lakehub.kernel.partitions import Grain, parse_partition_name, partition_at, partition_name
from lakehub.kernel.partitions.form import EPOCHS, PartitionForm

_MAX_EAST_OFFSET, _MAX_WEST_OFFSET = timedelta(hours=14), timedelta(hours=12)
"""How far zones lie ahead of UTC, and behind it."""
_INSTANT = timedelta(microseconds=1)
_ROUNDING = frozenset({"mysql", "tsql"})
"""Dialects in which a time that is cast may come out up to a second later, or earlier: MySQL rounds, MariaDB cuts."""
_ROUNDING_TIMES = frozenset({"athena", "presto", "trino"})
"""Dialects that round to milliseconds what is cast to a time, and a date not at all."""
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
    has_numbers: bool | None = None
    """By its declared type; None: neither numbers nor texts, or not known."""
    may_be_date: bool = False
    """It may be a DATE: a text that it is compared with is cut off to one."""

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
    is_day: bool = False
    """Without a time of day: there is nothing that a cast to a date could cut off."""


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
        ends = node.args["low"], node.args["high"]
        if node.args.get("symmetric") or not are_of_one_kind(ends):
            return UNBOUNDED
        low, high = self._range(exp.GTE, node.this, ends[0]), self._range(exp.LTE, node.this, ends[1])
        return UNBOUNDED if UNBOUNDED in (low, high) else intersection(low, high)

    def _one_of(self, node: exp.In) -> Ranges:
        if not node.expressions or node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
            return UNBOUNDED
        if not are_of_one_kind(node.expressions):
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
        moment = self._widened(moment, left, right)
        if not self._column.names_partitions:
            return _interval(*_ends(kind, moment.earliest, moment.latest, width))
        if not self._is_by_name(moment, is_time=is_time):
            return UNBOUNDED
        if self._column.grain is Grain.HOUR and moment.is_typed:  # the hour may be cut off to be compared with a date
            width += _UNIT_WIDTHS["day"]
        return self._by_name(kind, moment, width)

    def _is_by_name(self, moment: _Moment, *, is_time: bool) -> bool:
        """Otherwise texts compare letter by letter, or not as what they say: `2026` is a day of the Julian calendar to SQLite."""
        if is_time or moment.is_typed:
            return self._column.grain in (Grain.HOUR, Grain.DAY)
        is_sure = (
            self._dialect != "sqlite" or self._column.grain is not Grain.YEAR or self._column.has_numbers is not None
        )
        return moment.is_name and is_sure

    # What a comparison makes of a constant

    def _widened(self, moment: _Moment, left: exp.Expr, right: exp.Expr) -> _Moment:
        is_own = self._is_own(left)
        if is_text(right) and (
            not is_own or self._column.may_be_date
        ):  # what is compared with a date is cut off to one
            moment = replace(moment, earliest=moment.earliest - _UNIT_WIDTHS["day"])
        if not self._column.names_partitions and not is_own and self._may_round(left):
            moment = replace(moment, earliest=moment.earliest - _UNIT_WIDTHS["second"])
        moment = self._rounded(moment)
        return _as_text(moment, right) if self._dialect == "sqlite" and not moment.is_name else moment

    def _may_round(self, left: exp.Expr) -> bool:
        if self._dialect in _ROUNDING:
            return True
        casts = left.find_all(exp.Cast, exp.TryCast)
        return self._dialect in _ROUNDING_TIMES and any(cast.to.this is not exp.DataType.Type.DATE for cast in casts)

    def _rounded(self, moment: _Moment) -> _Moment:
        """As far as the constant may be rounded, or cut: 23:59:59.999 is midnight in a DATETIME of SQL Server, and 23:59:59 to a
        cast of MariaDB."""
        if moment.is_name:
            return moment
        unit = _UNIT_WIDTHS["minute" if self._dialect in _COMPARED_ROUNDED else "second"]
        over = (moment.latest - BEGINNING) % unit
        earliest = moment.earliest - (moment.earliest - BEGINNING) % unit
        return replace(moment, earliest=earliest, latest=moment.latest + (unit - over if over else timedelta()))

    def _by_form(self, kind: type[exp.Expr], left: exp.Expr, right: exp.Expr, form: PartitionForm) -> Ranges:
        """The bare column, compared with a constant that is written just as its values are: texts compare letter by letter."""
        constant = right.unnest()
        if not self._is_own(left.unnest()) or not isinstance(constant, exp.Literal):
            return UNBOUNDED
        is_number = not constant.is_string
        if self._dialect == "sqlite" and self._column.has_numbers is not is_number:
            return UNBOUNDED  # a number stands before every text, unless the column's type makes one of the other
        keeps_order = form.text in EPOCHS if is_number else form.is_ordered
        keeps_order |= is_number and form.is_ordered and is_count(constant.this)
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
            return _interval(BEGINNING, partition_at(moment.latest, grain, zone).start)
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
            cut = self._day if node.to.this is exp.DataType.Type.DATE else self._fraction
            return None if inside is None else (inside[0] + cut, True)
        if is_plain_date(node):
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

    @property
    def _fraction(self) -> timedelta:
        """What a cast to a time cuts off."""
        cuts = self._dialect in _ROUNDING | _ROUNDING_TIMES and not self._column.names_partitions
        return _UNIT_WIDTHS["second"] if cuts else timedelta()

    # Constants

    def _moment(self, node: exp.Expr) -> _Moment | None:
        if isinstance(node, exp.Paren):
            return self._moment(node.this)
        if isinstance(node, exp.Literal) and node.is_string:
            moment = self._written(node.this)
            return None if moment is None else replace(moment, is_day=is_day(node))
        if self._is_cast_to_time(node):
            return self._typed(node.this, is_date=node.to.this is exp.DataType.Type.DATE)
        if is_plain_date(node):
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
        earliest = moment.earliest - (_UNIT_WIDTHS["day"] if is_date and not moment.is_day else timedelta())
        is_name = moment.is_name and is_date and self._column.grain is Grain.DAY
        return _Moment(earliest, moment.latest, is_name, is_typed=True, is_day=is_date)

    def _written(self, text: str) -> _Moment | None:
        if self._column.names_partitions:
            try:
                named = parse_partition_name(text, self._column.grain, self._column.zone)
            except (ValueError, OverflowError):
                named = None
            if named is not None and text == partition_name(named, self._column.grain, self._column.zone):
                return _Moment(named.start, named.start, is_name=True)
        try:
            at = written_time(text, self._dialect)
            return None if at is None else self._in_some_zone(at)
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
        moment, by = self._moment(node.this), interval_length(node.expression)
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
