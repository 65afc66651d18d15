"""Open incidents of what a dataset is made from, however far up the lineage: they may be why it fails."""

from __future__ import annotations

from dataclasses import dataclass

from incidents.models import Incident, IncidentState
from lakehub.catalog.models import Dataset, LineageEdge

MAX_STEPS = 10
"""Steps along the lineage."""


@dataclass(frozen=True)
class UpstreamIncident:
    incident: Incident
    steps: int


def open_upstream_incidents(dataset: Dataset) -> list[UpstreamIncident]:
    """The nearest first. One query a step, and one for the incidents."""
    steps = _upstream_distances(dataset)
    if not steps:
        return []
    incidents = Incident.objects.filter(dataset__in=steps, dataset__offboarded_at=None, resolved_at=None)
    real = incidents.exclude(
        state__in=(IncidentState.REPORTED, IncidentState.MATCHED, IncidentState.WAITING, IncidentState.REJECTED)
    )
    rows = [UpstreamIncident(incident, steps[incident.dataset_id]) for incident in real.select_related("dataset")]
    return sorted(rows, key=lambda row: (row.steps, row.incident.opened_at, row.incident.pk))


def _upstream_distances(dataset: Dataset) -> dict[int, int]:
    """How far each dataset upstream is; a lineage that goes in a circle does not lead back."""
    distances: dict[int, int] = {}
    reached = {dataset.pk}
    for step in range(1, MAX_STEPS + 1):
        edges = LineageEdge.objects.filter(downstream__in=reached).values_list("upstream", flat=True)
        reached = set(edges) - set(distances) - {dataset.pk}
        if not reached:
            break
        distances |= dict.fromkeys(reached, step)
    return distances
