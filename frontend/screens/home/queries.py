"""What needs a person now, what is in hand, and how the fleet is: the first page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count

from frontend.components import incident_rows as incident_query
from frontend.components import open_incidents
from frontend.components.datasets import LiveRun, with_progress
from frontend.components.freshness_lag import FreshnessLag, lag_by_dataset
from frontend.components.runs.failures import failure_sentence
from frontend.components.team_scope import TeamScope
from frontend.results.reasons import cell_reason, example_units
from frontend.ui.states import STATES
from incidents.domain.incident.health import worst_state
from incidents.models import GateQuestion, Incident, IncidentState
from incidents.record.health import CategoryHealth, DatasetHealth, health_of
from ingestion.domain.retries import MAX_ATTEMPTS
from ingestion.models import JobKind, JobRun
from ingestion.runs import failed_runs
from lakehub.accounts.models import Team, User
from lakehub.accounts.permissions import teams_where
from lakehub.catalog.models import TIERS, Connection, DataCenter, Dataset
from quality.models import Category, Unit

MAX_SHOWN = 12
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class TodoItem:
    """One line of what needs somebody: an incident, a category that is unknown or warns, or a run that failed."""

    state: str
    dataset: Dataset
    category: str
    text: str
    note: str
    at: datetime | None
    incident: Incident | None = None
    action: str = ""
    """acknowledge, rerun, retry (of `run`) or nothing"""
    run: JobRun | None = None


@dataclass(frozen=True)
class TodoGroup:
    """`n` of a kind, and those of them that are shown, worst first."""

    n: int
    shown: list[TodoItem]


@dataclass(frozen=True)
class MatrixCell:
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
class MatrixRow:
    tier: int
    n: int
    squares: list[MatrixCell]


PermittedTeams = Callable[[str], Collection[int]]
"""The teams in which the viewer has a right: a button is shown only where it does something."""


def fleet_health(scope: TeamScope, *, now: datetime) -> list[DatasetHealth]:
    """Of the scope's teams. Four queries."""
    datasets = Dataset.objects.filter(scope.where("team"), offboarded_at=None).select_related("team")
    return list(health_of(datasets, now=now).values())


def may_begin(user: User | AnonymousUser) -> bool:
    """Whether all is there that the first dataset needs, and `user` may onboard it."""
    teams = Team.objects.filter(teams_where(user, "onboard"))
    return Connection.objects.filter(team__in=teams).exists() and DataCenter.objects.exists()


def todo_groups(
    fleet: Sequence[DatasetHealth], scope: TeamScope, may: PermittedTeams, *, now: datetime
) -> tuple[TodoGroup, TodoGroup]:
    """(to decide, in hand) of the scope's teams. Eleven queries."""
    incidents = open_incidents.open_incidents_by_state(now=now).filter(scope.where("dataset__team"))
    n = incidents.aggregate(all=Count("pk"), undecided=Count("pk", filter=open_incidents.AWAITING_DECISION))
    worst = open_incidents.worst_first(incidents)
    shown_incidents = [
        *worst.filter(open_incidents.AWAITING_DECISION)[:MAX_SHOWN],
        *worst.exclude(open_incidents.AWAITING_DECISION)[:MAX_SHOWN],
    ]
    rows = incident_query.incident_rows(shown_incidents, now=now)
    decide = [_incident_item(row) for row in rows if _needs_decision(row)]
    in_hand = [_incident_item(row) for row in rows if not _needs_decision(row)]
    left_out = n["undecided"] - len(decide), n["all"] - n["undecided"] - len(in_hand)
    failed, retrying, more_failed = _run_items(fleet)
    decide += failed
    in_hand += retrying
    for needs_decision, item in _quiet_items(fleet, now):
        (decide if needs_decision else in_hand).append(item)
    return _todo_group(decide, left_out[0] + more_failed, may), _todo_group(in_hand, left_out[1], may)


def _run_items(fleet: Sequence[DatasetHealth]) -> tuple[list[TodoItem], list[TodoItem], int]:
    """Runs that were given up, runs that are tried again, and how many more were given up than are shown. Three queries."""
    datasets = [health.dataset.pk for health in fleet]
    failures = failed_runs.unresolved_failures(datasets)
    retrying = failed_runs.retrying_runs(datasets)[:MAX_SHOWN]
    shown = [_failed_run_item(run) for run in failures[:MAX_SHOWN]]
    left_out = failures.count() - len(shown) if len(shown) == MAX_SHOWN else 0
    return shown, [_retrying_run_item(run) for run in retrying], left_out


def _failed_run_item(run: JobRun) -> TodoItem:
    note = "It will not be retried automatically."
    dataset = run.copy.dataset
    return TodoItem("fail", dataset, "Job failed", failure_sentence(run), note, run.ended_at, action="retry", run=run)


def _retrying_run_item(run: JobRun) -> TodoItem:
    note = f"Attempt {run.attempt + 1} of {MAX_ATTEMPTS} will start automatically."
    return TodoItem("warn", run.copy.dataset, "Job failed", failure_sentence(run), note, run.due_at, run=run)


