"""Replays a freshness test over the past from the commits that are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import Interval
from quality.backtest.commit_history import (
    first_commit,
    replay_notes,
    touched_partitions_known_since,
    why_not_replayable,
)
from quality.backtest.draft import BacktestDraft, partitions_to_test
from quality.backtest.report import CopyBacktest
from quality.domain.backtest import freshness_limit, late_runs, simulate_lateness_alerts
from quality.domain.language import function_calls, parse
from quality.measuring.database_answers import partition_arrivals
from quality.measuring.measure import measure_units
from quality.measuring.scan_planner import QueryBudget


def replay_freshness(
    draft: BacktestDraft, copy: DatasetCopy, days: int, budget: QueryBudget, *, now: datetime
) -> CopyBacktest:
    """From when the commits came: the data as it is today is all there."""
    limit, first = freshness_limit(draft.expression), first_commit(copy)
    why = why_not_replayable(copy, limit, first)
    if why or limit is None or first is None:
        return CopyBacktest(copy.data_center.name, (), (), (f"Freshness cannot be replayed: {why}",))
    draft = replace(draft, due_after=limit.max_lateness)
    everything = partitions_to_test(draft, copy, days, now=now)
    after_first = [partition for partition in everything if partition.end > first]
    since = touched_partitions_known_since(copy, first, now=now)
    replayable = [partition for partition in after_first if since is None or partition.start >= since]
    named = [(partition, copy.dataset.partition_label(partition)) for partition in replayable]
    expected = _expected_rows(draft, copy, replayable, budget, now=now)
    runs = tuple(late_runs(named, partition_arrivals(copy, replayable), expected, limit, now=now))
    alerts = simulate_lateness_alerts(runs, sustain=draft.sustain, now=now)
    before, forgotten = len(everything) - len(after_first), len(after_first) - len(replayable)
    notes = tuple(replay_notes(before, first, forgotten, since))
    return CopyBacktest(copy.data_center.name, runs, alerts, notes)


def _expected_rows(
    draft: BacktestDraft, copy: DatasetCopy, partitions: Sequence[Interval], budget: QueryBudget, *, now: datetime
) -> dict[str, int]:
    """How many rows each partition has today; upstream, where the test goes by it and it can be read."""
    by_upstream = any(len(call.args) == 2 for call in function_calls(draft.expression))
    own = _count_rows(draft, copy, partitions, "this", budget, now=now)
    return own | _count_rows(draft, copy, partitions, "upstream", budget, now=now) if by_upstream else own


def _count_rows(
    draft: BacktestDraft,
    copy: DatasetCopy,
    partitions: Sequence[Interval],
    table: str,
    budget: QueryBudget,
    *,
    now: datetime,
) -> dict[str, int]:
    """One scan of all partitions, or none where they have not changed."""
    counting = replace(draft, expression=parse(f"rows({table}) >= 0"))
    units = [counting.unit(copy, partition, number) for number, partition in enumerate(partitions, start=1)]
    answers = measure_units(copy, units, budget, now=now)
    counted = [next(iter(answers[unit.pk].by_ask.values())) for unit in units]
    labels = [copy.dataset.partition_label(partition) for partition in partitions]
    return {label: rows for label, rows in zip(labels, counted, strict=True) if isinstance(rows, int)}
