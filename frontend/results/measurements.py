"""What a test observed and what it needs, as people read it. The engine says it in words in `detail`; numbers are for plots."""

from __future__ import annotations

import re
from typing import Any

from frontend.ui import words
from quality.models import QualityTest, Result, Unit

_SECONDS = {"ms": 0.001, "s": 1, "min": 60, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def observed_text(row: Unit | Result) -> str:
    """`98.98%`."""
    text = _detail(row).get("observed")
    return str(text) if text else words.value_with_unit(row.observed, measurement_unit(row))


def threshold_text(row: Unit | Result) -> str:
    """`> 99.9%`."""
    return words.comparison(row.threshold) or "–"


def counts_text(row: Unit | Result) -> str:
    """The counts behind a share, ready to follow it: ` (975 of 985)`."""
    counts = _detail(row).get("behind")
    return f" ({counts})" if counts else ""


def cause_text(row: Unit | Result) -> str:
    """Why there is no value."""
    return str(_detail(row).get("cause") or _detail(row).get("error") or "")


def formula_text(test: QualityTest, row: Unit | Result | None) -> str:
    """How the value is worked out."""
    formula = str(_detail(row).get("formula") or "") if row is not None else ""
    written = test.version.expression if test.version else ""
    # A query that stands for the name of a metric says less than the name.
    whole = written if not formula or ("query(" in formula and "query(" not in written) else formula
    # What it is held against has a column of its own.
    return whole.removesuffix(row.threshold).strip() if row is not None else whole


def measurement_unit(row: Unit | Result) -> str:
    """What the number counts. Told by the threshold that it is held against."""
    return unit_of_threshold(row.threshold)


def unit_of_threshold(threshold: str) -> str:
    """share, s (seconds), or nothing for a plain number."""
    if threshold.endswith("%"):
        return "share"
    return "s" if re.search(r"\d\s*(ms|s|min|m|h|d|w)\b", threshold) else ""


def threshold_number(threshold: str) -> float | None:
    """The number in `> 99.9%` or `< 1 h 30 min`, on the scale of `observed_text`; None where it holds none."""
    pieces = re.findall(r"([\d.,]+)\s*(%|ms|s|min|m|h|d|w)?(?![\w.])", threshold)
    if not pieces:
        return None
    numbers = [(float(number.replace(",", "")), unit) for number, unit in pieces if number.strip(".,")]
    if numbers[0][1] == "%":
        return round(numbers[0][0] / 100, 12)
    if numbers[0][1] in _SECONDS:
        return sum(number * _SECONDS.get(unit, 0) for number, unit in numbers)
    return numbers[0][0]


def parse_amount(text: str) -> float | None:
    """A value as a result writes it (`-5`, `98.98%`, `3 h 32 min`) as a number, on the scale of `observed_text`."""
    size = threshold_number(text.lstrip("-"))
    return -size if size is not None and text.startswith("-") else size


def _detail(row: Unit | Result) -> dict[str, Any]:
    return row.detail if isinstance(row.detail, dict) else {}
