"""How the columns of a table say which partition a row belongs to: as the name of a partition, or as a time that lies in it.

A form is written as its owner says it: nothing for names such as 2026-11-16; a pattern such as `%Y%m%d` (of several columns one
each, with commas between); `epoch days`, `epoch seconds` or `epoch milliseconds`, which name the start of a partition; `time` for a
date or timestamp, which is cut to the grain (one without a zone is of the dataset's); `time in UTC` where one without a zone is of UTC.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TypeAlias
from zoneinfo import ZoneInfo

from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import (
    Grain,
    hour_with_offset,
    local_bounds,
    parse_partition_name,
    partition_at,
    partition_name,
    partition_of_local,
    within_known_years,
)
from lakehub.kernel.partitions.patterns import BadPattern, TimePattern, time_pattern

CANONICAL = ""
TIME, TIME_IN_UTC = "time", "time in UTC"
EPOCHS = {
    "epoch days": timedelta(days=1),
    "epoch seconds": timedelta(seconds=1),
    "epoch milliseconds": timedelta(milliseconds=1),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CUT = re.compile(r"(\d{4}-\d\d-\d\d \d\d)(?:@(-?\d+))?", re.ASCII)
_FIELDS_NEEDED: dict[Grain, tuple[frozenset[str], ...]] = {
    Grain.YEAR: (frozenset({"year"}), frozenset({"week year", "week"})),
    Grain.QUARTER: (frozenset({"year", "quarter"}), frozenset({"year", "month"}), frozenset({"year", "day of year"})),
    Grain.MONTH: (frozenset({"year", "month"}), frozenset({"year", "day of year"})),
    Grain.WEEK: (
        frozenset({"week year", "week"}),
        frozenset({"year", "month", "day"}),
        frozenset({"year", "day of year"}),
    ),
    Grain.DAY: (frozenset({"year", "month", "day"}), frozenset({"year", "day of year"})),
    Grain.HOUR: (frozenset({"year", "month", "day", "hour"}), frozenset({"year", "day of year", "hour"})),
}


class BadPartitionForm(ValueError):
    """Says what does not fit, and what to write."""


@dataclass(frozen=True)
class Equals:
    """A row belongs to the partition where the column has this value, written as text."""

    column: str
    value: str


@dataclass(frozen=True)
class Within:
    """A row belongs to the partition where the column lies in `[start, end)`; of a time without a zone `[local_start, local_end)`."""

    column: str
    start: datetime
    end: datetime
    local_start: datetime
    local_end: datetime


Condition: TypeAlias = Equals | Within
"""What one column of a row must be; of several conditions all hold."""


@dataclass(frozen=True)
class PartitionForm:
    """Of a table that is cut by `grain` in `zone`. Raises BadPartitionForm."""

    columns: tuple[str, ...]
    grain: Grain
    zone: ZoneInfo
    text: str = CANONICAL

    def __post_init__(self) -> None:
        if not self.columns or self.grain is Grain.NONE:
            raise BadPartitionForm("A table without a partition column or without a grain has no partitions.")
        if self.is_pattern:
            self._check_pattern()
        elif len(self.columns) > 1:
            raise BadPartitionForm(
                f"The partitions are told by {len(self.columns)} columns ({', '.join(self.columns)}): write a pattern for "
                "each, with commas between, such as %Y%m%d, %H. A column that says no time, such as a region, is left out."
            )
        if self.text == "epoch days" and self.grain is Grain.HOUR:
            raise BadPartitionForm("Days since 1970 say no hours. Choose the grain day, or another form.")

    @property
    def is_pattern(self) -> bool:
        return "%" in self.text

    @property
    def is_time(self) -> bool:
        """The column holds times, which are cut to the grain."""
        return self.text in (TIME, TIME_IN_UTC)

    @property
    def is_named(self) -> bool:
        """The column holds the names that Lakehub gives to partitions."""
        return self.text == CANONICAL

    def parse(self, raw: str | None) -> Interval:
        """The partition of a value as an engine answers it: values of several columns with a slash between, times cut to the
        grain as `2026-11-16 00`, where hours may have their offset in seconds behind: `2026-10-25 02@3600`. Raises ValueError that says why it is none."""
        if raw is None:
            raise ValueError("there is no value")
        return within_known_years(raw, lambda: self._parse(raw))

    @property
    def is_ordered(self) -> bool:
        """Texts compare as the times do that they say: the year first, then ever smaller parts, each of one width."""
        letters = "".join(re.findall(r"%(-?.)", self.text))
        return self.is_named or (self.is_pattern and len(self.columns) == 1 and letters in _ORDERED)

    def name_of(self, raw: str | None) -> str | None:
        """The name of the partition of a value. What is none keeps its value, in quotes where that would be a name."""
        try:
            return partition_name(self.parse(raw), self.grain, self.zone)
        except (ValueError, OverflowError):
            return None if raw is None else self._mark_unreadable(raw)

    def value_of(self, partition: Interval) -> str:
        """What the columns hold in the rows of the partition, with a slash between; of times the name of the partition."""
        if self.is_pattern:
            return self._pattern.format(self._local_start(partition))
        if self.text in EPOCHS:
            return str((self._epoch_start(partition) - _EPOCH) // EPOCHS[self.text])
        return partition_name(partition, self.grain, self.zone)

    def conditions(self, partition: Interval) -> tuple[Condition, ...]:
        if self.is_time:
            start, end = local_bounds(partition, self.grain, self.zone)
            if self.text == TIME_IN_UTC:
                start, end = (
                    instant.astimezone(UTC).replace(tzinfo=None) for instant in (partition.start, partition.end)
                )
            return (Within(self.columns[0], partition.start, partition.end, start, end),)
        if len(self.columns) == 1:
            return (Equals(self.columns[0], self.value_of(partition)),)
        local = self._local_start(partition)
        return tuple(
            Equals(column, pattern.format(local)) for column, pattern in zip(self.columns, self._patterns, strict=True)
        )

    # Patterns

    def _check_pattern(self) -> None:
        try:
            patterns, fields = self._patterns, self._pattern.fields
        except BadPattern as bad:
            raise BadPartitionForm(str(bad)) from bad
        if len(patterns) != len(self.columns):
            raise BadPartitionForm(
                f"The form {self.text!r} has {len(patterns)} patterns for {len(self.columns)} columns "
                f"({', '.join(self.columns)}). Write one for each column, with commas between."
            )
        if not any(needed <= fields for needed in _FIELDS_NEEDED[self.grain]):
            raise BadPartitionForm(
                f"The form {self.text!r} does not say which {self.grain} it is: it says {', '.join(sorted(fields))} only. "
                f"Choose the grain that it says, or a pattern such as {_EXAMPLES[self.grain]}."
            )

    @cached_property
    def _patterns(self) -> tuple[TimePattern, ...]:
        if len(self.columns) == 1:
            return (time_pattern(self.text),)
        return tuple(time_pattern(text.strip()) for text in self.text.split(","))

    @cached_property
    def _pattern(self) -> TimePattern:
        """Of all columns together."""
        return time_pattern("/".join(pattern.text for pattern in self._patterns))

    def _local_start(self, partition: Interval) -> datetime:
        return local_bounds(partition, self.grain, self.zone)[0]

    # Reading

    def _parse(self, raw: str) -> Interval:
        if self.is_time:
            return self._parse_cut(raw)
        if self.is_named:
            partition = parse_partition_name(raw, self.grain, self.zone)
        elif self.is_pattern:
            partition = partition_of_local(self._pattern.parse(raw), self.grain, self.zone)
        else:
            partition = self._parse_epoch(raw)
        if self.value_of(partition) != raw:
            raise ValueError(
                f"{raw!r} is not how {self.value_of(partition)!r} is written, the {self.grain} that it lies in"
            )
        return partition

    def _parse_cut(self, raw: str) -> Interval:
        match = _CUT.fullmatch(raw)
        if match is None:
            raise ValueError(f"{raw!r} is not a time")
        local = datetime.strptime(match.group(1), "%Y-%m-%d %H")  # noqa: DTZ007 - a local time
        if self.grain is Grain.HOUR and match.group(2):
            return hour_with_offset(local, timedelta(seconds=int(match.group(2))), self.zone)
        return partition_of_local(local, self.grain, self.zone)

    def _parse_epoch(self, raw: str) -> Interval:
        if not re.fullmatch(r"-?\d{1,15}", raw, re.ASCII):
            raise ValueError(f"{raw!r} is not a number of {self.text.removeprefix('epoch ')} since 1970")
        at = _EPOCH + int(raw) * EPOCHS[self.text]
        if self.text == "epoch days":
            return partition_of_local(at.replace(tzinfo=None), self.grain, self.zone)
        return partition_at(at, self.grain, self.zone)

    def _epoch_start(self, partition: Interval) -> datetime:
        """Days since 1970 are dates; seconds are instants."""
        return self._local_start(partition).replace(tzinfo=UTC) if self.text == "epoch days" else partition.start

    def _mark_unreadable(self, raw: str) -> str:
        try:
            parse_partition_name(raw, self.grain, self.zone)
        except (ValueError, OverflowError):
            return raw
        return repr(raw)


_ORDERED = ("Y", "Ym", "Ymd", "YmdH", "Yj", "YjH", "Yq", "GV")
_EXAMPLES = {
    Grain.HOUR: "%Y%m%d%H",
    Grain.DAY: "%Y%m%d",
    Grain.WEEK: "%G%V",
    Grain.MONTH: "%Y%m",
    Grain.QUARTER: "%Y-Q%q",
    Grain.YEAR: "%Y",
}


def partition_form(columns: str, grain: Grain, zone: ZoneInfo, text: str = CANONICAL) -> PartitionForm:
    """`columns` as their owner writes them: one, or several with commas between. Raises BadPartitionForm."""
    text = text.strip()
    if "%" not in text and text not in (CANONICAL, TIME, TIME_IN_UTC, *EPOCHS):
        forms = ", ".join((TIME, TIME_IN_UTC, *EPOCHS))
        raise BadPartitionForm(
            f"{text!r} is not a form of a partition. Write a pattern such as {_EXAMPLES.get(grain, '%Y%m%d')}, or one of: {forms}."
        )
    return PartitionForm(split_columns(columns), grain, zone, text)


def split_columns(columns: str) -> tuple[str, ...]:
    return tuple(column.strip() for column in columns.split(",") if column.strip())


def is_too_far_ahead(partition: Interval, grain: Grain, zone: ZoneInfo, *, now: datetime) -> bool:
    """It lies later than now by more than one grain: not in the present partition, and not in the next one."""
    return partition.start > partition_at(now, grain, zone).end
