"""The life of a run: asked for, claimed with a lease, ended by a report, tried again or given up."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import CharField, Exists, F, OuterRef, Prefetch, Q, QuerySet, Value
from django.db.models.functions import Cast, Coalesce, Concat, Now

from ingestion.captures.states import note_loaded
from ingestion.domain.remaining import phase_time_left
from ingestion.domain.retries import MAX_ATTEMPTS, GiveUp, RetryAt, decide_after_failure
from ingestion.lake import findings, index_findings
from ingestion.models import BlockedInput, JobKind, JobRun, JobState, ReplayRequest
from ingestion.runs.copy_lag import has_table
from ingestion.runs.index_choice import changing
from ingestion.runs.leases import LEASE_DURATION, RUN_SEPARATOR, hold_off, lease_end
from ingestion.runs.requests.job_checks import check_request
from ingestion.runs.requests.params import refuse_decided
from ingestion.runs.requests.source_checks import check_source
from ingestion.runs.sent_lineage.owing import owes_lineage
from ingestion.spark.contract.job_kinds import EXCLUSIVE_KINDS, READING_KINDS
from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import FAILED, PAUSED, REFUSED, SUCCEEDED, UNFINISHED, JobReport
from lakehub.accounts.audit import audit_log
from lakehub.catalog.models import Dataset, DatasetCopy, Feed
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.suggest import did_you_mean

SCHEDULE = "schedule"
"""Who asks for what is due."""
READY = (JobState.QUEUED, JobState.WAITING)
"""Begun when they are due."""
PENDING = (*READY, JobState.PAUSED)
"""Not at work: these can be cancelled."""
ACTIVE = (*PENDING, JobState.RUNNING)
_NEEDS_POSITION = (
    "To set the position of a copy, say where to and why: on the page Positions of the dataset, "
    "by `POST /api/v1/datasets/{name}/positions`, or by `manage.py positions {name}`."
)
MAX_WAITING_REQUESTS = 20
"""Of one copy, that people asked for: they run one after the other, and other copies wait behind them."""
_MAX_CLAIM_CANDIDATES = 50
_KINDS_THAT_PAUSE = (*READING_KINDS, JobKind.FOLLOW)
_KINDS_OF_LOADING = (JobKind.INCREMENTAL, JobKind.BACKFILL, JobKind.FOLLOW)
"""What they read, a bootstrap reads too."""
_KINDS_ON_A_TABLE = (
    *_KINDS_OF_LOADING,
    JobKind.DELETE,
    JobKind.REPLAY,
    JobKind.CLUSTER,
    JobKind.SET_POSITION,
    JobKind.VERIFY_INDEX,
    JobKind.REBUILD_INDEX,
)
_ONCE_IN_THE_QUEUE = (JobKind.VERIFY_INDEX, JobKind.REBUILD_INDEX, JobKind.DROP_INDEX, JobKind.SET_POSITION)
"""One that has not begun sees all that was written before it was asked for; of two places one is to hold."""
_NEEDS_ROWS = (
    "A replay needs the rejected rows to try again: choose them on the page Rejected rows of the dataset, "
    "by `POST /api/v1/datasets/{name}/errors/replay`, or by `manage.py replay_errors {name}`."
)


def request_run(
    copy: DatasetCopy,
    kind: str,
    params: dict[str, Any] | None = None,
    *,
    asked_by: str,
    now: datetime,
    replay: ReplayRequest | None = None,
    is_checked: bool = False,
) -> JobRun:
    """Queue a run. Raises Refused for what makes no sense, Conflict where such an incremental waits or runs already, or too many wait.

    A person's job on a copy without a table is refused. Where the copy's bootstrap was given up, an incremental or a backfill
    becomes the bootstrap that loads all of it: the schedule would ask for that only after the feed's interval.
    `replay`: the rows of a replay; they are stored with the run. `is_checked`: whoever asks for another position, or decides over a refused batch, may, and has said why.
    """
    if kind not in JobKind.values:
        raise Refused(f"There is no job of the kind `{kind}`.{did_you_mean(kind, JobKind.values)}")
    if kind == JobKind.REPLAY and replay is None:
        raise Refused(_NEEDS_ROWS.format(name=copy.dataset.name))
    if kind == JobKind.SET_POSITION and not is_checked:
        raise Refused(_NEEDS_POSITION.format(name=copy.dataset.name))
    if not is_checked:
        refuse_decided(copy.dataset.name, params or {})
    check_request(copy, kind, params or {})
    if kind in _ONCE_IN_THE_QUEUE and JobRun.objects.filter(copy=copy, kind=kind, state__in=PENDING).exists():
        raise Conflict(f"A {kind} of {copy} waits already; nothing was changed.")
    if asked_by != SCHEDULE:
        _check_queue(copy, kind)
    if lacks_table(copy, kind, asked_by):
        kind, params = _bootstrap_instead(copy, kind), {}
    try:
        with transaction.atomic():
            facts = {"params": params or {}, "asked_by": asked_by, "owes_lineage": owes_lineage(copy, kind)}
            run = JobRun.objects.create(copy=copy, kind=kind, due_at=now, **facts)
            if replay is not None:
                replay.run = run
                replay.save(force_insert=True)
            if asked_by != SCHEDULE:
                audit_log.record(asked_by, kind, f"copy:{copy}", now=now, run=run.pk, **(params or {}))
    except IntegrityError:
        raise Conflict(f"The {kind} of {copy} waits or runs already; nothing was changed.") from None
    return run


def _check_queue(copy: DatasetCopy, kind: str) -> None:
    """A drop waits behind no queue: it is how a copy with a full one is got rid of."""
    waiting = JobRun.objects.filter(copy=copy, state__in=PENDING).exclude(asked_by=SCHEDULE)
    if kind == JobKind.DROP:
        waiting = waiting.filter(kind=JobKind.DROP)
    if waiting.count() >= MAX_WAITING_REQUESTS:
        raise Conflict(
            f"{MAX_WAITING_REQUESTS} jobs of {copy} that people asked for wait already, and no more are taken; nothing was changed. "
            "Ask again when some have ended, or cancel those that are not needed."
        )


def lacks_table(copy: DatasetCopy, kind: str, asked_by: str) -> bool:
    """Whether a person's job of this kind has nothing to work on. What the schedule asks for goes by the copy itself."""
    return asked_by != SCHEDULE and kind in _KINDS_ON_A_TABLE and not has_table(copy)


