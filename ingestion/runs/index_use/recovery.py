"""All indexes of a cluster at once: made anew after it was lost or moved, or compared with their tables. A run of the ordinary queue for each copy, tier 0 first.

What is done is read from the runs themselves. So whoever asks again asks for the rest only, whatever has ended in between: the command, a worker, HBase.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Max, Q, QuerySet

from ingestion.index_shares.shares import copies_of
from ingestion.index_shares.standing import HBASE
from ingestion.models import IndexCluster, JobKind, JobRun, JobState
from ingestion.runs.copy_lag import with_table
from ingestion.runs.job_runs import ACTIVE, request_run
from lakehub.accounts.audit import audit_log
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Conflict, Refused

NO_TABLE, NOT_ASKED, DONE = "no table", "not asked", "done"
"""States of an index beside those of its run: there is nothing to index yet; no run was asked for since; a run has done it."""
_ASKED_AGAIN = (NOT_ASKED, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True)
class CopyRecovery:
    """How far the index of a copy is: its run that counts, and what is in the way."""

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


def recover(cluster: IndexCluster, *, again: bool, actor: str, now: datetime) -> list[CopyRecovery]:
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


def recovery_states(cluster: IndexCluster) -> list[CopyRecovery]:
    """How far a recovery is, the most important dataset first. Empty: none was ever asked for, or the cluster has no dataset."""
    since = cluster.indexes_lost_at
    return [] if since is None else _states(cluster, JobKind.REBUILD_INDEX, since)


def verify(cluster: IndexCluster, params: Mapping[str, Any], *, actor: str, now: datetime) -> list[CopyRecovery]:
    """Asks for a `verify_index` of each copy that has none under way. `params`: of the runs."""
    audit_log.record(actor, "verify index cluster", f"index_cluster:{cluster.name}", now=now, **params)
    due = [state for state in verify_states(cluster, now) if state.state in _ASKED_AGAIN]
    problems = dict(_ask(due, JobKind.VERIFY_INDEX, params, actor=actor, now=now))
    return _with_problems(verify_states(cluster, now), problems)


def verify_states(cluster: IndexCluster, since: datetime) -> list[CopyRecovery]:
    """By the runs that are under way, or began after `since`."""
    return _states(cluster, JobKind.VERIFY_INDEX, since)


def _states(cluster: IndexCluster, kind: JobKind, since: datetime) -> list[CopyRecovery]:
    """As many queries, however many copies. What began before `since` may have had to do with the cluster as it was."""
    copies = sorted(copies_of(cluster), key=lambda copy: (copy.dataset.tier, copy.dataset.name, copy.pk))
    there = with_table([copy.pk for copy in copies])
    runs = JobRun.objects.filter(kind=kind)
    done = _newest_of(there, runs.filter(state=JobState.SUCCEEDED, started_at__gte=since, report__output__index=HBASE))
    if kind == JobKind.REBUILD_INDEX:
        done |= _newest_of(there - done.keys(), _built_by_others(since))
    ended = Q(state__in=_ASKED_AGAIN, ended_at__gte=since)
    others = _newest_of(there - done.keys(), runs.filter(Q(state__in=ACTIVE) | ended))
    return [_state(copy, copy.pk in there, done.get(copy.pk), others.get(copy.pk)) for copy in copies]


def _built_by_others(since: datetime) -> QuerySet[JobRun]:
    """Jobs that found no index, and have made it themselves: they have counted its entries. A batch of a followed copy leaves no report that says so."""
    counted = JobRun.objects.filter(started_at__gte=since, report__index_use__entries__isnull=False)
    return counted.exclude(report__index_use__entries=None)


def _newest_of(copies: Collection[int], runs: QuerySet[JobRun]) -> dict[int, JobRun]:
    """By copy. Two queries."""
    newest = runs.filter(copy__in=copies).values("copy").annotate(newest=Max("pk")).values_list("newest", flat=True)
    return {run.copy_id: run for run in JobRun.objects.filter(pk__in=list(newest))}


def _state(copy: DatasetCopy, is_there: bool, done: JobRun | None, other: JobRun | None) -> CopyRecovery:
    if not is_there:
        return CopyRecovery(copy, NO_TABLE)
    if done is not None:
        return CopyRecovery(copy, DONE, done)
    return CopyRecovery(copy, NOT_ASKED) if other is None else CopyRecovery(copy, other.state, other, other.error)


def _ask(
    due: Sequence[CopyRecovery], kind: JobKind, params: Mapping[str, Any], *, actor: str, now: datetime
) -> Iterator[tuple[int, str]]:
    """By copy why no run could be asked for. The queue takes what is due first first, so each is due a moment after the one before."""
    for place, state in enumerate(due):
        try:
            request_run(state.copy, kind, dict(params), asked_by=actor, now=now + timedelta(microseconds=place))
        except (Conflict, Refused) as problem:
            yield state.copy.pk, str(problem)


def _with_problems(states: Sequence[CopyRecovery], problems: Mapping[int, str]) -> list[CopyRecovery]:
    return [replace(state, problem=problems.get(state.copy.pk, state.problem)) for state in states]
