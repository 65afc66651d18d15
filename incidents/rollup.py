"""What state each category of each dataset is in: the worst of its tests, and who or what keeps it quiet.

Three queries, whatever the number of datasets: the tests, the units that do not pass, the open incidents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models import Case, Count, Exists, IntegerField, Max, Min, OuterRef, Q, QuerySet, Value, When

from frontend.states import STATES, heaviest
from incidents.models import SUPPRESSED, Incident, Message, State
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

    @property
    def word(self) -> str:
        return STATES[self.state].word


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
        bad = [cell for cell in self.cells.values() if STATES[cell.state].weight > STATES["pass"].weight]
        return max(bad, key=lambda cell: STATES[cell.state].weight, default=None)

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
        cells[dataset_id][category] = _cell(
            Category(category), known[dataset_id], tested.get(key, True), failing.get(key), open_incidents.get(key), now
        )
    return {pk: Health(dataset, cells[pk]) for pk, dataset in known.items()}


def _tested(datasets: Iterable[int]) -> dict[tuple[int, str], bool]:
    """Which categories have tests, and whether every one of those has run at least once."""
    # A finding has units only where ingestion saw something: none is good news.
    ran = Exists(Unit.objects.filter(test=OuterRef("pk"), latest_at__isnull=False)) | Q(check_name="finding")
    tests = Test.objects.filter(dataset__in=list(datasets), retired_at=None, gating=True)
    rows = tests.annotate(ran=ran).values("dataset_id", "category").annotate(idle=Count("pk", filter=Q(ran=False)))
    return {(row["dataset_id"], row["category"]): row["idle"] == 0 for row in rows.order_by()}


def _not_passing(datasets: Iterable[int], now: datetime) -> dict[tuple[int, str], dict[str, Any]]:
    """The worst verdict of each category that does not pass wholly."""
    units = counting_units(now).filter(test__dataset__in=list(datasets)).exclude(verdict="pass")
    groups = units.values("test__dataset_id", "test__category", "verdict").annotate(
        n=Count("pk"), since=Min("first_fail_at"), example=Max("pk")
    )
    worst: dict[tuple[int, str], dict[str, Any]] = {}
    for group in groups.order_by():
        key = (group["test__dataset_id"], group["test__category"])
        if key not in worst or SEVERITY[group["verdict"]] > SEVERITY[worst[key]["verdict"]]:
            worst[key] = dict(group)
    return worst


def _open_incidents(datasets: Iterable[int]) -> dict[tuple[int, str], Incident]:
    """The newest open incident of each category, one that tests found before a report; `held` says that a message about it is held."""
    held = Exists(Message.objects.filter(SUPPRESSED, incident=OuterRef("pk")))
    found = (
        Incident.objects.filter(dataset__in=list(datasets), resolved_at=None)
        .annotate(held=held)
        .select_related("assignee")
    )
    return {(incident.dataset_id, incident.category): incident for incident in found.order_by("-reported", "opened_at")}


def _cell(
    category: Category,
    dataset: Dataset,
    ran: bool,
    group: dict[str, Any] | None,
    incident: Incident | None,
    now: datetime,
) -> Cell:
    # A test that never ran makes the category unknown, however well its neighbours do.
    verdict = max("pass" if ran else "unknown", group["verdict"] if group else "pass", key=SEVERITY.__getitem__)
    state = _shown(verdict, dataset, incident, now)
    if group is None:
        return Cell(category, state, verdict, incident=incident)
    return Cell(category, state, verdict, group["n"], group["example"], group["since"], incident)


def _shown(verdict: str, dataset: Dataset, incident: Incident | None, now: datetime) -> str:
    if incident is not None and incident.state in WAITING_REPORTS and verdict != "fail":
        return "reported"
    if verdict not in ("fail", "warn"):
        return verdict
    if incident is not None and incident.snoozed_until is not None and now < incident.snoozed_until:
        return "snoozed"
    if incident is not None and getattr(incident, "held", False):
        return "suppressed"
    return "grace" if dataset.in_grace(now=now) else verdict
