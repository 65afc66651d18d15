"""The runs whose OpenLineage events programs post, each for its team, and the edges that follow at once.

A team's programs say what datasets of this team are made from, as its owners may at onboarding. What others' programs post, and what
the source says that is read daily, they do not change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from django.db import transaction
from django.db.models import Q

from lakehub.accounts.models import Team
from lakehub.catalog.lineage import LineageSnapshot, edges
from lakehub.catalog.lineage.events import snapshot_of_runs
from lakehub.catalog.lineage.posted_events import WINDOW, PostedEvent, PostedState, merge_event, newest_of
from lakehub.catalog.models import LineageLink, PostedRun
from lakehub.kernel.errors import Refused

POSTED_SOURCE = "posted"
OPEN_FOR = timedelta(days=7)
"""A run that tells nothing for so long will not complete."""
MAX_RUNS = 2_000
"""Of a team: its jobs, and runs that are at work."""
MAX_TEAM_LINKS = 20_000


class PostResult(StrEnum):
    IGNORED = "ignored"
    """It says nothing that is used: no tables, a run that failed, or one that is older than what is known."""
    OPEN = "open"
    """The run has not completed: its edges come when it has."""
    COMPLETED = "completed"


@dataclass(frozen=True)
class PostOutcome:
    """`added` and `pruned`: the edges that changed."""

    result: PostResult
    added: list[str] = field(default_factory=list)
    pruned: list[str] = field(default_factory=list)


def take_event(event: PostedEvent, team: Team, *, now: datetime) -> PostOutcome:
    """Keeps what an event says of its run; a run that is the newest of its job decides its edges. Raises Refused."""
    if event.at <= now - WINDOW:
        return PostOutcome(PostResult.IGNORED)
    with transaction.atomic():
        edges.take_turn()
        rows = _rows_of_job(event, team)
        mine = next((row for row in rows if row.run_id == event.run.number), None)
        if event.is_failure and (mine is None or mine.completed_at is None):
            _delete(mine)
            return PostOutcome(PostResult.IGNORED)
        merged = merge_event(_state(mine) if mine else None, event)
        completed = next((row for row in rows if row.completed_at is not None), None)
        if not event.has_tables and mine is None and (merged.run.ended_at is None or completed is None):
            return PostOutcome(PostResult.IGNORED)
        if merged.run.ended_at is None:
            _store(mine, merged, team, event.at)
            return PostOutcome(PostResult.OPEN)
        return _take_completed(merged, mine, completed, team, event.at, now)


def _take_completed(
    merged: PostedState, mine: PostedRun | None, completed: PostedRun | None, team: Team, at: datetime, now: datetime
) -> PostOutcome:
    known = _state(completed) if completed else None
    is_other = known is not None and known.run.number != merged.run.number
    newest = newest_of(known, merged) if known is not None and is_other else merged
    if mine is not None and completed is not None and mine.pk != completed.pk:
        _delete(mine)
    _store(completed or mine, newest, team, at)
    changed: dict[str, list[str]] = {}
    if known is None or known.meaning != newest.meaning or PostedRun.objects.filter(team=team, drops=True).exists():
        snapshot = _snapshot(team, now)
        if len(snapshot.links) > MAX_TEAM_LINKS:
            raise Refused(
                f"With this run the events of team {team.name} tell of {len(snapshot.links)} links, and at most "
                f"{MAX_TEAM_LINKS} are taken: post the events of fewer jobs."
            )
        touched = newest.tables | (known.tables if known else frozenset())
        changed = edges.replace_lineage(
            snapshot, source=POSTED_SOURCE, team=team, touched=touched, accept_loss=True, now=now
        )
    is_used = newest.run.number == merged.run.number
    return PostOutcome(PostResult.COMPLETED if is_used else PostResult.IGNORED, **changed)


def forget_old_runs(*, accept_loss: bool = False, now: datetime) -> tuple[dict[str, list[str]], str]:
    """Jobs that have not run within the window make nothing any more. What changed, and what went wrong, by team.

    Where that is most of a team's lineage, its programs rather stopped posting: nothing is changed, unless `accept_loss`.
    An event is taken by the tables that it names: here all are looked at, for those that were onboarded or moved since.
    """
    changed: dict[str, list[str]] = {"added": [], "pruned": []}
    problems = []
    PostedRun.objects.filter(completed_at=None, event_at__lte=now - OPEN_FOR).delete()
    old = Q(completed_at__lte=now - WINDOW)
    aging = PostedRun.objects.filter(old | Q(drops=True)).values("team")
    for team in Team.objects.filter(pk__in=aging).order_by("name"):
        try:
            with transaction.atomic():
                edges.take_turn()
                PostedRun.objects.filter(old, team=team).delete()
                snapshot = _snapshot(team, now)
                _note(
                    changed,
                    edges.replace_lineage(snapshot, source=POSTED_SOURCE, team=team, accept_loss=accept_loss, now=now),
                )
        except Refused as problem:
            problems.append(f"Events that programs of team {team.name} posted: {problem}")
    if LineageLink.objects.exclude(team=None).exists():
        with transaction.atomic():
            edges.take_turn()
            _note(changed, edges.rebuild_edges(source=POSTED_SOURCE, now=now))
    return changed, " ".join(problems)


def _note(changed: dict[str, list[str]], report: dict[str, list[str]]) -> None:
    for kind, lines in report.items():
        changed[kind] += lines


def _rows_of_job(event: PostedEvent, team: Team) -> list[PostedRun]:
    namespace, name = event.run.job
    of_job = PostedRun.objects.filter(team=team, job_namespace=namespace, job_name=name)
    return list(of_job.filter(Q(run_id=event.run.number) | Q(completed_at__isnull=False)))


def _snapshot(team: Team, now: datetime) -> LineageSnapshot:
    """By all jobs that are kept: which of them are too old is for `forget_old_runs` to say."""
    states = map(_state, PostedRun.objects.filter(team=team, completed_at__isnull=False))
    return snapshot_of_runs(run for state in states for run in state.runs(since=now - WINDOW))


def _state(row: PostedRun) -> PostedState:
    return PostedState.load(row.run_id, (row.job_namespace, row.job_name), row.completed_at, row.tables)


def _store(row: PostedRun | None, state: PostedState, team: Team, at: datetime) -> None:
    if row is None:
        _require_room(team)
        namespace, name = state.run.job
        row = PostedRun(team=team, job_namespace=namespace, job_name=name, event_at=at)
    row.run_id, row.completed_at, row.event_at = state.run.number, state.run.ended_at, max(row.event_at, at)
    row.tables, row.drops = state.dump(), state.drops
    row.save()


def _require_room(team: Team) -> None:
    """Of runs that have not completed the one goes that has told nothing for longest: many are killed and tell no end."""
    rows = PostedRun.objects.filter(team=team)
    if rows.count() < MAX_RUNS:
        return
    silent = rows.filter(completed_at=None).order_by("event_at", "pk").first()
    _delete(silent)
    if silent is None:
        raise Refused(
            f"Team {team.name} has posted events of {MAX_RUNS} jobs, and no more are kept: post those of fewer jobs. Jobs are forgotten {WINDOW.days} days after their last run."
        )


def _delete(row: PostedRun | None) -> None:
    if row is not None:
        row.delete()
