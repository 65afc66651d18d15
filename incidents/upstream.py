"""Open incidents of what a dataset is made from, however far up the lineage: they may be why it fails."""

from __future__ import annotations

from dataclasses import dataclass

from incidents.models import Incident, State
from lakehub.catalog.models import Dataset, LineageEdge

FURTHEST = 10
"""Steps along the lineage."""


@dataclass(frozen=True)
class Upstream:
    incident: Incident
    steps: int


def open_upstream(dataset: Dataset) -> list[Upstream]:
    """The nearest first. One query a step, and one for the incidents."""
    steps = _steps(dataset)
    if not steps:
        return []
    found = Incident.objects.filter(dataset__in=steps, dataset__offboarded_at=None, resolved_at=None)
    real = found.exclude(state__in=(State.REPORTED, State.MATCHED, State.WAITING, State.REJECTED))
    rows = [Upstream(one, steps[one.dataset_id]) for one in real.select_related("dataset")]
    return sorted(rows, key=lambda row: (row.steps, row.incident.opened_at, row.incident.pk))


def _steps(dataset: Dataset) -> dict[int, int]:
    """How far each dataset upstream is; a lineage that goes in a circle does not lead back."""
    found: dict[int, int] = {}
    reached = {dataset.pk}
    for step in range(1, FURTHEST + 1):
        edges = LineageEdge.objects.filter(downstream__in=reached).values_list("upstream", flat=True)
        reached = set(edges) - set(found) - {dataset.pk}
        if not reached:
            break
        found |= dict.fromkeys(reached, step)
    return found