def _bootstrap_instead(copy: DatasetCopy, kind: str) -> JobKind:
    """Raises Refused where a bootstrap was not given up, or does not do what was asked for."""
    bootstraps = JobRun.objects.filter(copy=copy, kind=JobKind.BOOTSTRAP).order_by("-pk")
    newest = bootstraps.exclude(state=JobState.CANCELLED).first()
    if newest is not None and newest.state == JobState.FAILED and kind in _KINDS_OF_LOADING:
        check_source(copy.dataset, JobKind.BOOTSTRAP)
        return JobKind.BOOTSTRAP
    if newest is None or newest.state == JobState.SUCCEEDED:
        remedy = (
            f"Bootstrap it first: `manage.py ingest bootstrap {copy.dataset.name} --data-center {copy.data_center}`"
        )
    elif newest.state == JobState.FAILED:
        remedy = f"Its bootstrap, run {newest.pk}, was given up: {newest.error}. Retry that run first"
    else:
        remedy = f"Its bootstrap, run {newest.pk}, is {newest.state}: ask again when it has succeeded"
    raise Refused(f"{copy} has no table yet, so there is nothing for a job of the kind `{kind}`. {remedy}.")


def find_copy(dataset: Dataset, data_center: str) -> DatasetCopy:
    """The copy in a data center; with no name, the only one. Raises NotFound with the nearest name."""
    copies = {copy.data_center.name: copy for copy in dataset.copies.select_related("data_center", "dataset__team")}
    name = data_center or (next(iter(copies)) if len(copies) == 1 else "")
    if name not in copies:
        problem_text = f"has no copy in `{name}`" if name else "has several copies: name the data center"
        raise NotFound(f"Dataset `{dataset.name}` {problem_text}.{did_you_mean(name, copies)}")
    return copies[name]


def running_jobs(copies: Collection[int]) -> list[str]:
    """What is at work on these copies now. A follow run is so only while it writes a batch: it holds the copy's lease then."""
    running = JobRun.objects.filter(copy__in=copies, state=JobState.RUNNING).select_related("copy__data_center")
    holder = Concat(F("leased_by"), Value(RUN_SEPARATOR), Cast("pk", CharField()))
    at_work = running.filter(~Q(kind=JobKind.FOLLOW) | Q(copy__lease__holder=holder, copy__lease__until__gt=Now()))
    return [f"{run.kind} run {run.pk} on {run.copy}" for run in at_work.order_by("pk")]


def running_jobs_held_off(copies: Collection[int]) -> list[str]:
    """The port `catalog.RunningJobs`, called in a transaction: what is at work on these copies, and nothing begins before it ends."""
    hold_off(copies)
    return running_jobs(copies)


def find_run(dataset: Dataset, number: int) -> JobRun:
    """The run of a copy of the dataset. Raises NotFound."""
    run = with_details(JobRun.objects.filter(copy__dataset=dataset, pk=number)).first()
    if run is None:
        raise NotFound(f"Dataset `{dataset.name}` has no run {number}.")
    return run


