"""One run from claim to outcome: the copy's lease around it, the timeline taken in after it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from ingestion import commits, leases, runs, waiting
from ingestion.launchers import Launcher
from ingestion.models import JobRun, JobState
from ingestion.ports import InputGate
from ingestion.spark.report import FAILED, JobReport
from ingestion.specs import spec_of
from lakehub.kernel.errors import Refused
from lakehub.leases import kept

logger = logging.getLogger(__name__)
TRY_AGAIN_AFTER = timedelta(seconds=5)


@dataclass(frozen=True)
class Worker:
    """Who works, with what: `clock` tells the platform's time, `ahead` how far it is ahead of the wall's."""

    name: str
    launcher: Launcher
    staging: str
    clock: Callable[[], datetime]
    ahead: Callable[[], timedelta]
    chance: Callable[[], float]
    gate: InputGate
    """Is asked about a run's inputs before it starts."""


def run_next(worker: Worker) -> JobRun | None:
    """Claim and run what is due next; None where there is nothing."""
    run = runs.claim(worker.name, now=worker.clock())
    if run is None:
        return None
    if _is_held(run, worker):
        return run
    if not leases.take(run.copy, worker.name):
        runs.postpone(
            run, worker.name, to=worker.clock() + TRY_AGAIN_AFTER, why="another writer holds the copy's lease"
        )
        return run
    try:
        with kept(partial(_renew, run, worker.name), every=leases.LEASE / 4):
            report = _launch(run, worker)
        _settle(run, report, worker)
    finally:
        leases.release(run.copy, worker.name)
    return run


def _is_held(run: JobRun, worker: Worker) -> bool:
    """It waits for an input, or its feed names one that is not there."""
    now = worker.clock()
    try:
        return waiting.hold(run, worker.name, worker.gate, now=now)
    except Refused as problem:
        report = JobReport(run_id=str(run.key), status=FAILED, error=str(problem))
        runs.finish(run, report, worker.name, now=now, jitter=worker.chance())
        return True


def _launch(run: JobRun, worker: Worker) -> JobReport:
    try:
        spec, secrets = spec_of(run, staging=worker.staging, ahead=worker.ahead(), now=worker.clock())
    except ValueError as problem:
        return JobReport(run_id=str(run.key), status=FAILED, error=str(problem))
    try:
        return worker.launcher.run(spec, secrets)
    except Exception as problem:
        return _failed(run, problem, "could not be launched")


def _settle(run: JobRun, report: JobReport, worker: Worker) -> None:
    """The timeline first: it is true whatever the report says."""
    now = worker.clock()
    try:
        commits.take_in(run.copy, now=now)
    except Exception as problem:
        report = _failed(run, problem, "has ended, but the table's timeline cannot be read")
    state = runs.finish(run, report, worker.name, now=now, jitter=worker.chance())
    level = logging.INFO if state == JobState.SUCCEEDED else logging.WARNING
    logger.log(
        level,
        "%s of %s: %s, %s%s",
        run.kind,
        run.copy,
        report.status,
        report.counts,
        f", {report.error}" if report.error else "",
    )


def _failed(run: JobRun, problem: Exception, what: str) -> JobReport:
    """For what no launcher expects: the run ends and is tried again like any other that failed."""
    logger.error("Run %s of %s %s", run.pk, run.copy, what, exc_info=problem)
    return JobReport(run_id=str(run.key), status=FAILED, error=f"The job {what}: {type(problem).__name__}: {problem}")


def _renew(run: JobRun, worker: str) -> None:
    if not (runs.renew(run, worker) and leases.take(run.copy, worker)):
        logger.warning("Run %s of %s has lost its lease: the table's fence keeps it from doing harm", run.pk, run.copy)