def _quiet_items(fleet: Sequence[DatasetHealth], now: datetime) -> Iterator[tuple[bool, TodoItem]]:
    """Whether it needs a decision, and the line, of each category without an incident that is unknown or warns. Two queries."""
    taken = set(incident_query.open_incidents().values_list("dataset", "category"))
    quiet = [
        (health, cell)
        for health in fleet
        for cell in health.cells.values()
        if cell.verdict in ("unknown", "warn") and (health.dataset.pk, cell.category) not in taken
    ]
    units = example_units(cell for _, cell in quiet)
    waiting: dict[int, list[tuple[DatasetHealth, CategoryHealth]]] = defaultdict(list)
    for health, cell in quiet:
        unit = units.get(cell.example) if cell.example is not None else None
        if cell.verdict == "unknown" and (unit is None or unit.latest_at is None):
            waiting[health.dataset.pk].append((health, cell))
        else:
            yield cell.verdict == "unknown", _category_item(health, cell, units, now)
    for cells in waiting.values():
        yield False, _not_checked_item(cells)


def _todo_group(items: Sequence[TodoItem], left_out: int, may: PermittedTeams) -> TodoGroup:
    shown = sorted(items, key=_worst_first)[:MAX_SHOWN]
    return TodoGroup(len(items) + left_out, [_permitted(item, may) for item in shown])


def _permitted(item: TodoItem, may: PermittedTeams) -> TodoItem:
    """Without its action where the viewer may not take it."""
    right = "rerun" if item.run is None else failed_runs.right_to_retry(item.run.kind)
    return item if item.dataset.team_id in may(right) else replace(item, action="")


def _not_checked_item(cells: Sequence[tuple[DatasetHealth, CategoryHealth]]) -> TodoItem:
    """What never ran yet only needs time: one line a dataset."""
    dataset = cells[0][0].dataset
    names = ", ".join(cell.category.label for _, cell in cells)
    note = "The gate answers unknown until they have run."
    return TodoItem("unknown", dataset, "not checked yet", names[:1].upper() + names[1:], note, None)


def _needs_decision(row: incident_query.IncidentRow) -> bool:
    return row.state in ("fail", "reported") and row.incident.state != IncidentState.ACKNOWLEDGED


def _incident_item(row: incident_query.IncidentRow) -> TodoItem:
    incident = row.incident
    ranges = incident_query.ranges_text(row.ranges)
    ranges = ranges[:1].upper() + ranges[1:]
    who = incident.assignee.get_full_name() or incident.assignee.username if incident.assignee else ""
    note = f"{ranges}. " if ranges else ""
    note += f"{who} has it." if who else "Nobody has it."
    act = "acknowledge" if _needs_decision(row) else "rerun"
    label = Category(incident.category).label.capitalize()
    return TodoItem(row.state, incident.dataset, label, row.title, note, incident.opened_at, incident, act)


def _category_item(health: DatasetHealth, cell: CategoryHealth, units: dict[int, Unit], now: datetime) -> TodoItem:
    line = cell_reason(cell, units, now=now).partition(": ")[2]
    line = line[:1].upper() + line[1:]
    unit = units.get(cell.example) if cell.example is not None else None
    if cell.verdict == "warn":
        note = (
            "Within its sustain period, nobody is paged."
            if unit and unit.reason == "in_sustain"
            else "Accepted as it is."
        )
        return TodoItem(
            cell.state, health.dataset, cell.category.label.capitalize(), line, note, cell.since, action="rerun"
        )
    note = f"The gate answers unknown for {health.dataset.name}."
    at = unit.latest_at if unit else None
    return TodoItem(cell.state, health.dataset, cell.category.label.capitalize(), line, note, at, action="rerun")


def _worst_first(todo: TodoItem) -> tuple[int, int, str]:
    return -STATES[todo.state].weight, todo.dataset.tier, todo.dataset.name


def tier_matrix(fleet: Iterable[DatasetHealth]) -> list[MatrixRow]:
    by_tier: dict[int, list[DatasetHealth]] = {tier: [] for tier in TIERS}
    for health in fleet:
        by_tier[health.dataset.tier].append(health)
    return [
        MatrixRow(tier, len(members), [_matrix_cell(category, members) for category in Category])
        for tier, members in by_tier.items()
        if members
    ]


def _matrix_cell(category: Category, members: Sequence[DatasetHealth]) -> MatrixCell:
    states = [health.cells[category].state for health in members if category in health.cells]
    tested = sorted((state for state in states if state != "none"), key=lambda state: -STATES[state].weight)
    worst = worst_state(tested)
    return MatrixCell(category, worst, tested.count(worst), len(tested), tested.count("pass"), tested)


def running_jobs(scope: TeamScope, *, now: datetime, limit: int = 6) -> list[LiveRun]:
    running = JobRun.objects.filter(scope.where("copy__dataset__team"), state="running")
    runs = (
        running.exclude(kind=JobKind.FOLLOW).select_related("copy__dataset", "copy__data_center").order_by("started_at")
    )
    return with_progress(runs[:limit], now=now)


def longest_lags(fleet: Sequence[DatasetHealth], limit: int = 5) -> list[tuple[Dataset, FreshnessLag]]:
    datasets_by_pk = {health.dataset.pk: health.dataset for health in fleet}
    behind = lag_by_dataset(list(datasets_by_pk))
    worst = sorted(behind.items(), key=lambda item: -item[1].share)[:limit]
    return [(datasets_by_pk[pk], lag) for pk, lag in worst]


def gate_question_counts(*, now: datetime) -> tuple[int, list[tuple[str, int]]]:
    """How many questions in the last 24 h, and how many of each verdict."""
    counted = dict(
        GateQuestion.objects.filter(at__gte=now - _DAY).values_list("verdict").annotate(n=Count("pk")).order_by()
    )
    return sum(counted.values()), [
        (verdict, counted.get(verdict, 0)) for verdict in ("pass", "warn", "fail", "unknown")
    ]
