"""Stores the results of a claim, with verdicts and schedule, in one transaction; each alone where that fails."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F

from quality.domain.parsed import is_parsable
from quality.execution.apply_result import apply_result, new_result
from quality.execution.claims import Claim, owned_units
from quality.execution.evaluate import SEE_LOG, Execution, failed_execution
from quality.measuring import concurrency
from quality.models import QualityTest, Result, Unit
from quality.planning import units
from quality.state.unit_state import save_units

logger = logging.getLogger(__name__)

OBSERVED_FIELDS = ("observed", "threshold", "detail", "tested_instant", "affected_from")
SCHEDULE_FIELDS = ("due_at", "lane", "attempt", "leased_by", "leased_until")


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

    The number of statements is the same for one unit as for all of them.
    """
    with transaction.atomic():
        rows_by_pk = _lock_owned_units(claimed)
        owned_runs = [(rows_by_pk[run.unit.pk], run) for run in runs if run.unit.pk in rows_by_pk]
        results = Result.objects.bulk_create([new_result(row, run, now=now, took=took) for row, run in owned_runs])
        flips = [
            apply_result(row, run, result, now=now) for (row, run), result in zip(owned_runs, results, strict=True)
        ]
        save_units([row for row, _ in owned_runs], flips, also=(*OBSERVED_FIELDS, *SCHEDULE_FIELDS))
        begun = [row for row, run in owned_runs if run.unit.latest_at is None and _has_following_partition(run.unit)]
        units.plan_following_units(claimed.units[0].copy, begun, now=now)
        if claimed.has_slots:
            concurrency.release_slots(claimed.token)
    return results


def _lock_owned_units(claimed: Claim) -> dict[int, Unit]:
    """The rows whose lease was not lost, as they are now, with their tests: read again where one has changed."""
    tests = {unit.test_id: unit.test for unit in claimed.units}
    now = F("test__version"), F("test__retired_at")
    rows = owned_units(claimed).order_by("pk").annotate(version_now=now[0], retired_now=now[1])
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
