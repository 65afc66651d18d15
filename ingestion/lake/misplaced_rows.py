"""Rows whose partition cannot be, as findings: all other partitions go on without them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from ingestion.lake.findings import PARTITION_AHEAD, PARTITION_UNREADABLE, replace_findings
from ingestion.models import Finding
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.partitions import Grain, parse_partition_name
from lakehub.kernel.partitions.form import is_too_far_ahead

MAX_NAMED_VALUES = 20
MAX_REMEMBERED_VALUES = 80
"""Beside the named ones, the newest first: whoever reads their rows again does not count them twice."""
MAX_VALUE_LENGTH = 200
"""Of a value that is kept: a row may have megabytes where a day should be."""


def report_misplaced_rows(copy: DatasetCopy, rows: Mapping[str | None, int | None], *, now: datetime) -> None:
    """`rows` are those of each partition by its name; what no name of a partition is under the text that it is, a null under
    None. None as a count: the table does not say how many. What is not among them is cleared."""
    grain, zone = copy.layout.partition_grain, copy.layout.zone
    unreadable: dict[str | None, int | None] = {}
    partitions: dict[Interval, int | None] = {}
    for name, count in rows.items():
        if count == 0:
            continue
        try:
            partitions[parse_partition_name(name or "", grain, zone)] = count
        except ValueError:
            unreadable[name] = count
    report_unreadable_values(copy, unreadable, now=now)
    report_rows_ahead(copy, partitions, now=now)


@dataclass(frozen=True)
class UnreadableValues:
    """Values that are no partition, with their number of rows (None: not known), and how many values and rows there are in all:
    at least those, where not every value is named."""

    rows: Mapping[str | None, int | None]
    values: int
    total: int | None

    @classmethod
    def of(cls, rows: Mapping[str | None, int | None], totals: Mapping[str, int] | None = None) -> UnreadableValues:
        """`totals`: of `values` and `rows`, where `rows` names the most frequent values only."""
        named = {_cut(value): count for value, count in rows.items()}
        values, total = (totals["values"], totals["rows"]) if totals else (len(named), _total(named))
        return cls(named, values, total)

    @classmethod
    def of_detail(cls, detail: Mapping[str, Any]) -> UnreadableValues:
        """What a finding says."""
        named = [*detail["sample"], *detail.get("others", ())]
        return cls({each["value"]: each["rows"] for each in named}, detail["values"], detail["rows"])

    def with_part(self, part: UnreadableValues) -> UnreadableValues:
        """What a look at a part of the source saw, beside what is known: the totals never shrink. A row may be read again, so of
        the counts of one value the larger stays; of values that `part` does not name nobody knows whether they are new."""
        seen = {value: max(count or 0, self.rows.get(value) or 0) or None for value, count in part.rows.items()}
        more = sum(max(0, (count or 0) - (self.rows.get(value) or 0)) for value, count in seen.items())
        values = self.values + sum(value not in self.rows for value in seen)
        total = None if self.total is None or part.total is None else max(self.total + more, part.total)
        others = {value: count for value, count in self.rows.items() if value not in seen}
        return UnreadableValues(seen | others, max(values, part.values), total)


def report_unreadable_values(
    copy: DatasetCopy,
    rows: Mapping[str | None, int | None],
    totals: Mapping[str, int] | None = None,
    *,
    now: datetime,
) -> None:
    """All values that are no partition, with their number of rows; none: they are gone. `totals` where not all are named."""
    _report_unreadable(copy, UnreadableValues.of(rows, totals), now=now)


def report_more_unreadable_values(
    copy: DatasetCopy,
    rows: Mapping[str | None, int | None],
    totals: Mapping[str, int] | None = None,
    *,
    now: datetime,
) -> None:
    """What a look at a part of the source saw, beside what is known."""
    part = UnreadableValues.of(rows, totals)
    known = Finding.objects.filter(copy=copy, kind=PARTITION_UNREADABLE, cleared_at=None).first()
    _report_unreadable(copy, UnreadableValues.of_detail(known.detail).with_part(part) if known else part, now=now)


def _report_unreadable(copy: DatasetCopy, unreadable: UnreadableValues, *, now: datetime) -> None:
    dataset = copy.layout
    finding = _unreadable_finding(unreadable, dataset.partition_column, dataset.partition_grain)
    replace_findings(copy, PARTITION_UNREADABLE, {EVERYTHING: finding} if unreadable.rows else {}, now=now)


def report_rows_ahead(copy: DatasetCopy, partitions: Mapping[Interval, int | None], *, now: datetime) -> None:
    """Of all partitions that hold rows, or of the late ones among them."""
    dataset = copy.layout
    grain, zone = dataset.partition_grain, dataset.zone
    ahead = sorted(partition for partition in partitions if is_too_far_ahead(partition, grain, zone, now=now))
    current = {
        partition: _ahead_finding(dataset.partition_label(partition), partitions[partition], len(ahead), grain)
        for partition in ahead[:MAX_NAMED_VALUES]
    }
    replace_findings(copy, PARTITION_AHEAD, current, now=now)


def _unreadable_finding(unreadable: UnreadableValues, column: str, grain: Grain) -> tuple[str, dict[str, Any]]:
    rows = unreadable.rows
    largest = sorted(rows, key=lambda name: (-(rows[name] or 0), name or ""))[:MAX_NAMED_VALUES]
    others = islice((name for name in rows if name not in largest), MAX_REMEMBERED_VALUES)
    values = ", ".join(f"{_shown(name)}{_counted(rows[name])}" for name in largest[:3])
    unnamed = unreadable.values - len(largest[:3])
    more = f" and {unnamed:,} more values{_counted_in_all(unreadable.total)}" if unnamed > 0 else ""
    message = (
        f"`{column}` holds values that are no {grain}: {values}{more}. Their rows are in no partition, and no test of "
        "partitions sees them. Correct the values in the source, or the form of the partition column."
    )
    detail = {"values": unreadable.values, "rows": unreadable.total, "sample": _listed(rows, largest)}
    remembered = _listed(rows, others)
    return message, detail | ({"others": remembered} if remembered else {})


def _listed(rows: Mapping[str | None, int | None], names: Iterable[str | None]) -> list[dict[str, Any]]:
    return [{"value": name, "rows": rows[name]} for name in names]


def _ahead_finding(name: str, count: int | None, partitions: int, grain: Grain) -> tuple[str, dict[str, Any]]:
    others = f" So do {partitions - 1:,} other partitions." if partitions > 1 else ""
    message = (
        f"{name}{_counted(count)} lies in the future by more than one {grain}.{others} Freshness does not count these rows. "
        "Correct the values in the source, or the time zone of the partitions."
    )
    return message, {"values": 1, "rows": count, "sample": [{"value": name, "rows": count}]}


def _total(rows: Mapping[str | None, int | None]) -> int | None:
    counts = [count for count in rows.values() if count is not None]
    return sum(counts) if len(counts) == len(rows) else None


def _cut(name: str | None) -> str | None:
    """The beginning; with its escapes where it holds what no database takes, such as NUL."""
    if name is None:
        return None
    text = name if len(name) <= MAX_VALUE_LENGTH else f"{name[:MAX_VALUE_LENGTH]}…"
    return text if text.isprintable() else repr(text)[1:-1]


def _shown(name: str | None) -> str:
    return "null" if name is None else repr(name[:60])


def _counted(count: int | None) -> str:
    return "" if count is None else f" ({count:,} {'row' if count == 1 else 'rows'})"


def _counted_in_all(count: int | None) -> str:
    return "" if count is None else f" ({count:,} rows in all)"