def with_details(runs: QuerySet[JobRun]) -> QuerySet[JobRun]:
    """With what people are told of them: two queries."""
    inputs = BlockedInput.objects.select_related("copy__dataset", "copy__data_center")
    return runs.select_related("copy__dataset__feed", "copy__data_center").prefetch_related(
        Prefetch("blocked_by", inputs)
    )


def claim_next_run(worker: str, *, now: datetime, lease: timedelta = LEASE_DURATION) -> JobRun | None:
    """The next job that is due, or whose worker has died; it is `worker`'s then. A bootstrap and a drop have their copy to themselves, other jobs share it."""
    fail_runs_of_dead_workers(now=now)
    candidates = claimable_runs(now=now).order_by("due_at").values_list("pk", "copy")
    for run_id, copy_id in candidates[:_MAX_CLAIM_CANDIDATES]:
        try:
            with transaction.atomic():
                # Claims of one copy one after the other: of a drop and a backfill that begin at once, each would see no other.
                hold_off([copy_id])
                won = claimable_runs(now=now).filter(pk=run_id).update(
                    state=JobState.RUNNING,
                    leased_by=worker,
                    leased_until=lease_end(lease),
                    attempt=F("attempt") + 1,
                    started_at=Coalesce(F("started_at"), Value(now)),
                    progress={},
                    progress_at=None,
                )  # fmt: skip
        except IntegrityError:
            continue
        if won:
            related = ("copy__dataset__feed__connection", "copy__data_center", "copy__index_change")
            return JobRun.objects.select_related(*related).get(pk=run_id)
    return None


def fail_runs_of_dead_workers(*, now: datetime) -> None:
    """A run whose workers died each time (it may be what kills them) is not handed to another one."""
    dead = JobRun.objects.filter(state=JobState.RUNNING, leased_until__lt=Now(), attempt__gte=MAX_ATTEMPTS)
    for run in dead.select_related("copy__dataset", "copy__data_center"):
        with transaction.atomic():
            why = f"its worker ended without a word {run.attempt} times"
            ended = {"state": JobState.FAILED, "ended_at": now, "leased_by": "", "leased_until": None, "error": why}
            if dead.filter(pk=run.pk).update(**ended):
                findings.raise_job_failing(run, why, now=now)


def claimable_runs(*, now: datetime) -> QuerySet[JobRun]:
    """Due, and not kept off its copy by a running job: one that is to be alone there waits for all, all others for such a one.

    Follow runs have a lane of their own, and keep nobody off: each of their batches looks whether the copy is shared just then.
    Who is to be alone gets its turn: jobs that were asked for after it, while it is due, wait until it has ended.
    """
    jobs = JobRun.objects.exclude(kind=JobKind.FOLLOW)
    running = jobs.filter(state=JobState.RUNNING)
    alone = JobRun.objects.filter(kind__in=EXCLUSIVE_KINDS, copy=OuterRef("copy"))
    ahead = alone.filter(state=JobState.QUEUED, due_at__lte=now, pk__lt=OuterRef("pk"))
    kept_off = (
        Exists(running.filter(copy=OuterRef("copy"), kind__in=EXCLUSIVE_KINDS))
        | Q(Exists(running.filter(copy=OuterRef("copy"))), kind__in=EXCLUSIVE_KINDS)
        | Exists(ahead)
    )
    waiting = Q(state__in=READY, due_at__lte=now) & ~kept_off
    return jobs.filter(waiting | Q(state=JobState.RUNNING, leased_until__lt=Now())).exclude(reads_what_is_paused())


def reads_what_is_paused() -> Q:
    """Of runs: the source that they would read is left alone, as long as ingestion of the dataset is paused."""
    paused = Feed.objects.filter(paused=True, dataset__copies=OuterRef("copy"))
    return Q(Exists(paused), kind__in=_KINDS_THAT_PAUSE)


def renew_lease(run: JobRun, worker: str, lease: timedelta = LEASE_DURATION) -> bool:
    """False: the run is no longer `worker`'s."""
    return bool(_leased_run(run, worker).update(leased_until=lease_end(lease)))


def tell_progress(run: JobRun, worker: str, progress: JobProgress, *, now: datetime) -> None:
    """Written only while the run is `worker`'s."""
    _leased_run(run, worker).update(progress=asdict(progress), progress_at=now)


def time_left(run: JobRun) -> timedelta | None:
    """Of the phase that the run is in, counted from `progress_at`; None: it is not at work, or nobody can say."""
    return phase_time_left(run.progress) if run.state == JobState.RUNNING else None


def postpone_run(run: JobRun, worker: str, *, to: datetime, why: str, waits_since: datetime | None = None) -> None:
    """Back into the queue, and the attempt does not count. `waits_since`: None where that is not the run's to know."""
    queued = {"state": JobState.QUEUED, "due_at": to, "leased_by": "", "leased_until": None, "error": why}
    known = {} if waits_since is None else {"waits_since": waits_since}
    _leased_run(run, worker).update(**queued, **known, attempt=F("attempt") - 1)


