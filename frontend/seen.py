"""What a run saw besides its value: facts, missing records, groups, what travelled, what was not measured anew."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from frontend import words
from frontend.observed import amount
from quality.models import Result, Unit

_USUAL = re.compile(r"from (.+?) to (.+?) within ")
_MOVED = (
    ("share", "Looked at", lambda value: "all keys" if value == 1 else f"{words.percent(value)} of the keys, chosen by hash"),
    ("keys_there", "Keys there", words.number),
    ("keys_here", "Keys here", words.number),
    ("missing_here", "Missing here", words.number),
    ("missing_there", "Missing there", words.number),
    ("unseen", "Missed by the filter", lambda value: f"about {words.number(value)}"),
    ("asked_for", "Asked for", lambda value: words.count(value, "row")),
    ("sampled", "Sampled", lambda value: words.count(value, "row")),
    ("bytes_moved", "Moved", words.size),
    ("fpr_asked", "False positives asked", lambda value: words.percent(value)),
    ("fpr_measured", "False positives measured", lambda value: words.percent(value)),
)  # fmt: skip


@dataclass(frozen=True)
class Group:
    name: str
    rows: int
    observed: str
    behind: str


@dataclass(frozen=True)
class Groups:
    """Of a dimension test: the failing ones, the worst first, and how many there were."""

    tested: int
    failed: int
    too_small: int
    over_cap: int
    failing: tuple[Group, ...]


@dataclass(frozen=True)
class Reused:
    read_at: datetime
    instant: str
    measures: int
    of: int

    @property
    def whole(self) -> bool:
        """Nothing was measured anew."""
        return self.measures >= self.of


@dataclass(frozen=True)
class Band:
    """Of an anomaly test: what the series was, and between which values it usually is."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Seen:
    facts: Mapping[str, str]
    columns: tuple[str, ...]
    missing: tuple[tuple[str, ...], ...]
    """The missing records, by those columns."""
    moved: tuple[tuple[str, str], ...]
    groups: Groups | None
    reused: Reused | None

    @property
    def any(self) -> bool:
        return bool(self.facts or self.missing or self.moved or self.groups or self.reused)


def seen(row: Unit | Result) -> Seen:
    detail: dict[str, Any] = row.detail if isinstance(row.detail, dict) else {}
    missing = [one for one in _list(detail.get("missing")) if isinstance(one, dict)]
    columns = tuple(missing[0]) if missing else ()
    report = _mapping(detail.get("bloom"))
    return Seen(
        facts={str(name): str(value) for name, value in _mapping(detail.get("facts")).items()},
        columns=columns,
        missing=tuple(tuple(_shown(one.get(column)) for column in columns) for one in missing),
        moved=tuple((label, shown(report[name])) for name, label, shown in _MOVED if report.get(name) is not None),
        groups=_groups(_mapping(detail.get("groups"))),
        reused=_reused(_mapping(detail.get("reused_from"))),
    )


def band(row: Unit | Result) -> Band | None:
    """From the facts of a deviation; None for tests that do not compare with the past."""
    facts = seen(row).facts
    usual = _USUAL.search(facts.get("usual", ""))
    series = next((facts[name] for name in facts if any(f"deviation({name}, " in other for other in facts)), "")
    numbers = [amount(text) for text in (series, *(usual.groups() if usual else ()))]
    value, low, high = numbers if len(numbers) == 3 else (None, None, None)
    return Band(value, low, high) if value is not None and low is not None and high is not None else None


def _groups(found: Mapping[str, Any]) -> Groups | None:
    if not found:
        return None
    failing = (
        Group(_shown(one.get("name")), one.get("rows", 0), str(one.get("observed", "")), str(one.get("behind", "")))
        for one in _list(found.get("failing"))
    )
    tested, failed, too_small, over_cap = (
        int(found.get(name, 0)) for name in ("tested", "failed", "too_small", "over_cap")
    )
    return Groups(tested, failed, too_small, over_cap, tuple(failing))


def _reused(found: Mapping[str, Any]) -> Reused | None:
    if not found.get("read_at"):
        return None
    at = datetime.fromisoformat(str(found["read_at"]))
    return Reused(at, str(found.get("instant", "")), int(found.get("measures", 0)), int(found.get("of", 0)))


def _shown(value: Any) -> str:
    return "no value" if value is None else str(value)


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
