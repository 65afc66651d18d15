"""All indexes of a cluster at once: made anew after it was lost or moved, or compared with their tables. A run of the ordinary queue for each copy, tier 0 first.

What is done is read from the runs themselves. So whoever asks again asks for the rest only, whatever has ended in between: the command, a worker, HBase.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from ingestion.index_shares.shares import copies_of
from ingestion.index_shares.standing import HBASE
from ingestion.models import IndexCluster, JobKind, JobRun, JobState
from ingestion.runs.copy_lag import has_table
from ingestion.runs.job_runs import ACTIVE, request_run
from lakehub.accounts.audit import audit_log
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Conflict, Refused

NO_TABLE, NOT_ASKED, DONE = "no table", "not asked", "done"
"""States of an index beside those of its run: there is nothing to index yet; no run was asked for since; a run has done it."""
_ASKED_AGAIN = (NOT_ASKED, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True)
class IndexState:
    """Of a copy: its run that counts, and what is in the way."""

    copy: DatasetCopy
    state: str
    run: JobRun | None = None
    problem: str = ""

    @property
    def is_under_way(self) -> bool:
        return self.state in ACTIVE

    @property
    def is_well(self) -> bool:
        return self.state in (NO_TABLE, DONE)


def recover(cluster: IndexCluster, *, again: bool, actor: str, now: datetime) -> list[IndexState]:
    """Asks for a `rebuild_index` of each copy whose index was not made since the cluster has lost them, and that has no run under way. Where it is not
    known that it has lost them, or with `again`, it has now."""
    with transaction.atomic():
        if again or cluster.indexes_lost_at is None:
            IndexCluster.objects.filter(pk=cluster.pk).update(indexes_lost_at=now)
            cluster.indexes_lost_at = now
        since = cluster.indexes_lost_at.isoformat()
        audit_log.record(actor, "recover index cluster", f"index_cluster:{cluster.name}", now=now, since=since)
    before = recovery_states(cluster)
    due = [state for state in before if state.state in _ASKED_AGAIN]
    problems = dict(_ask(due, JobKind.REBUILD_INDEX, {}, actor=actor, now=now))
    return _with_problems(recovery_states(cluster), problems)


def recovery_states(cluster: IndexCluster) -> list[IndexState]:
    """How far a recovery is, the most important dataset first. Empty: none was ever asked for, or the cluster has no dataset."""
    since = cluster.indexes_lost_at
    return [] if since is None else _states(cluster, JobKind.REBUILD_INDEX, since)


def verify(cluster: IndexCluster, params: Mapping[str, Any], *, actor: str, now: datetime) -> list[IndexState]:
    """Asks for a `verify_index` of each copy that has none under way. `params`: of the runs."""
    audit_log.record(actor, "verify index cluster", f"index_cluster:{cluster.name}", now=now, **params)
    due = [state for state in verify_states(cluster, now) if state.state in _ASKED_AGAIN]
    problems = dict(_ask(due, JobKind.VERIFY_INDEX, params, actor=actor, now=now))
    return _with_problems(verify_states(cluster, now), problems)


def verify_states(cluster: IndexCluster, since: datetime) -> list[IndexState]:
    """By the runs that are under way, or began after `since`."""
    return _states(cluster, JobKind.VERIFY_INDEX, since)


def _states(cluster: IndexCluster, kind: JobKind, since: datetime) -> list[IndexState]:
    copies = sorted(copies_of(cluster), key=lambda copy: (copy.dataset.tier, copy.dataset.name, copy.pk))
    return [_state(copy, kind, since) for copy in copies]


def _state(copy: DatasetCopy, kind: JobKind, since: datetime) -> IndexState:
    """What began before `since` may have had to do with the cluster as it was."""
    if not has_table(copy):
        return IndexState(copy, NO_TABLE)
    runs = JobRun.objects.filter(copy=copy, kind=kind).order_by("-pk")
    done = runs.filter(state=JobState.SUCCEEDED, started_at__gte=since, report__output__index=HBASE).first()
    if done is not None:
        return IndexState(copy, DONE, done)
    run = runs.filter(Q(state__in=ACTIVE) | Q(state__in=_ASKED_AGAIN, ended_at__gte=since)).first()
    return IndexState(copy, NOT_ASKED) if run is None else IndexState(copy, run.state, run, run.error)


def _ask(
    due: Sequence[IndexState], kind: JobKind, params: Mapping[str, Any], *, actor: str, now: datetime
) -> Iterator[tuple[int, str]]:
    """By copy why no run could be asked for. The queue takes what is due first first, so each is due a moment after the one before."""
    for place, state in enumerate(due):
        try:
            request_run(state.copy, kind, dict(params), asked_by=actor, now=now + timedelta(microseconds=place))
        except (Conflict, Refused) as problem:
            yield state.copy.pk, str(problem)


def _with_problems(states: Sequence[IndexState], problems: Mapping[int, str]) -> list[IndexState]:
    return [replace(state, problem=problems.get(state.copy.pk, state.problem)) for state in states]
