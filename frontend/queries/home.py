"""What needs a person now, what is in hand, and how the fleet is: the first page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count

from frontend.queries import inbox
from frontend.queries import incidents as incident_query
from frontend.queries.behind import Behind, by_dataset
from frontend.queries.reasons import reason_line, units_behind
from frontend.states import STATES
from incidents.domain.rollup import heaviest
from incidents.models import GateQuestion, Incident, State
from incidents.rollup import Cell, Health, health_of
from ingestion.models import JobRun
from lakehub.catalog.models import TIERS, Dataset
from quality.models import Category, Unit

SHOWN = 12
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Todo:
    """One line of what needs somebody: an incident, or a category that is unknown or warns."""

    state: str
    dataset: Dataset
    category: str
    text: str
    said: str
    at: datetime | None
    incident: Incident | None = None
    act: str = ""
    """acknowledge, rerun or nothing"""


@dataclass(frozen=True)
class Pile:
    """`n` of a kind, and those of them that are shown, worst first."""

    n: int
    shown: list[Todo]


@dataclass(frozen=True)
class Square:
    """One tier and category: the worst state, how many datasets are in it, and each dataset as a segment."""

    category: Category
    state: str
    n: int
    tested: int
    passing: int
    states: list[str]

    @property
    def text(self) -> str:
        return "No tests" if self.state == "none" else f"{self.n} {STATES[self.state].word.lower()}"


@dataclass(frozen=True)
class TierRow:
    tier: int
    n: int
    squares: list[Square]


def fleet_health(*, now: datetime) -> list[Health]:
    """Four queries."""
    datasets = Dataset.objects.filter(offboarded_at=None).select_related("team")
    return list(health_of(datasets, now=now).values())


def todos(fleet: Sequence[Health], *, now: datetime) -> tuple[Pile, Pile]:
    """(to decide, in hand). Seven queries."""
    known = inbox.shown_open(now=now)
    n = known.aggregate(all=Count("pk"), undecided=Count("pk", filter=inbox.UNDECIDED))
    worst = inbox.worst_first(known)
    found = [*worst.filter(inbox.UNDECIDED)[:SHOWN], *worst.exclude(inbox.UNDECIDED)[:SHOWN]]
    rows = incident_query.rows(found, now=now)
    decide = [_incident(row) for row in rows if _needs_decision(row)]
    in_hand = [_incident(row) for row in rows if not _needs_decision(row)]
    left_out = n["undecided"] - len(decide), n["all"] - n["undecided"] - len(in_hand)
    taken = set(incident_query.open_incidents().values_list("dataset", "category"))
    quiet = [
        (health, cell)
        for health in fleet
        for cell in health.cells.values()
        if cell.verdict in ("unknown", "warn") and (health.dataset.pk, cell.category) not in taken
    ]
    units = units_behind(cell for _, cell in quiet)
    waiting: dict[int, list[tuple[Health, Cell]]] = defaultdict(list)
    for health, cell in quiet:
        unit = units.get(cell.example) if cell.example is not None else None
        if cell.verdict == "unknown" and (unit is None or unit.latest_at is None):
            waiting[health.dataset.pk].append((health, cell))
        else:
            (decide if cell.verdict == "unknown" else in_hand).append(_category(health, cell, units, now))
    in_hand += [_not_checked(cells) for cells in waiting.values()]
    return _pile(decide, left_out[0]), _pile(in_hand, left_out[1])


def _pile(found: Sequence[Todo], left_out: int) -> Pile:
    return Pile(len(found) + left_out, sorted(found, key=_worst_first)[:SHOWN])


def _not_checked(cells: Sequence[tuple[Health, Cell]]) -> Todo:
    """What never ran yet only needs time: one line a dataset."""
    dataset = cells[0][0].dataset
    names = ", ".join(cell.category.label for _, cell in cells)
    said = "The gate answers unknown until they have run."
    return Todo("unknown", dataset, "not checked yet", names[:1].upper() + names[1:], said, None)


def _needs_decision(row: incident_query.Row) -> bool:
    return row.state in ("fail", "reported") and row.incident.state != State.ACKNOWLEDGED


def _incident(row: incident_query.Row) -> Todo:
    incident = row.incident
    ranges = incident_query.in_words(row.ranges)
    ranges = ranges[:1].upper() + ranges[1:]
    who = incident.assignee.get_full_name() or incident.assignee.username if incident.assignee else ""
    said = f"{ranges}. " if ranges else ""
    said += f"{who} has it." if who else "Nobody has it."
    act = "acknowledge" if _needs_decision(row) else "rerun"
    label = Category(incident.category).label.capitalize()
    return Todo(row.state, incident.dataset, label, row.title, said, incident.opened_at, incident, act)


def _category(health: Health, cell: Cell, units: dict[int, Unit], now: datetime) -> Todo:
    line = reason_line(cell, units, now=now).partition(": ")[2]
    line = line[:1].upper() + line[1:]
    unit = units.get(cell.example) if cell.example is not None else None
    if cell.verdict == "warn":
        said = (
            "Within its sustain period, nobody is paged."
            if unit and unit.reason == "in_sustain"
            else "Accepted as it is."
        )
        return Todo(cell.state, health.dataset, cell.category.label.capitalize(), line, said, cell.since, act="rerun")
    said = f"The gate answers unknown for {health.dataset.name}."
    at = unit.latest_at if unit else None
    return Todo(cell.state, health.dataset, cell.category.label.capitalize(), line, said, at, act="rerun")


def _worst_first(todo: Todo) -> tuple[int, int, str]:
    return -STATES[todo.state].weight, todo.dataset.tier, todo.dataset.name


def matrix(fleet: Iterable[Health]) -> list[TierRow]:
    by_tier: dict[int, list[Health]] = {tier: [] for tier in TIERS}
    for health in fleet:
        by_tier[health.dataset.tier].append(health)
    return [
        TierRow(tier, len(members), [_square(category, members) for category in Category])
        for tier, members in by_tier.items()
        if members
    ]


def _square(category: Category, members: Sequence[Health]) -> Square:
    states = [health.cells[category].state for health in members if category in health.cells]
    tested = sorted((state for state in states if state != "none"), key=lambda state: -STATES[state].weight)
    worst = heaviest(tested)
    return Square(category, worst, tested.count(worst), len(tested), tested.count("pass"), tested)


def in_progress(limit: int = 6) -> list[JobRun]:
    running = JobRun.objects.filter(state="running").select_related("copy__dataset", "copy__data_center")
    return list(running.order_by("started_at")[:limit])


def furthest_behind(fleet: Sequence[Health], limit: int = 5) -> list[tuple[Dataset, Behind]]:
    known = {health.dataset.pk: health.dataset for health in fleet}
    behind = by_dataset(list(known))
    worst = sorted(behind.items(), key=lambda item: -item[1].share)[:limit]
    return [(known[pk], one) for pk, one in worst]


def gate_answers(*, now: datetime) -> tuple[int, list[tuple[str, int]]]:
    """How many questions in the last 24 h, and how many of each verdict."""
    counted = dict(
        GateQuestion.objects.filter(at__gte=now - _DAY).values_list("verdict").annotate(n=Count("pk")).order_by()
    )
    return sum(counted.values()), [
        (verdict, counted.get(verdict, 0)) for verdict in ("pass", "warn", "fail", "unknown")
    ]
