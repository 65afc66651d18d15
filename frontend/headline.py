"""What is wrong, in words that decide something: the title of an incident where its measurements say it better than its name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from frontend import words
from incidents.models import Incident, Span
from lakehub.kernel.interval import Interval
from quality.models import Category, Unit

_COUNTS = re.compile(r"^([\d,]+) of ([\d,]+)$")


def headline(incident: Incident, spans: Sequence[Span]) -> str:
    """From the active span that has failed longest. `spans` come with their units, tests and copies; what is over keeps its title."""
    active = [span for span in spans if span.ended_at is None]
    if incident.reported or not active:
        return bare_title(incident)
    first = min(active, key=lambda span: (span.began_at, span.start))
    said = _said(incident, first.unit, first.copy.data_center.name)
    more = f", and {words.count(len(active) - 1, 'more')}".replace("mores", "more") if len(active) > 1 else ""
    return f"{said}{more}" if said else bare_title(incident)


def bare_title(incident: Incident) -> str:
    """The title where the name of the dataset stands beside it anyway."""
    bare = incident.title.removeprefix(f"{incident.dataset.name}: ")
    return bare[:1].upper() + bare[1:]


def _said(incident: Incident, unit: Unit, where: str) -> str:
    detail: dict[str, Any] = unit.detail if isinstance(unit.detail, dict) else {}
    counts = _COUNTS.match(str(detail.get("behind", "")))
    dataset = incident.dataset
    of_what = words.partition(Interval(unit.start, unit.end), dataset.partition_grain, dataset.zone)
    if incident.category == Category.FRESHNESS and detail.get("observed"):
        return f"{dataset.name} in {where} is {detail['observed']} behind, needs {unit.threshold}"
    if incident.category in (Category.CONSISTENCY, Category.COMPLETENESS) and counts:
        there, wanted = (int(count.replace(",", "")) for count in counts.groups())
        if there < wanted:
            return f"{where} lacks {wanted - there:,} of {wanted:,} rows of {of_what}"
    return ""
