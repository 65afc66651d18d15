"""Running what was claimed: measure, evaluate, and store result, facts and flip in one transaction."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F

from lakehub.kernel import failpoint
from lakehub.kernel.backoff import Backoff
from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Outcome
from quality import slots, units
from quality.confirmed import left_out
from quality.detail import detail_of
from quality.domain.evaluation import Evaluation, evaluate
from quality.domain.expression import ExpressionError
from quality.domain.expression.values import Moment
from quality.domain.rerun import RerunAt, next_rerun
from quality.domain.verdicts import UnitFacts, observe
from quality.facts import facts_of, keep, settle
from quality.measuring import Answers, Reused, is_understood, measure, understood
from quality.models import Flip, Lane, Result, Test, Unit
from quality.retests import OVERDUE_AFTER
from quality.scheduling import Claim, Line, held, mine, release

logger = logging.getLogger(__name__)

_TICK = timedelta(microseconds=1)
_GIVES_UP_AFTER = 3
_SEE = "see the worker's log"
SEEN = ("observed", "threshold", "detail", "tested_instant", "affected_from")
SCHEDULE = ("due_at", "lane", "attempt", "leased_by", "leased_until")


@dataclass(frozen=True)
class Run:
    """One execution: the unit as it was claimed, what came out, at which commit, and what was not measured anew."""

    unit: Unit
    found: Evaluation
    instant: str
    reused: Reused | None = None


def run_due(*, now: datetime, worker: str, most: int = 20, budget: timedelta = timedelta(hours=1)) -> int:
    """Runs what is due, up to `most` claims, and begins none after `budget`. The number of results stored.

    A claim that fails keeps the others from nothing: it is raised at the end, or where one after the other fails.
    """
    line, stored, begun = Line(worker), 0, time.monotonic()
    failed: list[Exception] = []
    for _ in range(most):
        if time.monotonic() - begun > budget.total_seconds() or len(failed) == _GIVES_UP_AFTER:
            break
        claimed = line.claim(now=now)
        if claimed is None:
            break
        try:
            stored += len(execute(claimed, now=now))
        except Exception as problem:
            logger.exception("A claim of %s failed", claimed.units[0].copy)
            failed.append(problem)
    if failed:
        raise failed[0]
    return stored


def execute(claimed: Claim, *, now: datetime) -> list[Result]:
    """The results of the claim's units; of those whose lease was lost meanwhile there is none.

    What fails with one unit is its ERROR and no other's; where all fail together, they are others' to claim at once.
    """
    begun = time.monotonic()
    try:
        with held(claimed):
            runs = _run(claimed.units, now=now)
            failpoint.reach("quality.before_result")
            took = timedelta(seconds=time.monotonic() - begun)
            return _stored(claimed, runs, now=now, took=took)
    except BaseException:
        release(claimed)
        raise


def _run(claimed: Sequence[Unit], *, now: datetime) -> list[Run]:
    answers = measure(claimed[0].copy, claimed, now=now)
    excluded = left_out(claimed[0].copy, claimed)
    return [_tried(unit, answers[unit.pk], excluded, now=now) for unit in claimed]


def _tried(unit: Unit, answers: Answers, excluded: tuple[Interval, ...], *, now: datetime) -> Run:
    try:
        return _evaluated(unit, answers, excluded, now=now)
    except ExpressionError as problem:
        return _failed(unit, f"The test is not understood: {problem.problem}", answers.instant)
    except Exception as problem:
        logger.exception("Unit %s cannot be evaluated", unit.pk)
        return _failed(unit, f"The evaluation failed ({type(problem).__name__}): {_SEE}", answers.instant)


def _failed(unit: Unit, cause: str, instant: str) -> Run:
    """Only the log has an unforeseen message: nobody has looked what of the data is in it."""
    assert unit.test.version is not None
    return Run(unit, Evaluation(Outcome.ERROR, unit.test.version.expression, cause=cause), instant)


def _evaluated(unit: Unit, answers: Answers, excluded: tuple[Interval, ...], *, now: datetime) -> Run:
    assert unit.test.version is not None
    dataset = unit.test.dataset
    # What was never watched does not hold freshness back.
    moment = Moment(
        now,
        dataset.partition_grain,
        dataset.zone,
        unit.copy.monitored_from,
        partition=Interval(unit.start, unit.end),
        excluded=excluded,
    )
    found = evaluate(understood(unit.test.version.flattened), answers.of, moment, groups=answers.groups)
    return Run(unit, found, answers.instant, answers.reused)


def _stored(claimed: Claim, runs: Sequence[Run], *, now: datetime, took: timedelta) -> list[Result]:
    """All together; where that fails, one by one, and what cannot be stored as it came out is stored as an ERROR."""
    try:
        return _store(claimed, runs, now=now, took=took)
    except (OperationalError, InterfaceError):
        raise  # nothing is wrong with what is stored
    except Exception:
        logger.exception("The %s results of a claim cannot be stored together", len(runs))
    results, alone, lost = list[Result](), replace(claimed, has_slots=False), list[Exception]()
    for run in runs:
        try:
            results += _store_one(alone, run, now=now, took=took)
        except (OperationalError, InterfaceError):
            raise
        except Exception as problem:
            lost.append(problem)
    if lost:
        raise lost[0]
    slots.give_back(claimed.token)
    return results


def _store_one(alone: Claim, run: Run, *, now: datetime, took: timedelta) -> list[Result]:
    try:
        return _store(alone, [run], now=now, took=took)
    except (OperationalError, InterfaceError):
        raise
    except Exception as problem:
        logger.exception("The result of unit %s cannot be stored", run.unit.pk)
        cause = f"The result cannot be stored ({type(problem).__name__}): {_SEE}"
        return _store(alone, [_failed(run.unit, cause, run.instant)], now=now, took=took)


def _store(claimed: Claim, runs: Sequence[Run], *, now: datetime, took: timedelta) -> list[Result]:
    """Reads the rows anew under lock: a commit, a waiver or a person may have changed them during the scan.

    The number of statements is the same for one unit as for all of them.
    """
    with transaction.atomic():
        found = _locked(claimed)
        kept = [(found[run.unit.pk], run) for run in runs if run.unit.pk in found]
        results = Result.objects.bulk_create([_result(row, run, now=now, took=took) for row, run in kept])
        flips = [_settle(row, run, result, now=now) for (row, run), result in zip(kept, results, strict=True)]
        keep([row for row, _ in kept], flips, also=(*SEEN, *SCHEDULE))
        begun = [row for row, run in kept if run.unit.latest_at is None and _has_a_next(run.unit)]
        units.plan_next(claimed.units[0].copy, begun, now=now)
        if claimed.has_slots:
            slots.give_back(claimed.token)
    return results


def _locked(claimed: Claim) -> dict[int, Unit]:
    """The rows whose lease was not lost, as they are now, with their tests: read again where one has changed."""
    tests = {unit.test_id: unit.test for unit in claimed.units}
    now = F("test__version"), F("test__retired_at")
    rows = mine(claimed).order_by("pk").annotate(version_now=now[0], retired_now=now[1])
    found = list(rows.select_for_update(of=("self",)))
    changed = {row.test_id for row in found if (row.version_now, row.retired_now) != _state(tests[row.test_id])}
    tests |= Test.objects.select_related("version", "dataset").in_bulk(changed) if changed else {}
    for row in found:
        row.test = tests[row.test_id]
    return {row.pk: row for row in found}


def _state(test: Test) -> tuple[int | None, datetime | None]:
    return test.version_id, test.retired_at


def _has_a_next(unit: Unit) -> bool:
    """It is of a partition, of a test that is understood."""
    version = unit.test.version
    return version is not None and version.cadence is None and is_understood(version.flattened)


def _read_at(row: Unit, now: datetime) -> datetime:
    """Runs of a unit follow each other, whatever the clocks of their workers say."""
    return now if row.latest_at is None or row.latest_at < now else row.latest_at + _TICK


def _result(row: Unit, run: Run, *, now: datetime, took: timedelta) -> Result:
    unit, found = run.unit, run.found
    read_at = _read_at(row, now)
    return Result(
        unit=unit,
        version=unit.test.version,
        outcome=found.outcome,
        observed=_number(found),
        threshold=found.threshold,
        detail=detail_of(found, run.reused),
        trigger=_trigger(unit),
        read_at=read_at,
        instant=run.instant,
        started_at=read_at,
        ended_at=read_at + took,
    )


def _trigger(unit: Unit) -> str:
    if unit.lane == Lane.ASKED:
        return "manual"
    if unit.lane == Lane.LATE:
        return "late_data" if unit.latest_at else "baseline"
    return "rerun" if unit.attempt else "schedule"


def _number(found: Evaluation) -> float | None:
    """Durations in seconds, shares as fractions of one: for plots."""
    if isinstance(found.observed, timedelta):
        return found.observed.total_seconds()
    return None if found.observed is None else float(found.observed)


def _settle(row: Unit, run: Run, result: Result, *, now: datetime) -> Flip | None:
    """The row with one more observation: facts, verdict, what was seen, when it is run next."""
    version = run.unit.test.version
    assert version is not None
    for name in ("observed", "threshold", "detail"):
        setattr(row, name, getattr(result, name))
    row.tested_instant = result.instant
    if run.found.complete_until is not None:
        row.affected_from = run.found.complete_until
    facts = observe(facts_of(row), Outcome(result.outcome), read_at=result.read_at, sustain=version.sustain)
    flip = settle(row, facts, now=now, result=result)
    _schedule(row, run.unit, facts, now=now)
    return flip


def _schedule(row: Unit, claimed: Unit, facts: UnitFacts, *, now: datetime) -> None:
    """When it is run next: the rerun of a failure, the cadence, the retest of a commit that came after the reading, or
    what was asked for meanwhile; whichever is first."""
    next_at, attempt = _next(row, facts, now=now)
    row.leased_by, row.leased_until, row.attempt = "", None, attempt
    choices = [(next_at, Lane.DUE), (_retest_at(facts, now), Lane.LATE)]
    if (row.due_at, row.lane) != (claimed.due_at, claimed.lane):
        choices.append((row.due_at, Lane(row.lane)))
    first = min(((at, lane) for at, lane in choices if at is not None), default=None)
    row.due_at, row.lane = first or (None, Lane.DUE)


def _retest_at(facts: UnitFacts, read_at: datetime) -> datetime | None:
    """Only a PASS settles what a commit touched; but a FAIL that has read the commit is rerun in its own rhythm."""
    if facts.retest_due_at is None or facts.touched_at is None or facts.touched_at <= read_at:
        return None
    return max(read_at, facts.retest_due_at - OVERDUE_AFTER)


def _next(row: Unit, facts: UnitFacts, *, now: datetime) -> tuple[datetime | None, int]:
    """The rerun or the cadence, and how many reruns there were then."""
    version = row.test.version
    if version is None or row.test.retired_at is not None:
        return None, 0
    backoff = Backoff(version.rerun_base, version.rerun_cap)
    decision = next_rerun(facts, reruns=row.attempt, backoff=backoff, jitter=random.random(), now=now)
    regular = None if version.cadence is None else now + version.cadence
    if isinstance(decision, RerunAt):
        return (decision.at if regular is None else min(decision.at, regular)), row.attempt + 1
    return regular, 0
