"""What state each category of each dataset is in: the worst of its tests, and who or what keeps it quiet.

Three queries, whatever the number of datasets: the tests, the units that do not pass, the open incidents. The pages and
the API show the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models import Case, Count, Exists, IntegerField, Max, Min, OuterRef, Q, QuerySet, Subquery, Value, When

from incidents.domain.incident.health import (
    STATE_WEIGHTS,
    OpenIncidentFacts,
    category_state,
    incident_state,
    worst_state,
)
from incidents.models import SUPPRESSED, Incident, IncidentState, Message, Span
from incidents.record.snooze import is_snoozed
from lakehub.catalog.models import Dataset
from quality.models import Category, QualityTest, Unit

VERDICT_RANK = {"pass": 0, "warn": 1, "unknown": 2, "fail": 3}
VERDICT_RANK_CASE = Case(
    *(When(verdict=name, then=Value(rank)) for name, rank in VERDICT_RANK.items()), output_field=IntegerField()
)
"""To order units by."""
WAITING_REPORT_STATES = (IncidentState.REPORTED, IncidentState.WAITING)


@dataclass(frozen=True)
class CategoryHealth:
    """One category of one dataset."""

    category: Category
    state: str = "none"
    """As shown: a failing category that is snoozed, suppressed or in grace goes by that name."""
    verdict: str = "none"
    """As the gate sees it."""
    units: int = 0
    """How many do not pass."""
    example: int | None = None
    """One unit of the worst kind."""
    since: datetime | None = None
    incident: Incident | None = None
    """The open one that weighs most; `held_by` is the one that suppresses it."""
    incidents: dict[int, str] = field(default_factory=dict)
    """What each open one goes by."""


@dataclass(frozen=True)
class DatasetHealth:
    """A dataset's categories, and the dataset's own state: the heaviest of them."""

    dataset: Dataset
    cells: dict[str, CategoryHealth] = field(default_factory=dict)

    @cached_property
    def state(self) -> str:
        return worst_state(cell.state for cell in self.cells.values())

    @cached_property
    def worst(self) -> CategoryHealth | None:
        """The category that the reason line is about; None where all is well."""
        bad = [cell for cell in self.cells.values() if STATE_WEIGHTS[cell.state] > STATE_WEIGHTS["pass"]]
        return max(bad, key=lambda cell: STATE_WEIGHTS[cell.state], default=None)

    @property
    def categories(self) -> list[CategoryHealth]:
        return [self.cells.get(category, CategoryHealth(category)) for category in Category]


def live_units(now: datetime) -> QuerySet[Unit]:
    """Of live tests, and not one that waits for its first due time."""
    live = Unit.objects.filter(test__retired_at=None, test__dataset__offboarded_at=None, copy__removed_at=None)
    return live.exclude(latest_at=None, due_at__gt=now)


def gating_units(now: datetime) -> QuerySet[Unit]:
    """Those whose verdict counts for the dataset: of gating tests."""
    return live_units(now).filter(test__gating=True)


def health_of(datasets: Iterable[Dataset], *, now: datetime) -> dict[int, DatasetHealth]:
    """By the id of the dataset."""
    datasets_by_id = {dataset.pk: dataset for dataset in datasets}
    cells: dict[int, dict[str, CategoryHealth]] = defaultdict(dict)
    tested, failing, open_incidents = (
        _all_tests_ran(datasets_by_id),
        _not_passing(datasets_by_id, now),
        _open_incidents(datasets_by_id),
    )
    for key in {*tested, *failing, *open_incidents}:
        dataset_id, category = key
        # A test that never ran makes the category unknown, however well its neighbours do.
        ran = {"pass"} if tested.get(key, True) else {"unknown"}
        cells[dataset_id][category] = _category_health(
            Category(category), datasets_by_id[dataset_id], ran, failing.get(key, {}), open_incidents.get(key, []), now
        )
    return {pk: DatasetHealth(dataset, cells[pk]) for pk, dataset in datasets_by_id.items()}


def _all_tests_ran(datasets: Iterable[int]) -> dict[tuple[int, str], bool]:
    """Which categories have tests, and whether every one of those has run at least once."""
    # A test that nobody plans has units only where something was found: none is good news.
    ran = Exists(Unit.objects.filter(test=OuterRef("pk"), latest_at__isnull=False)) | Q(planned=False)
    tests = QualityTest.objects.filter(dataset__in=list(datasets), retired_at=None, gating=True)
    rows = tests.annotate(ran=ran).values("dataset_id", "category").annotate(idle=Count("pk", filter=Q(ran=False)))
    return {(row["dataset_id"], row["category"]): row["idle"] == 0 for row in rows.order_by()}


def _not_passing(datasets: Iterable[int], now: datetime) -> dict[tuple[int, str], dict[str, dict[str, Any]]]:
    """Of each category that does not pass wholly, by verdict."""
    units = gating_units(now).filter(test__dataset__in=list(datasets)).exclude(verdict="pass")
    groups = units.values("test__dataset_id", "test__category", "verdict").annotate(
        n=Count("pk"), since=Min("first_fail_at"), example=Max("pk")
    )
    by_category: defaultdict[tuple[int, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for group in groups.order_by():
        by_category[group["test__dataset_id"], group["test__category"]][group["verdict"]] = dict(group)
    return by_category


def _open_incidents(datasets: Iterable[int]) -> dict[tuple[int, str], list[Incident]]:
    """Of each category, newest first, those that tests found before reports."""
    held_messages = Message.objects.filter(SUPPRESSED, incident=OuterRef("pk"))
    failing = Span.objects.filter(incident=OuterRef("pk"), ended_at=None, unit__test__gating=True)
    by_category: defaultdict[tuple[int, str], list[Incident]] = defaultdict(list)
    rows = Incident.objects.filter(dataset__in=list(datasets), resolved_at=None).select_related("assignee")
    for incident in rows.annotate(
        held=Exists(held_messages), held_by=Subquery(held_messages.values("held_by")[:1]), failing=Exists(failing)
    ).order_by("reported", "-opened_at"):
        by_category[incident.dataset_id, incident.category].append(incident)
    return by_category


def _category_health(
    category: Category,
    dataset: Dataset,
    ran: set[str],
    groups: dict[str, dict[str, Any]],
    incidents: list[Incident],
    now: datetime,
) -> CategoryHealth:
    in_grace, verdicts = dataset.in_grace(now=now), ran | groups.keys()
    shown = {incident.pk: incident_state(_incident_facts(incident, now), in_grace=in_grace) for incident in incidents}
    cell = CategoryHealth(
        category,
        state=category_state(verdicts, shown.values(), in_grace=in_grace),
        verdict=max(verdicts, key=VERDICT_RANK.__getitem__),
        incident=max(incidents, key=lambda incident: STATE_WEIGHTS[shown[incident.pk]], default=None),
        incidents=shown,
    )
    if not groups:
        return cell
    worst = groups[max(groups, key=VERDICT_RANK.__getitem__)]
    return replace(cell, units=worst["n"], example=worst["example"], since=worst["since"])


def _incident_facts(incident: Incident, now: datetime) -> OpenIncidentFacts:
    """With what `_open_incidents` annotated."""
    return OpenIncidentFacts(
        failing=bool(getattr(incident, "failing", False)),
        waiting=incident.state in WAITING_REPORT_STATES,
        acknowledged_report=incident.reported and incident.state == IncidentState.ACKNOWLEDGED,
        snoozed=is_snoozed(incident, now=now),
        suppressed=bool(getattr(incident, "held", False)),
    )