def cancel_claimed(run: JobRun, worker: str, *, now: datetime, why: str) -> None:
    """What it was asked for is gone."""
    ended = {"state": JobState.CANCELLED, "ended_at": now, "leased_by": "", "leased_until": None, "error": why}
    _leased_run(run, worker).update(**ended)


def mark_waiting(run: JobRun, worker: str, *, to: datetime, why: str, now: datetime) -> bool:
    """It has not begun: the gate is asked again at `to`. False: the run is no longer `worker`'s."""
    waiting_fields = {
        "state": JobState.WAITING,
        "due_at": to,
        "leased_by": "",
        "leased_until": None,
        "started_at": None,
        "error": why,
    }
    return bool(
        _leased_run(run, worker).update(
            **waiting_fields, attempt=F("attempt") - 1, waits_since=Coalesce(F("waits_since"), Value(now))
        )
    )


def finish_run(run: JobRun, report: JobReport, worker: str, *, now: datetime, jitter: float) -> JobState:
    """Write the outcome down. After a failure the run is queued again, or given up with a finding; one that is unfinished goes on
    at once, or when it is resumed, and starts to count its attempts again. What it then is."""
    with transaction.atomic():
        decision = _decide(run, report, now=now, jitter=jitter)
        state = _state_after(report, decision)
        if not _leased_run(run, worker).update(**_outcome_fields(run, report, decision, state, now)):
            raise Conflict(
                f"Run {run.pk} of {run.copy} is no longer {worker}'s: its lease ran out. Its report was not written down."
            )
        if isinstance(decision, GiveUp):
            findings.raise_job_failing(run, f"{decision.reason}; the last time: {report.error}", now=now)
        if state == JobState.SUCCEEDED:
            findings.clear_findings(run.copy, findings.JOB_FAILING, job=run.kind, now=now)
            if run.kind == JobKind.VERIFY_INDEX:
                index_findings.judge_index(run, report.output, now=now)
            if run.kind == JobKind.REBUILD_INDEX and report.status == SUCCEEDED:
                changing.note_built(run, report.output["index"], now=now)
            if run.kind == JobKind.BOOTSTRAP and report.status == SUCCEEDED:
                # Everything was read again: what was not accounted for before, or could not be loaded, is gone.
                findings.clear_findings(run.copy, findings.ROWS_UNACCOUNTED, now=now)
                note_loaded(run.copy, (report.checkpoint or {}).get("load", 0), now=now)
                for kind in _KINDS_OF_LOADING:
                    findings.clear_findings(run.copy, findings.JOB_FAILING, job=kind, now=now)
    run.refresh_from_db()
    return state


def cancel_run(run: JobRun, *, actor: str, now: datetime) -> None:
    """A run that waits is taken out of the queue; one that runs is left to end."""
    with transaction.atomic():
        waiting = JobRun.objects.filter(pk=run.pk, state__in=PENDING)
        if not waiting.update(state=JobState.CANCELLED, ended_at=now):
            raise Conflict(f"Run {run.pk} of {run.copy} is {run.state}: only a run that waits can be cancelled.")
        audit_log.record(actor, "cancel", f"run:{run.pk}", now=now)


def _leased_run(run: JobRun, worker: str) -> QuerySet[JobRun]:
    return JobRun.objects.filter(pk=run.pk, state=JobState.RUNNING, leased_by=worker)


def _outcome_fields(
    run: JobRun, report: JobReport, decision: RetryAt | GiveUp | None, state: JobState, now: datetime
) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "report": asdict(report),
        "error": report.error or "",
        "state": state,
        "leased_by": "",
        "leased_until": None,
        "waits_since": None,
    }
    if report.status in (UNFINISHED, PAUSED):
        fields["attempt"] = 0
    return fields | ({"due_at": decision.at} if isinstance(decision, RetryAt) else {"ended_at": now})


def _state_after(report: JobReport, decision: RetryAt | GiveUp | None) -> JobState:
    if report.status == PAUSED:
        return JobState.PAUSED
    if report.status == REFUSED:  # as often as it is tried again, until the inputs change
        return JobState.FAILED
    if isinstance(decision, RetryAt):
        return JobState.QUEUED
    return JobState.SUCCEEDED if decision is None else JobState.FAILED


def _decide(run: JobRun, report: JobReport, *, now: datetime, jitter: float) -> RetryAt | GiveUp | None:
    if report.status in (UNFINISHED, PAUSED):
        return RetryAt(now)
    return decide_after_failure(run.attempt, now=now, jitter=jitter) if report.status == FAILED else None
