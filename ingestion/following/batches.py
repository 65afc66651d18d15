"""One batch of a followed copy: the gate, an incremental job of Spark that takes the copy's lease while it writes, and the commit taken in after it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum
from functools import partial
from uuid import uuid4

from ingestion.following import follow_runs, handovers
from ingestion.following.handovers import HandedOver
from ingestion.index_shares.use import note_use
from ingestion.lake import commits
from ingestion.models import JobRun
from ingestion.runs import blocked_inputs, job_runs, leases
from ingestion.runs.index_use.allowances import Allowance, allowance_of
from ingestion.runs.job_specs import job_spec_of
from ingestion.runs.leases import CopyWriteLease
from ingestion.runs.run_worker import Worker
from ingestion.runs.source_use import source_limits
from ingestion.runs.source_use.source_limits import Crowded
from ingestion.spark.contract.report import FAILED, INDEX_AWAY, PUT_OFF, JobReport
from lakehub.catalog.models import DatasetCopy
from lakehub.db.lease_renewal import keep_renewed

logger = logging.getLogger(__name__)


class NotRun(Enum):
    """Why there was no batch."""

    BLOCKED = "an input is blocked: the run waits in the database, and is nobody's"
    LEASED = "another job writes the copy, or has it to itself"
    GONE = "the copy was removed, its table was dropped, or it is not to be followed now"


def run_batch(
    run: JobRun, worker: Worker, *, keep_held: Callable[[], None]
) -> JobReport | NotRun | Crowded | HandedOver:
    """`keep_held` is called again and again meanwhile: it renews what the worker holds besides. Raises Refused where the feed names
    an input that is not there, or there is no index cluster, and what a timeline raises that cannot be read."""
    before = handovers.newest_of(run.copy)
    if before is not None and handovers.is_under_way(before):
        return HandedOver(before.pk)
    if blocked_inputs.wait_if_blocked(run, worker.name, worker.gate, now=worker.clock()):
        return NotRun.BLOCKED
    if handovers.is_next_too_long(before):
        return _hand_over(run, worker)
    if not (leases.may_share(run.copy) and leases.is_free(run.copy)):
        return NotRun.LEASED  # others that the worker follows do not wait for it
    with source_limits.place_of(run, worker.name) as crowded:
        report = crowded or _run_paced(run, worker, keep_held)
    if isinstance(report, JobReport) and handovers.is_too_long(run, report):
        logger.warning("A batch of %s is handed over: %s", run.copy, report.error)
        return _hand_over(run, worker)
    return report


def _hand_over(run: JobRun, worker: Worker) -> HandedOver | NotRun:
    if not _is_still_there(run, worker):
        return NotRun.GONE
    return handovers.hand_over(run, now=worker.clock()) or NotRun.LEASED


def _run_paced(run: JobRun, worker: Worker, keep_held: Callable[[], None]) -> JobReport | NotRun | Crowded:
    """With its part of the index cluster, where its dataset has one."""
    with allowance_of(run, worker.name) as allowance:
        if isinstance(allowance, Crowded):
            return allowance
        return _run_in_place(run, worker, keep_held, allowance)


def _run_in_place(
    run: JobRun, worker: Worker, keep_held: Callable[[], None], allowance: Allowance | None
) -> JobReport | NotRun:
    lease = leases.lease_of_run(run, worker.name)
    try:
        if not _is_still_there(run, worker):
            return NotRun.GONE
        with keep_renewed(partial(_renew, run.copy, lease, allowance, keep_held), every=leases.LEASE_DURATION / 4):
            report = _launch(run, worker, lease, allowance)
        # Whatever the report says: the timeline is true.
        commits.record_new_commits(run.copy, now=worker.clock())
        if report.index_use is not None:
            note_use(run.copy, report.index_use, now=worker.clock())
        if run.regardless_by and report.status not in (FAILED, PUT_OFF, INDEX_AWAY):
            # What somebody answers for is this batch, and not all that come after it; the audit log keeps who it was.
            JobRun.objects.filter(pk=run.pk).update(regardless_by="", regardless_why="")
    finally:
        lease.release()
    if report.status == PUT_OFF:
        return NotRun.LEASED
    logger.info("Batch of %s: %s, %s", run.copy, report.status, report.counts)
    return report


def _is_still_there(run: JobRun, worker: Worker) -> bool:
    """The copy as it is now: whoever had it to themselves may have moved or removed it, or dropped its table. Its feed may have been paused."""
    if not follow_runs.held(worker.name, [run.pk]):
        return False
    copies = DatasetCopy.with_removed.select_related(
        "dataset__feed__connection", "data_center", "rebuild", "index_change"
    )
    run.copy = copies.get(pk=run.copy_id)
    return run.copy.removed_at is None and not job_runs.lacks_table(run.copy, run.kind, asked_by="")


def _launch(run: JobRun, worker: Worker, lease: CopyWriteLease, allowance: Allowance | None) -> JobReport:
    spec, secrets = job_spec_of(
        run,
        staging=worker.staging,
        ahead=worker.clock_offset(),
        now=worker.clock(),
        batch=uuid4().hex[:12],
        index_requests_per_s=None if allowance is None else allowance.requests_per_s(),
    )
    try:
        return worker.launcher.run(spec, secrets, lease, source_limits.guidance_of(run, allowance))
    except Exception as problem:
        logger.exception("The job %s could not be launched", spec.run_id)
        error = f"The job could not be launched: {type(problem).__name__}: {problem}"
        return JobReport(run_id=spec.run_id, status=FAILED, error=error)


def _renew(
    copy: DatasetCopy, lease: CopyWriteLease, allowance: Allowance | None, keep_held: Callable[[], None]
) -> None:
    keep_held()
    if allowance is not None:
        allowance.renew()
    if not lease.renew():
        logger.warning("%s has lost its lease: the table's fence keeps its batch from doing harm", copy)
