"""What the forms of an incident's page offer: whom it may be given to, what it may be merged with, what may be split off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frontend.queries.incident import unit_name
from incidents.models import Incident, Span
from ingestion.models import JobRun
from lakehub.accounts.models import User
from lakehub.accounts.permissions import ACTIONS

MOST_SPLIT = 100
RUNS = 10


@dataclass(frozen=True)
class Choices:
    people: list[User]
    """Of the owning team, those who may have it."""
    others: list[Incident]
    """Open ones of the same dataset and category."""
    units: list[tuple[int, str]]
    """What fails now, by unit; at least two, or there is nothing to split."""
    runs: list[JobRun]
    """The newest of the dataset, for the backfill."""


def choices(incident: Incident, spans: Sequence[Span]) -> Choices:
    """Three queries. `spans` come with their units, tests and copies."""
    roles = ACTIONS["acknowledge"]
    people = User.objects.filter(
        is_active=True, memberships__team=incident.dataset.team, memberships__role__in=roles
    ).order_by("username")
    runs = JobRun.objects.filter(copy__dataset=incident.dataset).select_related("copy__data_center").order_by("-pk")
    active = [span for span in spans if span.ended_at is None]
    units = [(span.unit_id, unit_name(span.unit)) for span in active[:MOST_SPLIT]]
    return Choices(list(people), _others(incident), units if len(active) > 1 else [], list(runs[:RUNS]))


def _others(incident: Incident) -> list[Incident]:
    if incident.reported:
        return []
    same = Incident.objects.filter(
        resolved_at=None, reported=False, dataset=incident.dataset_id, category=incident.category
    )
    return list(same.exclude(pk=incident.pk).order_by("opened_at")[:MOST_SPLIT])
