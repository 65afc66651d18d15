"""A replica that lacks commits of its source for longer than its tier allows is a finding, and so is one that nobody knows it of."""

from __future__ import annotations

from datetime import datetime, timedelta

from ingestion.lake.findings import REPLICA_BEHIND
from ingestion.lake.lag_findings import clear_others, in_words, judge_lag, raised_for
from ingestion.ports import lag_limit
from ingestion.runs.replicas.states import MAX_PENDING, ReplicaState, live_replicas, states_of


def judge_lags(*, now: datetime) -> int:
    """Of all replicas, by as many queries for one as for all. How many are behind."""
    states, raised = states_of(live_replicas().order_by("pk")), raised_for(REPLICA_BEHIND)
    clear_others(REPLICA_BEHIND, raised.difference(state.copy.pk for state in states), now=now)
    return sum(_judge(state, is_raised=state.copy.pk in raised, now=now) for state in states)


def _judge(state: ReplicaState, *, is_raised: bool, now: datetime) -> bool:
    lag, limit = state.lag(now=now), lag_limit(state.copy.dataset)
    message = _message(state, lag, limit)
    return judge_lag(state.copy, REPLICA_BEHIND, lag, limit=limit, message=message, is_raised=is_raised, now=now)


def _message(state: ReplicaState, lag: timedelta, limit: timedelta) -> str:
    source, allowed = state.replicated_from, f"its tier allows {in_words(limit)}"
    if not state.has_source:
        return (
            f"The copy in {source} that this replica is made from was removed, so nothing new arrives. The replica is behind for {in_words(lag)}, and {allowed}. "
            f"Restore that copy, or end the replication: `manage.py replicate {state.copy.dataset} --to {state.data_center} --end`."
        )
    if state.pending is None:
        return (
            f"It is not known which commits of the copy in {source} are missing here. The last run that succeeded ended {in_words(lag)} ago, and {allowed}. "
            "The next run finds out, and makes the replica anew where it has to: look on the page Ingestion whether its runs fail or wait."
        )
    since = f" since {state.waits_since:%Y-%m-%d %H:%M} UTC" if state.waits_since else ""
    verb = "waits" if state.pending == 1 else "wait"
    limited = f", or whether {state.mib_per_s} MiB/s are too few" if state.mib_per_s else ""
    return (
        f"{_commits(state)} of the copy in {source}{since} {verb} to be replicated: the replica is behind for {in_words(lag)}, and {allowed}. "
        f"Look on the page Ingestion whether its runs fail or wait{limited}."
    )


def _commits(state: ReplicaState) -> str:
    if state.has_more:
        return f"More than {MAX_PENDING} commits"
    return "1 commit" if state.pending == 1 else f"{state.pending} commits"
