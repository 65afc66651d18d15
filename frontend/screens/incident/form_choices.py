"""What the forms of an incident's page offer: whom it may be given to, what it may be merged with, what may be split off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frontend.screens.incident.queries import unit_label
from incidents.models import Incident, Span
from ingestion.models import JobRun
from lakehub.accounts.models import User
from lakehub.accounts.permissions import ROLES_BY_ACTION

MAX_SPLIT_UNITS = 100
MAX_RUNS = 10


@dataclass(frozen=True)
class FormChoices:
    people: list[User]
    """Of the owning team, those who may have it."""
    others: list[Incident]
    """Open ones of the same dataset and category."""
    units: list[tuple[int, str]]
    """What fails now, by unit; at least two, or there is nothing to split."""
    runs: list[JobRun]
    """The newest of the dataset, for the backfill."""


def form_choices(incident: Incident, spans: Sequence[Span]) -> FormChoices:
    """Three queries. `spans` come with their units, tests and copies."""
    roles = ROLES_BY_ACTION["acknowledge"]
    people = User.objects.filter(
        is_active=True, memberships__team=incident.dataset.team, memberships__role__in=roles
    ).order_by("username")
    runs = JobRun.objects.filter(copy__dataset=incident.dataset).select_related("copy__data_center").order_by("-pk")
    active = [span for span in spans if span.ended_at is None]
    units = [(span.unit_id, unit_label(span.unit)) for span in active[:MAX_SPLIT_UNITS]]
    return FormChoices(
        list(people), _merge_candidates(incident), units if len(active) > 1 else [], list(runs[:MAX_RUNS])
    )


def _merge_candidates(incident: Incident) -> list[Incident]:
    if incident.reported:
        return []
    same = Incident.objects.filter(
        resolved_at=None, reported=False, dataset=incident.dataset_id, category=incident.category
    )
    return list(same.exclude(pk=incident.pk).order_by("opened_at")[:MAX_SPLIT_UNITS])
