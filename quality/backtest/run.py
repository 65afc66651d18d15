"""Backtest: today's definition of a test over past partitions. Nobody is alarmed, and no verdict is stored.

It sees the data as it is today: what was repaired since does not fail. Measures that have not changed since they were taken
are used again, and what is measured of many partitions is one scan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timedelta
from itertools import islice

from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.suggest import did_you_mean
from quality.backtest.draft import DEFAULT_DAYS, MAX_DAYS, BacktestDraft, draft_of, partitions_to_test
from quality.backtest.freshness_replay import replay_freshness
from quality.backtest.report import BacktestReport, CopyBacktest
from quality.domain.backtest import PastRun, simulate_alerts
from quality.domain.evaluation.evaluate import Evaluation, evaluate
from quality.domain.generation.definitions import runs_in
from quality.domain.language import flattened, readable
from quality.domain.language.type_checker import window_function_calls
from quality.domain.language.values import EvaluationContext
from quality.engines.scans.parts import CannotRead
from quality.measuring import concurrency
from quality.measuring.measure import measure_units
from quality.measuring.resources import refuse_background_engines, resources_of, scarcest
from quality.measuring.scan_planner import QueryBudget
from quality.state.baseline_exclusions import confirmed_bad_ranges

PARTITIONS_PER_BATCH = 400
"""So many partitions are measured together; between two such batches time is looked at."""
SEPARATE_SCANS_PER_BATCH = 5
"""Where each partition takes a scan of its own: dimension tests, queries, drift, exchanges between places."""

REQUEST_BUDGET = timedelta(seconds=20)
"""How long a request may take."""
MAX_QUERIES = 200
"""In one request: each is a process of its own, or a statement of its own in a database."""
_SLOT_LEASE = timedelta(minutes=2)
"""Whose request has died waits so long for the next."""


def run_backtest(
    dataset: Dataset,
    *,
    expression: str = "",
    test: str = "",
    data_center: str = "",
    days: int = DEFAULT_DAYS,
    budget: timedelta | None = REQUEST_BUDGET,
    cancelled: Callable[[], bool] = lambda: False,
    author: User | None = None,
    now: datetime,
) -> BacktestReport:
    """Tries a test of the dataset by its key, or an expression that is not stored yet, on its past partitions.

    With a budget, that is in a request, it takes a slot of what it reads, as a claim of a worker does. `author`: whose rights
    the queries of an expression need; none where the operator tries it.
    Raises Refused with what is wrong by field, NotFound, or Conflict where no slot is free.
    """
    if not 1 <= days <= MAX_DAYS:
        raise Refused.for_fields({"days": f"{days} days cannot be tried: give 1 to {MAX_DAYS}."})
    draft = draft_of(dataset, expression, test, author=author)
    clock = _Deadline(budget, cancelled)
    copies = []
    for copy in _copies(dataset, draft, data_center):
        with nullcontext() if budget is None else _slots_in_request(draft, copy):
            copies.append(_backtest_copy(draft, copy, days, clock, now=now))
    return BacktestReport(
        dataset=dataset.name,
        expression=readable(draft.expression),
        flattened=flattened(draft.expression),
        days=days,
        sustain=draft.sustain,
        severity=draft.facts.slas.severity,
        copies=tuple(copies),
        duration=clock.budget.spent,
        is_partial=clock.is_over,
    )


def _slots_in_request(draft: BacktestDraft, copy: DatasetCopy) -> AbstractContextManager[None]:
    resources = resources_of(draft.expression, copy)
    try:
        refuse_background_engines(resources)
    except CannotRead as slow:
        raise Refused.for_fields({"expression": f"{slow}."}) from slow
    return concurrency.scan_slots_held(scarcest(resources), until=_SLOT_LEASE)


@contextmanager
def single_backtest_of(person: str) -> Iterator[None]:
    """Around what a person asks for. Raises Conflict while something else that they tried is running."""
    busy = "Another backtest of yours is running: wait until it has ended."
    with concurrency.slots_held({f"backtest of {person}"[:130]: 1}, busy, until=_SLOT_LEASE):
        yield


class _Deadline:
    """Says when it is enough."""

    def __init__(self, budget: timedelta | None, cancelled: Callable[[], bool]) -> None:
        self.budget = QueryBudget(budget, None if budget is None else MAX_QUERIES)
        self._cancelled = cancelled
        self.is_over = False

    def has_passed(self) -> bool:
        self.is_over = self.is_over or self._cancelled() or self.budget.is_exhausted
        return self.is_over


def _copies(dataset: Dataset, draft: BacktestDraft, data_center: str) -> list[DatasetCopy]:
    copies = list(dataset.copies.select_related("dataset__feed__connection", "connection", "data_center"))
    names = [copy.data_center.name for copy in copies]
    if data_center and data_center not in names:
        raise NotFound(f"{dataset.name} has no copy in `{data_center}`.{did_you_mean(data_center, names)}")
    concerned = [copy for copy in copies if runs_in(draft.expression, copy.data_center.name)]
    return [copy for copy in concerned if data_center in ("", copy.data_center.name)]


def _backtest_copy(
    draft: BacktestDraft, copy: DatasetCopy, days: int, clock: _Deadline, *, now: datetime
) -> CopyBacktest:
    if draft.tests_freshness:
        return replay_freshness(draft, copy, days, clock.budget, now=now)
    if draft.tests_whole_table:
        return _backtest_whole_table(draft, copy, clock.budget, now=now)
    newest_first = list(reversed(partitions_to_test(draft, copy, days, now=now)))
    runs: list[PastRun] = []
    batches = iter(newest_first)
    while batch := list(
        islice(batches, SEPARATE_SCANS_PER_BATCH if draft.needs_separate_scans else PARTITIONS_PER_BATCH)
    ):
        if clock.has_passed():
            break
        runs += _replay_partitions(draft, copy, batch, clock.budget, now=now)
    runs.reverse()
    alerts = simulate_alerts(runs, sustain=draft.sustain, grain=draft.facts.grain, zone=copy.dataset.zone, now=now)
    untried = len(newest_first) - len(runs)
    notes = (f"The {untried:,} oldest partitions were not reached in time.",) if untried else ()
    return CopyBacktest(copy.data_center.name, tuple(runs), alerts, (_TODAY_NOTE, *notes))


_TODAY_NOTE = "Judged by the data as it is today: what came late, or was repaired since, is not seen."


def _replay_partitions(
    draft: BacktestDraft, copy: DatasetCopy, partitions: Sequence[Interval], query_budget: QueryBudget, *, now: datetime
) -> Iterator[PastRun]:
    units = [draft.unit(copy, partition, number) for number, partition in enumerate(partitions, start=1)]
    answers = measure_units(copy, units, query_budget, now=now)
    excluded = confirmed_bad_ranges(copy) if any(window_function_calls(draft.expression)) else ()
    dataset = copy.dataset
    for unit, partition in zip(units, partitions, strict=True):
        due_at = partition.end + draft.due_after
        moment = EvaluationContext(
            due_at,
            draft.facts.grain,
            dataset.zone,
            copy.monitored_from,
            partition=partition,
            production_calendar=draft.facts.production_calendar,
            excluded_ranges=tuple(
                excluded_range for excluded_range in excluded if not excluded_range.overlaps(partition)
            ),
        )
        evaluation = evaluate(draft.expression, answers[unit.pk].by_ask, moment, groups=answers[unit.pk].groups)
        yield _past_run(partition, dataset.partition_label(partition), due_at, evaluation)


def _past_run(partition: Interval, name: str, due_at: datetime, evaluation: Evaluation) -> PastRun:
    return PastRun(
        partition=partition,
        name=name,
        due_at=due_at,
        outcome=evaluation.outcome,
        observed=evaluation.observed_text,
        threshold=evaluation.threshold,
        behind=evaluation.behind,
        cause=evaluation.cause,
        value=_number(evaluation),
        facts=tuple((evaluation.facts or {}).items()),
    )


def _number(evaluation: Evaluation) -> float | None:
    value = evaluation.observed
    if value is None or isinstance(value, str):
        return None
    return value.total_seconds() if isinstance(value, timedelta) else float(value)


def _backtest_whole_table(
    draft: BacktestDraft, copy: DatasetCopy, query_budget: QueryBudget, *, now: datetime
) -> CopyBacktest:
    """The past of a table that has no partitions is gone: it is tried once, as it is."""
    unit = draft.unit(copy, EVERYTHING, 1)
    answers = measure_units(copy, [unit], query_budget, now=now)[unit.pk]
    dataset = copy.dataset
    moment = EvaluationContext(now, draft.facts.grain, dataset.zone, copy.monitored_from, event_zone=dataset.event_zone)
    evaluation = evaluate(draft.expression, answers.by_ask, moment, groups=answers.groups)
    run = _past_run(EVERYTHING, "the whole table", now, evaluation)
    note = "A test of the whole table has no past to be tried on: only how it is now can be told."
    return CopyBacktest(copy.data_center.name, (run,), (), (note,))
