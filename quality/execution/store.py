"""Stores the results of a claim, with facts, verdicts and schedule, in one transaction; each alone where that fails."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F

from lakehub.kernel.backoff import Backoff
from lakehub.kernel.outcome import Outcome
from quality.domain.evaluation.evaluate import Evaluation
from quality.domain.measurement_codec import storable_json
from quality.domain.named_records import RECORD_FIELDS, bounded_records
from quality.domain.parsed import asks_of_version, is_parsable
from quality.domain.scheduling import due_times
from quality.domain.verdicts.unit_verdict import UnitFacts, observe
from quality.execution.claims import Claim
from quality.execution.evaluate import SEE_LOG, Execution, failed_execution
from quality.measuring import concurrency
from quality.measuring.measure import CacheUse
from quality.measuring.table_bindings import COMPARED_DATASETS, compared_datasets
from quality.models import Flip, Lane, QualityTest, Result, Unit
from quality.planning import units
from quality.state.unit_state import apply_facts, save_units, unit_facts

logger = logging.getLogger(__name__)

OBSERVED_FIELDS = ("observed", "threshold", "detail", "tested_instant", "affected_from", "failing_seed")
SCHEDULE_FIELDS = ("due_at", "lane", "read_anew", "attempt", "leased_by", "leased_until")
_MIN_STEP = timedelta(microseconds=1)


def store_executions(claimed: Claim, runs: Sequence[Execution], *, now: datetime, took: timedelta) -> list[Result]:
    """All together; where that fails, one by one, and what cannot be stored as it came out is stored as an ERROR."""
    try:
        return _store_together(claimed, runs, now=now, took=took)
    except (OperationalError, InterfaceError):
        raise  # nothing is wrong with what is stored
    except Exception:
        logger.exception("The %s results of a claim cannot be stored together", len(runs))
    results, alone, lost = list[Result](), replace(claimed, has_slots=False), list[Exception]()
    for run in runs:
        try:
            results += _store_separately(alone, run, now=now, took=took)
        except (OperationalError, InterfaceError):
            raise
        except Exception as problem:
            lost.append(problem)
    if lost:
        raise lost[0]
    concurrency.release_slots(claimed.token)
    return results


def _store_separately(alone: Claim, run: Execution, *, now: datetime, took: timedelta) -> list[Result]:
    try:
        return _store_together(alone, [run], now=now, took=took)
    except (OperationalError, InterfaceError):
        raise
    except Exception as problem:
        logger.exception("The result of unit %s cannot be stored", run.unit.pk)
        cause = f"The result cannot be stored ({type(problem).__name__}): {SEE_LOG}"
        return _store_together(alone, [failed_execution(run.unit, cause, run.instant)], now=now, took=took)


def _store_together(claimed: Claim, runs: Sequence[Execution], *, now: datetime, took: timedelta) -> list[Result]:
    """Reads the rows anew under lock: a commit, a waiver or a person may have changed them during the scan.

    The number of statements is the same for one unit as for all of them. What needs no lock is looked up before.
    """
    compared_with = _compared_datasets(runs)
    with transaction.atomic():
        rows_by_pk = _lock_owned_units(claimed)
        owned_runs = [(rows_by_pk[run.unit.pk], run) for run in runs if run.unit.pk in rows_by_pk]
        results = Result.objects.bulk_create(
            [_new_result(row, run, compared_with, now=now, took=took) for row, run in owned_runs]
        )
        flips = [
            _apply_result(row, run, result, now=now) for (row, run), result in zip(owned_runs, results, strict=True)
        ]
        save_units([row for row, _ in owned_runs], flips, also=(*OBSERVED_FIELDS, *SCHEDULE_FIELDS))
        begun = [row for row, run in owned_runs if run.unit.latest_at is None and _has_following_partition(run.unit)]
        if begun:
            units.plan_following_units(claimed.units[0].copy, begun, now=now)
        if claimed.has_slots:
            concurrency.release_slots(claimed.token)
    return results


def _lock_owned_units(claimed: Claim) -> dict[int, Unit]:
    """The rows whose lease was not lost, as they are now, with their tests: read again where one has changed."""
    tests = {unit.test_id: unit.test for unit in claimed.units}
    owned = Unit.objects.filter(pk__in=[unit.pk for unit in claimed.units], leased_by=claimed.token).order_by("pk")
    rows = owned.annotate(version_now=F("test__version"), retired_now=F("test__retired_at"))
    locked_rows = list(rows.select_for_update(of=("self",)))
    changed = {
        row.test_id for row in locked_rows if (row.version_now, row.retired_now) != _test_state(tests[row.test_id])
    }
    tests |= QualityTest.objects.select_related("version", "dataset").in_bulk(changed) if changed else {}
    for row in locked_rows:
        row.test = tests[row.test_id]
    return {row.pk: row for row in locked_rows}


def _test_state(test: QualityTest) -> tuple[int | None, datetime | None]:
    return test.version_id, test.retired_at


def _has_following_partition(unit: Unit) -> bool:
    """It is of a partition, of a test that is understood."""
    version = unit.test.version
    return version is not None and version.cadence is None and is_parsable(version.flattened)


def _new_result(
    row: Unit, run: Execution, compared_with: Mapping[str, list[str]], *, now: datetime, took: timedelta
) -> Result:
    """`compared_with` are the datasets by the text of the test."""
    unit, evaluation = run.unit, run.evaluation
    read_at = _next_read_at(row, now)
    compared = compared_with.get(_flattened(run), ()) if _names_records(evaluation) else ()
    return Result(
        unit=unit,
        version=unit.test.version,
        outcome=evaluation.outcome,
        observed=_observed_number(evaluation),
        threshold=evaluation.threshold,
        detail=result_detail(evaluation, run.cache_use) | ({COMPARED_DATASETS: list(compared)} if compared else {}),
        trigger=_trigger(unit),
        read_at=read_at,
        instant=run.instant,
        started_at=read_at,
        ended_at=read_at + took,
    )


def _next_read_at(row: Unit, now: datetime) -> datetime:
    """Runs of a unit follow each other, whatever the clocks of their workers say."""
    return now if row.latest_at is None or row.latest_at < now else row.latest_at + _MIN_STEP


def _trigger(unit: Unit) -> str:
    if unit.lane == Lane.REQUESTED:
        return "manual"
    if unit.lane == Lane.LATE:
        return "late_data" if unit.latest_at else "baseline"
    return "rerun" if unit.attempt else "schedule"


def _observed_number(evaluation: Evaluation) -> float | None:
    """Durations in seconds, shares as fractions of one: for plots."""
    if isinstance(evaluation.observed, timedelta):
        return evaluation.observed.total_seconds()
    return None if evaluation.observed is None else float(evaluation.observed)


def result_detail(evaluation: Evaluation, reused: CacheUse | None) -> dict[str, Any]:
    """Only what there is."""
    exchanged = evaluation.naming_answer or {}
    detail = {
        "formula": evaluation.formula,
        "observed": evaluation.observed_text,
        "behind": evaluation.behind,
        "cause": evaluation.cause,
        "facts": evaluation.facts,
        "complete_until": evaluation.complete_until.isoformat() if evaluation.complete_until else None,
        "groups": asdict(evaluation.groups) if evaluation.groups else None,
        **bounded_records({name: exchanged.get(name) or () for name in RECORD_FIELDS}),
        "bloom": exchanged.get("report"),
        "reused_from": _cache_use(reused) if reused else None,
    }
    return {name: storable_json(value) for name, value in detail.items() if value}


def _compared_datasets(runs: Sequence[Execution]) -> dict[str, list[str]]:
    """By the text of the test: whose records its results name besides the tested dataset's, as their teams have a say in who
    sees them. Looked up once for all runs, and not at all where none names a record."""
    texts = {_flattened(run) for run in runs if _names_records(run.evaluation)}
    if not texts:
        return {}
    return compared_datasets({text: asks_of_version(text) for text in texts}, runs[0].unit.copy)


def _names_records(evaluation: Evaluation) -> bool:
    answer = evaluation.naming_answer or {}
    return any(answer.get(name) for name in RECORD_FIELDS)


def _flattened(run: Execution) -> str:
    assert run.unit.test.version is not None
    return run.unit.test.version.flattened


def _cache_use(reused: CacheUse) -> dict[str, Any]:
    return {
        "read_at": reused.read_at.isoformat(),
        "instant": reused.instant,
        "measures": reused.measures,
        "of": reused.total,
    }


def _apply_result(row: Unit, run: Execution, result: Result, *, now: datetime) -> Flip | None:
    """The row with one more observation: facts, verdict, what was seen, when it is run next."""
    version = run.unit.test.version
    assert version is not None
    for name in ("observed", "threshold", "detail"):
        setattr(row, name, getattr(result, name))
    row.tested_instant = result.instant
    if run.evaluation.complete_until is not None:
        row.affected_from = run.evaluation.complete_until
    facts = observe(unit_facts(row), Outcome(result.outcome), read_at=result.read_at, sustain=version.sustain)
    row.failing_seed = _failing_seed(row, run.evaluation, facts)
    flip = apply_facts(row, facts, now=now, result=result)
    _reschedule(row, run.unit, facts, now=now)
    return flip


def _failing_seed(row: Unit, evaluation: Evaluation, facts: UnitFacts) -> str:
    """Of the first sample of a failing streak; an error in between does not end it."""
    if facts.first_fail_at is None:
        return ""
    return row.failing_seed or str((evaluation.naming_answer or {}).get("report", {}).get("seed", ""))


def _reschedule(row: Unit, claimed: Unit, facts: UnitFacts, *, now: datetime) -> None:
    """When it is run next: the rerun of a failure, the cadence, the retest of a commit that came after the reading, or
    what was asked for meanwhile; whichever is first."""
    next_at, attempt = _rerun_or_cadence(row, facts, now=now)
    row.leased_by, row.leased_until, row.attempt = "", None, attempt
    choices = [(next_at, Lane.DUE), (due_times.retest_at(facts, now), Lane.LATE)]
    was_asked_meanwhile = (row.due_at, row.lane) != (claimed.due_at, claimed.lane)
    row.read_anew &= was_asked_meanwhile or not claimed.read_anew
    if was_asked_meanwhile:
        choices.append((row.due_at, Lane(row.lane)))
    first = min(((at, lane) for at, lane in choices if at is not None), default=None)
    row.due_at, row.lane = first or (None, Lane.DUE)


def _rerun_or_cadence(row: Unit, facts: UnitFacts, *, now: datetime) -> tuple[datetime | None, int]:
    version = row.test.version
    if version is None or row.test.retired_at is not None:
        return None, 0
    backoff = Backoff(version.rerun_base, version.rerun_cap)
    return due_times.rerun_or_cadence(
        facts, reruns=row.attempt, cadence=version.cadence, backoff=backoff, jitter=random.random(), now=now
    )
