"""What a partition column most likely says: its grain and its form, from its type and its newest values; and what the newest means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from lakehub.catalog.metadata import ColumnType, NewestValues, TableMetadata
from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain, local_bounds, partition_at, partition_of_local
from lakehub.kernel.partitions.form import (
    CANONICAL,
    EPOCHS,
    TIME,
    BadPartitionForm,
    PartitionForm,
    partition_form,
    split_columns,
)

SAMPLE_VALUES = 500
_MAX_SHOWN = 60
_MIN_READABLE_SHARE = 0.9
_MIN_FOR_WIDER_GRAIN = 3
_PLAUSIBLE_YEARS = range(1970, 2101)
_INTEGER_PATTERNS = {
    Grain.HOUR: "%Y%m%d%H",
    Grain.DAY: "%Y%m%d",
    Grain.WEEK: "%G%V",
    Grain.MONTH: "%Y%m",
    Grain.YEAR: "%Y",
}
_CANDIDATES: tuple[tuple[Grain, tuple[str, ...]], ...] = (
    (
        Grain.DAY,
        (CANONICAL, "%Y%m%d", "%d.%m.%Y", "%Y/%m/%d", "%Y_%m_%d", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%d-%b-%Y"),
    ),
    (Grain.HOUR, (CANONICAL, "%Y%m%d%H", "%Y-%m-%d %H", "%Y-%m-%d-%H", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S")),
    (Grain.MONTH, (CANONICAL, "%Y%m", "%m.%Y", "%Y/%m", "%b %Y")),
    (Grain.WEEK, (CANONICAL, "%G%V", "%GW%V")),
    (Grain.QUARTER, (CANONICAL, "%YQ%q")),
    (Grain.YEAR, (CANONICAL,)),
)


@dataclass(frozen=True)
class PartitionProposal:
    grain: Grain
    form: str


def propose_partition(
    table: TableMetadata, columns: str, values: Sequence[tuple[object, ...]], zone: ZoneInfo
) -> PartitionProposal | None:
    """None where neither type nor values say a time; several columns have to be said by their owner."""
    names = split_columns(columns)
    if len(names) != 1 or names[0] not in table.names:
        return None
    kind = _types(table, names)[0]
    if kind in (ColumnType.DATE, ColumnType.TIMESTAMP):
        days = [value for (value,) in values if isinstance(value, date)]
        return PartitionProposal(_grain_of_days(days), TIME)
    if kind not in (ColumnType.STRING, ColumnType.INTEGER):
        return None
    return next(_fitting(names, values, zone), None)


def _fitting(
    names: tuple[str, ...], values: Sequence[tuple[object, ...]], zone: ZoneInfo
) -> Iterator[PartitionProposal]:
    for grain, texts in _CANDIDATES:
        for text in texts:
            form = partition_form(names[0], grain, zone, text)
            read = [local_bounds(partition, grain, zone)[0] for partition in readable_partitions(form, values)]
            plausible = [at for at in read if at.year in _PLAUSIBLE_YEARS]
            if values and len(plausible) >= _MIN_READABLE_SHARE * len(values):
                wider = _grain_of_days(plausible) if grain is Grain.DAY and text else grain
                yield PartitionProposal(wider, text)


def _grain_of_days(days: Sequence[date]) -> Grain:
    """Dates that are all first days of months, or all Mondays, stand for these."""
    if len(days) < _MIN_FOR_WIDER_GRAIN or any(
        isinstance(day, datetime) and (day.hour or day.minute or day.second) for day in days
    ):
        return Grain.DAY
    if all(day.day == 1 for day in days):
        return Grain.MONTH
    return Grain.WEEK if all(day.weekday() == 0 for day in days) else Grain.DAY


def form_by_types(table: TableMetadata, columns: str, grain: Grain, text: str) -> str:
    """The form that is meant where the types of the columns say it: times are cut, numbers are written without a zero in front."""
    kinds = _types(table, split_columns(columns))
    if not text and kinds == [ColumnType.TIMESTAMP]:
        return TIME
    if not text and kinds == [ColumnType.DATE] and grain is not Grain.DAY:
        return TIME
    if not text and kinds == [ColumnType.INTEGER] and grain in _INTEGER_PATTERNS:
        return CANONICAL if grain is Grain.YEAR else _INTEGER_PATTERNS[grain]
    patterns = text.split(",")
    if "%" not in text or len(patterns) != len(kinds):
        return text
    return ", ".join(
        pattern.strip().replace("%m", "%-m").replace("%d", "%-d").replace("%H", "%-H")
        if kind is ColumnType.INTEGER and len(pattern.strip()) == 2
        else pattern.strip()
        for pattern, kind in zip(patterns, kinds, strict=True)
    )


def partition_problem(table: TableMetadata, form: PartitionForm) -> str:
    """Why columns of these types cannot say partitions so, with the remedy; empty where they can."""
    for column, kind in zip(form.columns, _types(table, form.columns), strict=True):
        is_time = kind in (ColumnType.DATE, ColumnType.TIMESTAMP)
        if form.is_time and not is_time:
            return f"Column `{column}` is {kind} and holds no times: write a pattern such as %Y%m%d."
        if not form.is_time and kind is ColumnType.TIMESTAMP:
            return f"Column `{column}` is {kind}: write the form `{TIME}`, and it is cut to the grain."
        if kind is ColumnType.DATE and (form.is_pattern or form.text in EPOCHS):
            return f"Column `{column}` is {kind}: write the form `{TIME}`."
        if kind is ColumnType.DATE and form.grain is Grain.HOUR:
            return f"Column `{column}` is {kind}, which says no hours. Choose the grain day, or a column with the time."
        if form.text in EPOCHS and kind is not ColumnType.INTEGER:
            return f"Column `{column}` is {kind}, and {form.text} are whole numbers."
        if not is_time and kind not in (ColumnType.STRING, ColumnType.INTEGER, ColumnType.DECIMAL):
            return (
                f"Column `{column}` is {kind} and says no partition. Choose a column of text, whole numbers, dates or "
                "timestamps; leave the partition column empty to test the table as a whole."
            )
    return ""


def sample_problem(form: PartitionForm, newest: NewestValues) -> str:
    """Why none of the values looked at is a partition; empty where one is. The others will be findings."""
    values = newest.values
    if not values or readable_partitions(form, values):
        return ""
    shown = _raw_text(values[0])[:_MAX_SHOWN]
    scope = f", {newest.scope}," if newest.scope else ""
    example = form.value_of(partition_at(datetime(2026, 1, 16, 12, tzinfo=UTC), form.grain, form.zone))
    return (
        f"None of the {len(values):,} values looked at{scope} says a {form.grain}, such as {shown!r}. Expected were values "
        f"such as {example!r}. Write how they say it, such as %Y%m%d, or choose another grain or column."
    )


def newest_meaning(form: PartitionForm, newest: NewestValues) -> str:
    """`20260116 = 16 January 2026, Europe/Berlin`, and of how many rows that is the newest; empty where no value is a partition."""
    scope = f" (the newest {newest.scope})" if newest.scope else ""
    for value in newest.values:
        partition = _partition_of(form, value)
        if partition is not None:
            return f"{_raw_text(value)} = {_partition_text(partition, form)}, {form.zone.key}{scope}"
    return ""


def readable_partitions(form: PartitionForm, values: Sequence[tuple[object, ...]]) -> list[Interval]:
    return [partition for value in values if (partition := _partition_of(form, value)) is not None]


def _partition_of(form: PartitionForm, value: tuple[object, ...]) -> Interval | None:
    try:
        if form.is_time:
            return _partition_of_time(form, value[0])
        return form.parse(_raw_text(value))
    except (ValueError, OverflowError):
        return None


def _partition_of_time(form: PartitionForm, value: object) -> Interval | None:
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            return partition_at(value, form.grain, form.zone)
        if form.text != TIME:
            return partition_at(value.replace(tzinfo=UTC), form.grain, form.zone)
        return partition_of_local(value, form.grain, form.zone)
    if isinstance(value, date):
        return partition_of_local(datetime(value.year, value.month, value.day), form.grain, form.zone)  # noqa: DTZ001 - a local day
    return None


def _raw_text(value: tuple[object, ...]) -> str:
    return "/".join(_text_of(part) for part in value)


def _text_of(part: object) -> str:
    """As engines answer it: a whole number in a decimal column is written without its places."""
    if isinstance(part, Decimal) and part == part.to_integral_value():
        return str(int(part))
    return part.isoformat() if isinstance(part, date) else str(part)


def _partition_text(partition: Interval, form: PartitionForm) -> str:
    local = local_bounds(partition, form.grain, form.zone)[0]
    day = f"{local.day} {local:%B %Y}"
    return {
        Grain.HOUR: f"{day}, {local:%H}:00",
        Grain.WEEK: f"the week from {day}",
        Grain.MONTH: f"{local:%B %Y}",
        Grain.QUARTER: f"Q{(local.month + 2) // 3} {local.year}",
        Grain.YEAR: f"{local.year}",
    }.get(form.grain, day)


def partition_form_or_problem(columns: str, grain: Grain, zone: ZoneInfo, text: str) -> PartitionForm | str:
    try:
        return partition_form(columns, grain, zone, text)
    except BadPartitionForm as bad:
        return str(bad)


def _types(table: TableMetadata, names: Sequence[str]) -> list[ColumnType]:
    types = {column.name: column.type for column in table.columns}
    return [types[name] for name in names]
