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

from incidents.domain.rollup import WEIGHTS, OpenIncident, heaviest, of_category, of_incident
from incidents.models import SUPPRESSED, Incident, Message, Span, State
from incidents.snoozing import is_snoozed
from lakehub.catalog.models import Dataset
from quality.models import Category, Test, Unit

SEVERITY = {"pass": 0, "warn": 1, "unknown": 2, "fail": 3}
SEVERELY = Case(*(When(verdict=name, then=Value(rank)) for name, rank in SEVERITY.items()), output_field=IntegerField())
"""To order units by."""
WAITING_REPORTS = (State.REPORTED, State.WAITING)


@dataclass(frozen=True)
class Cell:
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
class Health:
    """A dataset's categories, and the dataset's own state: the heaviest of them."""

    dataset: Dataset
    cells: dict[str, Cell] = field(default_factory=dict)

    @cached_property
    def state(self) -> str:
        return heaviest(cell.state for cell in self.cells.values())

    @cached_property
    def worst(self) -> Cell | None:
        """The category that the reason line is about; None where all is well."""
        bad = [cell for cell in self.cells.values() if WEIGHTS[cell.state] > WEIGHTS["pass"]]
        return max(bad, key=lambda cell: WEIGHTS[cell.state], default=None)

    @property
    def row(self) -> list[Cell]:
        return [self.cells.get(category, Cell(category)) for category in Category]


def live_units(now: datetime) -> QuerySet[Unit]:
    """Of live tests, and not one that waits for its first due time."""
    live = Unit.objects.filter(test__retired_at=None, test__dataset__offboarded_at=None)
    return live.exclude(latest_at=None, due_at__gt=now)


def counting_units(now: datetime) -> QuerySet[Unit]:
    """Those whose verdict counts for the dataset: of gating tests."""
    return live_units(now).filter(test__gating=True)


def health_of(datasets: Iterable[Dataset], *, now: datetime) -> dict[int, Health]:
    """By the id of the dataset."""
    known = {dataset.pk: dataset for dataset in datasets}
    cells: dict[int, dict[str, Cell]] = defaultdict(dict)
    tested, failing, open_incidents = _tested(known), _not_passing(known, now), _open_incidents(known)
    for key in {*tested, *failing, *open_incidents}:
        dataset_id, category = key
        # A test that never ran makes the category unknown, however well its neighbours do.
        ran = {"pass"} if tested.get(key, True) else {"unknown"}
        cells[dataset_id][category] = _cell(
            Category(category), known[dataset_id], ran, failing.get(key, {}), open_incidents.get(key, []), now
        )
    return {pk: Health(dataset, cells[pk]) for pk, dataset in known.items()}


def _tested(datasets: Iterable[int]) -> dict[tuple[int, str], bool]:
    """Which categories have tests, and whether every one of those has run at least once."""
    # A finding has units only where ingestion saw something: none is good news.
    ran = Exists(Unit.objects.filter(test=OuterRef("pk"), latest_at__isnull=False)) | Q(check_name="finding")
    tests = Test.objects.filter(dataset__in=list(datasets), retired_at=None, gating=True)
    rows = tests.annotate(ran=ran).values("dataset_id", "category").annotate(idle=Count("pk", filter=Q(ran=False)))
    return {(row["dataset_id"], row["category"]): row["idle"] == 0 for row in rows.order_by()}


def _not_passing(datasets: Iterable[int], now: datetime) -> dict[tuple[int, str], dict[str, dict[str, Any]]]:
    """Of each category that does not pass wholly, by verdict."""
    units = counting_units(now).filter(test__dataset__in=list(datasets)).exclude(verdict="pass")
    groups = units.values("test__dataset_id", "test__category", "verdict").annotate(
        n=Count("pk"), since=Min("first_fail_at"), example=Max("pk")
    )
    found: defaultdict[tuple[int, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for group in groups.order_by():
        found[group["test__dataset_id"], group["test__category"]][group["verdict"]] = dict(group)
    return found


def _open_incidents(datasets: Iterable[int]) -> dict[tuple[int, str], list[Incident]]:
    """Of each category, newest first, those that tests found before reports."""
    held = Message.objects.filter(SUPPRESSED, incident=OuterRef("pk"))
    failing = Span.objects.filter(incident=OuterRef("pk"), ended_at=None, unit__test__gating=True)
    found: defaultdict[tuple[int, str], list[Incident]] = defaultdict(list)
    rows = Incident.objects.filter(dataset__in=list(datasets), resolved_at=None).select_related("assignee")
    for one in rows.annotate(
        held=Exists(held), held_by=Subquery(held.values("held_by")[:1]), failing=Exists(failing)
    ).order_by("reported", "-opened_at"):
        found[one.dataset_id, one.category].append(one)
    return found


def _cell(
    category: Category,
    dataset: Dataset,
    ran: set[str],
    groups: dict[str, dict[str, Any]],
    incidents: list[Incident],
    now: datetime,
) -> Cell:
    in_grace, verdicts = dataset.in_grace(now=now), ran | groups.keys()
    shown = {one.pk: of_incident(_open(one, now), in_grace=in_grace) for one in incidents}
    cell = Cell(
        category,
        state=of_category(verdicts, shown.values(), in_grace=in_grace),
        verdict=max(verdicts, key=SEVERITY.__getitem__),
        incident=max(incidents, key=lambda one: WEIGHTS[shown[one.pk]], default=None),
        incidents=shown,
    )
    if not groups:
        return cell
    worst = groups[max(groups, key=SEVERITY.__getitem__)]
    return replace(cell, units=worst["n"], example=worst["example"], since=worst["since"])


def _open(incident: Incident, now: datetime) -> OpenIncident:
    """With what `_open_incidents` annotated."""
    return OpenIncident(
        failing=bool(getattr(incident, "failing", False)),
        waiting=incident.state in WAITING_REPORTS,
        acknowledged_report=incident.reported and incident.state == State.ACKNOWLEDGED,
        snoozed=is_snoozed(incident, now=now),
        suppressed=bool(getattr(incident, "held", False)),
    )
