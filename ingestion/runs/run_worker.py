"""One run from claim to outcome: the copy's lease around it, or around what it writes where it shares the copy; the timeline taken in after it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from structlog.contextvars import bound_contextvars

from ingestion.captures.beginning import why_load_waits
from ingestion.index_shares.use import note_servers, note_use
from ingestion.lake import commits
from ingestion.launchers import Launcher
from ingestion.models import JobKind, JobRun, JobState
from ingestion.pipelines.positions import note_read
from ingestion.pipelines.refusals import note_outcome
from ingestion.ports import InputGate
from ingestion.runs import blocked_inputs, job_runs, leases
from ingestion.runs.copy_lag import has_table
from ingestion.runs.index_use import allowances, waits
from ingestion.runs.index_use.allowances import Allowance, NoIndexCluster, allowance_of
from ingestion.runs.job_specs import job_spec_of
from ingestion.runs.leases import CopyWriteLease
from ingestion.runs.requests.replicas import note_replicated
from ingestion.runs.source_use import source_limits
from ingestion.runs.source_use.source_limits import Crowded
from ingestion.spark.contract.job_kinds import EXCLUSIVE_KINDS
from ingestion.spark.contract.report import FAILED, INDEX_AWAY, JobReport
from lakehub.catalog.datasets.feed_options import effective_options
from lakehub.catalog.models import DatasetCopy
from lakehub.db.lease_renewal import keep_renewed
from lakehub.kernel.errors import Refused

logger = logging.getLogger(__name__)
LEASE_RETRY_AFTER = timedelta(seconds=5)
CAPTURE_RETRY_AFTER = timedelta(seconds=2)
"""A tap takes a new table on within a second or two."""
PROGRESS_INTERVAL = timedelta(seconds=2)
"""How often a run is asked how far it is; each answer is one write."""


@dataclass(frozen=True)
class Worker:
    """Who works, with what: `clock` tells the platform's time, `clock_offset` how far it is ahead of the wall's."""

    name: str
    launcher: Launcher
    staging: str
    clock: Callable[[], datetime]
    clock_offset: Callable[[], timedelta]
    draw_jitter: Callable[[], float]
    gate: InputGate
    """Is asked about a run's inputs before it starts."""


def run_next(worker: Worker) -> JobRun | None:
    """Claim and run what is due next; None where there is nothing."""
    run = job_runs.claim_next_run(worker.name, now=worker.clock())
    if run is None:
        return None
    with bound_contextvars(run_id=str(run.key), run=run.pk, copy=str(run.copy)):
        return _run_claimed(run, worker)


def _run_claimed(run: JobRun, worker: Worker) -> JobRun:
    if not (_is_blocked(run, worker) or _is_too_early(run, worker)):
        with source_limits.place_of(run, worker.name) as crowded:
            if crowded is None:
                return _run_paced(run, worker)
            _postpone_crowded(run, worker, crowded)
    return run


def _run_paced(run: JobRun, worker: Worker) -> JobRun:
    """With its part of the index cluster, where its dataset has one."""
    try:
        with allowance_of(run, worker.name) as allowance:
            if not isinstance(allowance, Crowded):
                return _run_in_place(run, worker, allowance)
            _postpone_crowded(run, worker, allowance)
    except NoIndexCluster as problem:
        report = JobReport(run_id=str(run.key), status=FAILED, error=str(problem))
        job_runs.finish_run(run, report, worker.name, now=worker.clock(), jitter=worker.draw_jitter())
    return run


def _is_too_early(run: JobRun, worker: Worker) -> bool:
    """It is a load that waits for the tap, or its table cannot be captured."""
    now = worker.clock()
    try:
        why = why_load_waits(run, has_table=has_table(run.copy), now=now)
    except Refused as problem:
        report = JobReport(run_id=str(run.key), status=FAILED, error=str(problem))
        job_runs.finish_run(run, report, worker.name, now=now, jitter=worker.draw_jitter())
        return True
    if why is not None:
        job_runs.postpone_run(run, worker.name, to=now + CAPTURE_RETRY_AFTER, why=why)
    return why is not None


def _postpone_crowded(run: JobRun, worker: Worker, crowded: Crowded, *, waits_since: datetime | None = None) -> None:
    """It waits for its source or its index, at most as long as it may take to run."""
    now, feed = worker.clock(), run.copy.dataset.feed_or_none
    options = effective_options({} if feed is None else feed.options)
    error = crowded.error_after(timedelta(seconds=float(options["deadline_s"])))
    if error is None:
        job_runs.postpone_run(run, worker.name, to=now + crowded.retry_after, why=crowded.why, waits_since=waits_since)
        return
    source_limits.release_place(run, worker.name)
    allowances.release(run, worker.name)
    report = JobReport(run_id=str(run.key), status=FAILED, error=error)
    job_runs.finish_run(run, report, worker.name, now=now, jitter=worker.draw_jitter())


def _run_in_place(run: JobRun, worker: Worker, allowance: Allowance | None) -> JobRun:
    lease, is_alone = leases.lease_of_run(run, worker.name), run.kind in EXCLUSIVE_KINDS
    if not (lease.try_acquire() if is_alone else leases.may_share(run.copy)):
        job_runs.postpone_run(
            run, worker.name, to=worker.clock() + LEASE_RETRY_AFTER, why="another writer holds the copy's lease"
        )
        return run
    try:
        if not _is_still_wanted(run, worker):
            return run
        with (
            keep_renewed(partial(_renew_leases, run, worker.name, lease, allowance), every=leases.LEASE_DURATION / 4),
            keep_renewed(partial(_tell_progress, run, worker), every=PROGRESS_INTERVAL),
        ):
            report = _launch(run, worker, None if is_alone else lease, allowance)
        _record_outcome(run, report, worker)
    finally:
        lease.release()
    return run


