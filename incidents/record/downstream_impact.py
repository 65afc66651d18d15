"""What an incident may reach: datasets made from this one, and consumers whom the gate told of its data."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Q

from incidents.models import GateQuestion, Incident, Span
from lakehub.catalog.models import Dataset, LineageEdge

MAX_STEPS = 3
"""Steps of lineage; what is further away hears of it from what lies between."""
MAX_RANGES = 20
MAX_CONSUMERS = 10


@dataclass(frozen=True)
class DownstreamDataset:
    """A dataset that is made from the one that fails, directly or over others. `via` is the last one before it."""

    dataset: Dataset
    steps: int
    via: Dataset

    def __str__(self) -> str:
        return f"{self.dataset.name}, {'made from' if self.steps == 1 else f'{self.steps} steps from'} it"


@dataclass(frozen=True)
class AffectedConsumer:
    """Who asked the gate for data that is affected and did not hear that it passes; `blocked` of the questions were."""

    name: str
    questions: int
    blocked: int
    last_at: datetime


def downstream_datasets(
    incident: Incident, spans: Iterable[Span], *, depth: int = MAX_STEPS
) -> list[DownstreamDataset]:
    """Live datasets within `depth` steps that have a copy where this one fails, nearest first. One query a step.

    Data flows within a data center: what lies elsewhere only is not reached.
    """
    places = _failing_data_centers(incident, spans)
    by_dataset: dict[int, DownstreamDataset] = {}
    front = {incident.dataset_id}
    for steps in range(1, depth + 1):
        edges = LineageEdge.objects.filter(upstream__in=front, downstream__offboarded_at=None)
        if places is not None:
            edges = edges.filter(downstream__copies__data_center__in=places)
        for edge in edges.distinct().select_related("upstream", "downstream__team").order_by("downstream__name", "pk"):
            if edge.downstream_id != incident.dataset_id:
                by_dataset.setdefault(edge.downstream_id, DownstreamDataset(edge.downstream, steps, edge.upstream))
        front = {pk for pk, reached in by_dataset.items() if reached.steps == steps}
        if not front:
            break
    return list(by_dataset.values())


def _failing_data_centers(incident: Incident, spans: Iterable[Span]) -> Collection[int] | None:
    """The data centers where it fails; None: all of them."""
    if not incident.reported:
        return {span.copy.data_center_id for span in spans}
    copy = incident.report.copy
    return None if copy is None else {copy.data_center_id}


def affected_consumers(incident: Incident, spans: Iterable[Span], *, now: datetime) -> list[AffectedConsumer]:
    """Who met it at the gate while it was open, most questions first. One query."""
    overlaps = Q(pk__in=())
    for span in list(spans)[:MAX_RANGES]:
        overlaps |= Q(copy=span.copy_id, start__lt=span.end, end__gt=span.start)
    questions = GateQuestion.objects.filter(overlaps, at__gte=incident.opened_at, at__lte=incident.resolved_at or now)
    rows = (
        questions.exclude(verdict="pass")
        .values("consumer")
        .annotate(n=Count("pk"), blocked=Count("pk", filter=Q(allowed=False)), last=Max("at"))
    )
    met = rows.order_by("-n", "consumer")[:MAX_CONSUMERS]
    return [AffectedConsumer(row["consumer"], row["n"], row["blocked"], row["last"]) for row in met]
