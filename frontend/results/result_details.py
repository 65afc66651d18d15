"""What a run saw besides its value: facts, missing records, groups, what travelled, what was not measured anew."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from frontend.results.measurements import parse_amount
from frontend.ui import words
from lakehub.catalog.models import Dataset
from quality.models import Result, Unit

_USUAL_RANGE = re.compile(r"from (.+?) to (.+?) within ")
_TRANSFER_FIELDS = (
    ("share", "Looked at", lambda value: "all keys" if value == 1 else f"{words.percent(value)} of the keys, chosen by hash"),
    ("keys_there", "Keys there", words.number),
    ("keys_here", "Keys here", words.number),
    ("missing_here", "Missing here", words.number),
    ("missing_there", "Missing there", words.number),
    ("unseen", "Missed by the filter", lambda value: f"about {words.number(value)}"),
    ("asked_for", "Asked for", lambda value: words.count(value, "row")),
    ("sampled", "Sampled", lambda value: words.count(value, "row")),
    ("rows_there", "Rows there", words.number),
    ("rows_here", "Rows here", words.number),
    ("missing", "Missing here", words.number),
    ("changed", "Changed", words.number),
    ("doubled", "Doubled here", words.number),
    ("surplus", "Surplus here", words.number),
    ("doubled_there", "Doubled there", words.number),
    ("estimated", "Too many to find all", lambda value: f"about {words.number(value)} differ"),
    ("unexplained", "Parts that differ without a record to name", words.number),
    ("columns", "Compared", lambda value: words.count(value, "column")),
    ("left_out", "Not compared", lambda value: "; ".join(map(str, value))),
    ("bytes_moved", "Moved", words.size),
    ("fpr_asked", "False positives asked", lambda value: words.percent(value)),
    ("fpr_measured", "False positives measured", lambda value: words.percent(value)),
)  # fmt: skip


@dataclass(frozen=True)
class GroupResult:
    name: str
    rows: int
    observed: str
    counts: str


@dataclass(frozen=True)
class GroupResults:
    """Of a dimension test: the failing ones, the worst first, and how many there were."""

    tested: int
    failed: int
    too_small: int
    over_cap: int
    failing: tuple[GroupResult, ...]


@dataclass(frozen=True)
class RecordDifference:
    """A record in which two copies differ: its key, and of a changed one the columns with the values here and there."""

    kind: str
    key: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, str, str], ...]
    count: int


@dataclass(frozen=True)
class ReusedMeasurement:
    read_at: datetime
    instant: str
    measures: int
    of: int

    @property
    def whole(self) -> bool:
        """Nothing was measured anew."""
        return self.measures >= self.of


@dataclass(frozen=True)
class UsualBand:
    """Of an anomaly test: what the series was, and between which values it usually is."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class NamedRecords:
    """Rows of data, for who may see them."""

    columns: tuple[str, ...]
    missing: tuple[tuple[str, ...], ...]
    """The missing records, by those columns."""
    differences: tuple[RecordDifference, ...]


@dataclass(frozen=True)
class RecordCounts:
    """How many records are named, for everybody."""

    missing: int
    differences: int

    @property
    def any(self) -> bool:
        return bool(self.missing or self.differences)


@dataclass(frozen=True)
class ResultDetails:
    row: Unit | Result
    detail: Mapping[str, Any]
    facts: Mapping[str, str]
    named: RecordCounts
    transferred: tuple[tuple[str, str], ...]
    groups: GroupResults | None
    reused: ReusedMeasurement | None

    @property
    def any(self) -> bool:
        return bool(self.facts or self.named.any or self.transferred or self.groups or self.reused)

    @property
    def dataset(self) -> Dataset:
        return (self.row.test if isinstance(self.row, Unit) else self.row.unit.test).dataset

    @property
    def records(self) -> NamedRecords:
        """Templates take `records_of`, which asks whether the viewer may see them."""
        missing = _mappings(self.detail.get("missing"))
        columns = tuple(missing[0]) if missing else ()
        return NamedRecords(
            columns,
            tuple(tuple(_value_text(record.get(column)) for column in columns) for record in missing),
            tuple(map(_record_difference, _mappings(self.detail.get("differences")))),
        )


def result_details(row: Unit | Result) -> ResultDetails:
    detail: dict[str, Any] = row.detail if isinstance(row.detail, dict) else {}
    report = _mapping_or_empty(detail.get("bloom"))
    return ResultDetails(
        row=row,
        detail=detail,
        facts={str(name): str(value) for name, value in _mapping_or_empty(detail.get("facts")).items()},
        named=RecordCounts(len(_mappings(detail.get("missing"))), len(_mappings(detail.get("differences")))),
        transferred=tuple(
            (label, shown(report[name])) for name, label, shown in _TRANSFER_FIELDS if report.get(name) is not None
        ),
        groups=_group_results(_mapping_or_empty(detail.get("groups"))),
        reused=_reused_measurement(_mapping_or_empty(detail.get("reused_from"))),
    )


def _record_difference(record: Mapping[str, Any]) -> RecordDifference:
    columns = _mapping_or_empty(record.get("columns"))
    return RecordDifference(
        kind=str(record.get("kind", "")),
        key=tuple((str(name), _value_text(value)) for name, value in _mapping_or_empty(record.get("key")).items()),
        columns=tuple(
            (str(name), _value_text(values[0]), _value_text(values[1]))
            for name, values in columns.items()
            if isinstance(values, list) and len(values) == 2
        ),
        count=int(record.get("count", 1)),
    )


def usual_band(row: Unit | Result) -> UsualBand | None:
    """From the facts of a deviation; None for tests that do not compare with the past."""
    facts = result_details(row).facts
    usual = _USUAL_RANGE.search(facts.get("usual", ""))
    series = next((facts[name] for name in facts if any(f"deviation({name}, " in other for other in facts)), "")
    numbers = [parse_amount(text) for text in (series, *(usual.groups() if usual else ()))]
    value, low, high = numbers if len(numbers) == 3 else (None, None, None)
    return UsualBand(value, low, high) if value is not None and low is not None and high is not None else None


def _group_results(groups: Mapping[str, Any]) -> GroupResults | None:
    if not groups:
        return None
    failing = (
        GroupResult(
            _value_text(group.get("name")),
            group.get("rows", 0),
            str(group.get("observed", "")),
            str(group.get("behind", "")),
        )
        for group in _list_or_empty(groups.get("failing"))
    )
    tested, failed, too_small, over_cap = (
        int(groups.get(name, 0)) for name in ("tested", "failed", "too_small", "over_cap")
    )
    return GroupResults(tested, failed, too_small, over_cap, tuple(failing))


def _reused_measurement(reused: Mapping[str, Any]) -> ReusedMeasurement | None:
    if not reused.get("read_at"):
        return None
    at = datetime.fromisoformat(str(reused["read_at"]))
    return ReusedMeasurement(
        at, str(reused.get("instant", "")), int(reused.get("measures", 0)), int(reused.get("of", 0))
    )


def _value_text(value: Any) -> str:
    return "no value" if value is None else str(value)


def _list_or_empty(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in _list_or_empty(value) if isinstance(item, dict)]


def _mapping_or_empty(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
