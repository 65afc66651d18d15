"""Running what was claimed: measure, evaluate, and store result, facts and flip in one transaction."""

from __future__ import annotations

import logging
import time
from contextlib import nullcontext
from datetime import datetime, timedelta
from functools import partial

from celery.exceptions import SoftTimeLimitExceeded
from structlog.contextvars import bound_contextvars

from lakehub.db.lease_renewal import keep_renewed
from lakehub.kernel import failpoint
from quality.execution import failing_rows
from quality.execution.claims import LEASE_DURATION, Claim, ClaimQueue, extend_lease, release_claim
from quality.execution.evaluate import evaluate_units, failed_execution, may_have_rows
from quality.execution.store import store_executions
from quality.measuring import slow_sources
from quality.measuring.measure import measure_units
from quality.measuring.slow_sources import SourceDeferred
from quality.models import Result

logger = logging.getLogger(__name__)


_MAX_FAILED_CLAIMS = 3
STOPPED = (
    "The test was stopped, as its task ran for longer than LAKEHUB_TASK_MINUTES: check the source, give the test a shorter "
    "`timeout`, or allow tasks more."
)


def run_due_units(*, now: datetime, worker: str, most: int = 20, budget: timedelta = timedelta(hours=1)) -> int:
    """Runs what is due, up to `most` claims, and begins none after `budget`. The number of results stored.

    A claim that fails keeps the others from nothing: it is raised at the end, or where one after the other fails.
    """
    line, stored, begun = ClaimQueue(worker), 0, time.monotonic()
    failed: list[Exception] = []
    for _ in range(most):
        if time.monotonic() - begun > budget.total_seconds() or len(failed) == _MAX_FAILED_CLAIMS:
            break
        claimed = line.claim(now=now)
        if claimed is None:
            break
        with bound_contextvars(claim=claimed.token, copy=str(claimed.units[0].copy)):
            try:
                stored += len(execute_claim(claimed, now=now))
            except Exception as problem:
                logger.exception("A claim of %s failed", claimed.units[0].copy)
                failed.append(problem)
    if failed:
        raise failed[0]
    return stored


def execute_claim(claimed: Claim, *, now: datetime) -> list[Result]:
    """The results of the claim's units; of those whose lease was lost meanwhile there is none.

    Where its source keeps it waiting while as many others wait as may, it is given back and none is stored.
    What fails with one unit is its ERROR and no other's; where all fail together, they are others' to claim at once.
    """
    begun = time.monotonic()
    sources = {unit.resource for unit in claimed.units if ":" in unit.resource}  # others keep them: they may go silent
    try:
        with keep_renewed(partial(extend_lease, claimed), every=LEASE_DURATION / 3):
            with slow_sources.watched(sources, claimed.token) if sources else nullcontext():
                answers = measure_units(claimed.units[0].copy, claimed.units, now=now)
                runs = evaluate_units(claimed.units, answers, now=now)
                failed_runs = [run for run in runs if may_have_rows(run)]
                samples = failing_rows.read_failing_rows(failed_runs, now=now) if failed_runs else {}
            failpoint.reach("quality.before_result")
            took = timedelta(seconds=time.monotonic() - begun)
            results = store_executions(claimed, runs, now=now, took=took)
            if samples:
                failing_rows.keep_failing_rows(results, samples)
            return results
    except SourceDeferred as deferred:
        logger.info("%s: %s", claimed.units[0].copy, deferred)
        release_claim(claimed)
        return []
    except SoftTimeLimitExceeded:
        logger.error("The tests of %s were stopped by the watchdog of their task", claimed.units[0].copy)
        runs = [failed_execution(unit, STOPPED, "") for unit in claimed.units]
        return store_executions(claimed, runs, now=now, took=timedelta(seconds=time.monotonic() - begun))
    except BaseException:
        release_claim(claimed)
        raise