def _is_still_wanted(run: JobRun, worker: Worker) -> bool:
    """The copy as it is now that nobody changes it: whoever held its lease may have moved or removed it, or dropped its table."""
    copies = DatasetCopy.with_removed.select_related(
        "dataset__feed__connection", "data_center", "rebuild", "index_change"
    )
    run.copy = copies.get(pk=run.copy_id)
    if run.kind == JobKind.DROP:
        return True
    if run.copy.removed_at is not None:
        why = "the copy was removed before it began"
    elif job_runs.lacks_table(run.copy, run.kind, run.asked_by):
        why = f"the copy's table was dropped before it began: bootstrap the copy, then ask for the {run.kind} again"
    else:
        return True
    job_runs.cancel_claimed(run, worker.name, now=worker.clock(), why=why)
    run.refresh_from_db(fields=["state", "error"])
    return False


def _is_blocked(run: JobRun, worker: Worker) -> bool:
    """It waits for an input, or its feed names one that is not there."""
    now = worker.clock()
    try:
        return blocked_inputs.wait_if_blocked(run, worker.name, worker.gate, now=now)
    except Refused as problem:
        report = JobReport(run_id=str(run.key), status=FAILED, error=str(problem))
        job_runs.finish_run(run, report, worker.name, now=now, jitter=worker.draw_jitter())
        return True


def _launch(run: JobRun, worker: Worker, lease: CopyWriteLease | None, allowance: Allowance | None) -> JobReport:
    try:
        spec, secrets = job_spec_of(
            run,
            staging=worker.staging,
            ahead=worker.clock_offset(),
            now=worker.clock(),
            readers=source_limits.readers_of(run),
            index_requests_per_s=None if allowance is None else allowance.requests_per_s(),
        )
    except ValueError as problem:
        return JobReport(run_id=str(run.key), status=FAILED, error=str(problem))
    except Exception as problem:
        return _failed_report(run, problem, "could not be prepared")
    try:
        return worker.launcher.run(spec, secrets, lease, source_limits.guidance_of(run, allowance))
    except Exception as problem:
        return _failed_report(run, problem, "could not be launched")


def _record_outcome(run: JobRun, report: JobReport, worker: Worker) -> None:
    """The timeline first: it is true whatever the report says."""
    now = worker.clock()
    try:
        commits.record_new_commits(run.copy, now=now)
        if run.copy.dataset.is_modelled:
            note_read(run.copy, report, now=now)
            report = note_outcome(run, report, now=now)
        if run.kind == JobKind.REPLICATE:
            note_replicated(run.copy, report, now=now)
        if report.index_use is not None:
            note_use(run.copy, report.index_use, now=now)
    except Exception as problem:
        report = _failed_report(run, problem, "has ended, but the table's timeline cannot be read")
    if report.status == INDEX_AWAY:
        _wait_for_index(run, report, worker)
        return
    state = job_runs.finish_run(run, report, worker.name, now=now, jitter=worker.draw_jitter())
    level = logging.INFO if state in (JobState.SUCCEEDED, JobState.PAUSED) else logging.WARNING
    logger.log(
        level,
        "%s of %s: %s, %s%s",
        run.kind,
        run.copy,
        report.status,
        report.counts,
        f", {report.error}" if report.error else "",
    )


def _wait_for_index(run: JobRun, report: JobReport, worker: Worker) -> None:
    """Its attempt does not count: it has found out that nobody answers."""
    now = worker.clock()
    since = run.waits_since or now
    away = waits.for_answer(report, waits=now - since, jitter=worker.draw_jitter())
    logger.warning("%s of %s is put off: %s", run.kind, run.copy, away.why)
    _postpone_crowded(run, worker, away, waits_since=since)


def _failed_report(run: JobRun, problem: Exception, failure: str) -> JobReport:
    """For what nobody expects: the run ends and is tried again like any other that failed."""
    logger.error("Run %s of %s %s", run.pk, run.copy, failure, exc_info=problem)
    return JobReport(
        run_id=str(run.key), status=FAILED, error=f"The job {failure}: {type(problem).__name__}: {problem}"
    )


def _renew_leases(run: JobRun, worker: str, lease: CopyWriteLease, allowance: Allowance | None) -> None:
    source_limits.renew_places(worker)
    if allowance is not None:
        allowance.renew()
    if not (job_runs.renew_lease(run, worker) and lease.renew()):
        logger.warning("Run %s of %s has lost its lease: the table's fence keeps it from doing harm", run.pk, run.copy)


def _tell_progress(run: JobRun, worker: Worker) -> None:
    """What it costs to ask is never the job's: an answer that does not come is not told."""
    try:
        progress = worker.launcher.progress(str(run.key))
    except Exception as problem:
        logger.debug("Run %s of %s does not say how far it is", run.pk, run.copy, exc_info=problem)
        return
    if progress is not None:
        job_runs.tell_progress(run, worker.name, progress, now=worker.clock())
        note_servers(run.copy, progress.index_servers)
