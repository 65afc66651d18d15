"""What is wrong, in words that decide something: the title of an incident where its measurements say it better than its name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from frontend.ui import words
from incidents.models import Incident, Span
from lakehub.kernel.interval import Interval
from quality.models import Category, Unit

_LATE = re.compile(r": ([^:]+), needs <=? ?(.+?) \(")
_COUNTS = re.compile(r"([\d,]+) of ([\d,]+)")


def incident_headline(incident: Incident, spans: Sequence[Span]) -> str:
    """From the span that has failed longest, the active ones first. `spans` come with their units, tests and copies."""
    if incident.reported or not spans:
        return title_without_dataset(incident)
    active = [span for span in spans if span.ended_at is None]
    first = min(active or spans, key=lambda span: (span.began_at, span.start))
    alike = [span for span in active or spans if (span.unit.test_id, span.start) == (first.unit.test_id, first.start)]
    where = " and ".join(sorted({span.copy.data_center.name for span in alike}))
    headline = _measured_headline(incident, first.unit, where, over=not active)
    others = len(active or spans) - len(alike)
    return f"{headline}{f', and {others:,} more' if others else ''}" if headline else title_without_dataset(incident)


def title_without_dataset(incident: Incident) -> str:
    """The title where the name of the dataset stands beside it anyway."""
    bare = incident.title.removeprefix(f"{incident.dataset.name}: ")
    return bare[:1].upper() + bare[1:]


def _measured_headline(incident: Incident, unit: Unit, where: str, *, over: bool) -> str:
    detail: dict[str, Any] = unit.detail if isinstance(unit.detail, dict) else {}
    # What is over passes now; its title keeps what was wrong.
    counts = _COUNTS.search(incident.title if over else str(detail.get("behind", "")))
    dataset = incident.dataset
    data = Interval(unit.start, unit.end)
    of_what = "" if data.is_everything else f" of {words.partition(data, dataset.partition_grain, dataset.zone)}"
    if incident.category == Category.FRESHNESS:
        return _lateness_headline(incident, unit, where, over=over)
    if counts is None:
        return ""
    part, whole = (int(count.replace(",", "")) for count in counts.groups())
    if incident.category in (Category.CONSISTENCY, Category.COMPLETENESS) and part < whole:
        verb = "lacked" if over else "lacks" if " and " not in where else "lack"
        return f"{where} {verb} {whole - part:,} of {whole:,} rows{of_what}"
    if incident.category == Category.DUPLICATES and part > 0:
        verb = "repeated" if over else "repeats" if part == 1 else "repeat"
        return f"{part:,} of {whole:,} rows {verb} a primary key in {where}"
    return ""


def _lateness_headline(incident: Incident, unit: Unit, where: str, *, over: bool) -> str:
    name = incident.dataset.name
    if over:
        match = _LATE.search(incident.title)
        return f"{name} in {where} was {match[1]} behind, its SLA is {match[2]}" if match else ""
    observed = unit.detail.get("observed") if isinstance(unit.detail, dict) else None
    return f"{name} in {where} is {observed} behind, its SLA is {unit.threshold.lstrip('<= ')}" if observed else ""
