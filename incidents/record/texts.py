"""What an incident is called, and in words what it says: what, observed against needs, over which data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.urls import reverse

from incidents.models import Incident, Span
from lakehub.catalog.models import Dataset
from lakehub.kernel.interval import BEGINNING, FOREVER, Interval, union
from lakehub.kernel.partitions import Grain, partition_at
from quality.models import Unit

MAX_TITLE_LENGTH = 300
MAX_OBSERVED = 3


def data_range_text(data: Interval, dataset: Dataset) -> str:
    """`2026-11-16`, `[2026-11-14, 2026-11-17)`, `from 2026-11-16 on`, `the whole table`."""
    if data.is_everything:
        return "the whole table"
    grain, zone = dataset.partition_grain, dataset.zone
    if grain is not Grain.NONE and partition_at(data.start, grain, zone) == data:
        return dataset.partition_label(data)
    start, end = (_local_text(at, dataset) for at in (data.start, data.end))
    if data.end >= FOREVER:
        return f"from {start} on"
    return f"before {end}" if data.start <= BEGINNING else f"[{start}, {end})"


def _local_text(at: datetime, dataset: Dataset) -> str:
    local = at.astimezone(dataset.zone)
    return f"{local:%Y-%m-%d}" if (local.hour, local.minute) == (0, 0) else f"{local:%Y-%m-%d %H:%M}"


def ranges_text(spans: Iterable[Span], dataset: Dataset) -> str:
    """`dc2: 2026-11-16, 2026-11-18; dc1: 2026-11-16`."""
    by_place: dict[str, list[Interval]] = defaultdict(list)
    for span in spans:
        by_place[span.copy.data_center.name].append(Interval(span.start, span.end))
    return "; ".join(
        f"{place}: {', '.join(data_range_text(piece, dataset) for piece in union(pieces))}"
        for place, pieces in sorted(by_place.items())
    )


def _measurement_text(unit: Unit) -> str:
    """`98.98% (975 of 985), needs > 99.9%`; empty where nothing was observed."""
    detail = unit.detail if isinstance(unit.detail, dict) else {}
    observed = str(detail.get("observed") or ("" if unit.observed is None else f"{unit.observed:,.6g}"))
    behind = f" ({detail['behind']})" if observed and detail.get("behind") else ""
    needs = f"needs {unit.threshold}" if unit.threshold else ""
    return ", ".join(part for part in (f"{observed}{behind}", needs) if part)


@dataclass(frozen=True)
class IncidentText:
    """An incident in words. `about`: the spans that it speaks of, the one that has failed longest first."""

    about: Sequence[Span]
    title: str
    observed: str
    data: str
    link: str


def spans_with_details(incident: Incident) -> list[Span]:
    """The spans of an incident with all that is said of them."""
    related = ("unit__test__version", "copy__data_center")
    return list(Span.objects.filter(incident=incident).select_related(*related).order_by("began_at", "start"))


def describe_incident(incident: Incident, spans: Iterable[Span]) -> IncidentText:
    """By what fails, or what failed where nothing does any more. `spans` come with their units, tests and copies."""
    by_age = sorted(spans, key=lambda span: (span.began_at, span.start))
    about = [span for span in by_age if span.ended_at is None] or by_age
    dataset = incident.dataset
    return IncidentText(
        about,
        title=_title(about, dataset),
        observed=_observed_text(about, dataset),
        data=ranges_text(about, dataset) if about else _reported_range_text(incident),
        link=incident_url(incident),
    )


def _title(about: Sequence[Span], dataset: Dataset) -> str:
    """What is wrong, from the span that has failed longest."""
    if not about:
        return f"{dataset.name}: nothing is failing any more"
    first, others = about[0], len(about) - 1
    where = f"{first.copy.data_center.name}, {data_range_text(Interval(first.start, first.end), dataset)}"
    more = f" and {others} more" if others else ""
    measurement = _measurement_text(first.unit)
    return f"{dataset.name}: {first.unit.test.title}{': ' + measurement if measurement else ''} ({where}{more})"[
        :MAX_TITLE_LENGTH
    ]


def _observed_text(about: Iterable[Span], dataset: Dataset) -> str:
    """`dc2 2026-11-16: 98.98% (975 of 985), needs > 99.9%`, of the few that fail longest."""
    measurements = [
        f"{span.copy.data_center.name} {data_range_text(Interval(span.start, span.end), dataset)}: {_measurement_text(span.unit)}"
        for span in about
        if _measurement_text(span.unit)
    ]
    more = f"; and {len(measurements) - MAX_OBSERVED} more" if len(measurements) > MAX_OBSERVED else ""
    return "; ".join(measurements[:MAX_OBSERVED]) + more


def _reported_range_text(incident: Incident) -> str:
    """Of what a person reported; empty where tests saw it."""
    report = getattr(incident, "report", None) if incident.reported else None
    if report is None:
        return ""
    where = f"{report.copy.data_center.name}: " if report.copy else ""
    return where + data_range_text(Interval(report.start, report.end), incident.dataset)


def incident_url(incident: Incident) -> str:
    return f"{settings.LAKEHUB_BASE_URL}{reverse('incident', args=[incident.pk])}"
