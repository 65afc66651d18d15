"""The runs that follow copies, in the database: one row for as long as a copy is followed, claimed with a lease that others take over."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db.models import Case, F, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce, Now

from ingestion.domain.following import FollowSums, next_look_at
from ingestion.lake import findings
from ingestion.models import JobKind, JobRun, JobState, SchemaVersion
from ingestion.runs import job_runs
from ingestion.runs.leases import lease_end
from lakehub.catalog.models import DatasetCopy, FeedKind

LEASE_DURATION = timedelta(minutes=3)
"""Renewed when the sums are told, once a minute: an idle copy costs one write in that time. A process of this host that ended
gives its runs free at once."""
_NO_LONGER = "the copy is no longer followed: its feed was changed, or its table is gone"


def claimable(*, now: datetime) -> QuerySet[JobRun]:
    waiting = Q(state__in=job_runs.READY, due_at__lte=now)
    runs = _follow_runs().filter(waiting | Q(state=JobState.RUNNING, leased_until__lt=Now()))
    return runs.exclude(job_runs.reads_what_is_paused())


def claim(worker: str, *, now: datetime, most: int) -> list[int]:
    """The numbers of runs that are `worker`'s from now on; they go on with the sums that they have. Where there is none, one query."""
    pks = list(claimable(now=now).order_by("due_at").values_list("pk", flat=True)[:most])
    if pks:  # those that kill their workers are among them, and are nobody's after this
        job_runs.fail_runs_of_dead_workers(now=now)
    return [pk for pk in pks if _claim(pk, worker, now)]


def _claim(pk: int, worker: str, now: datetime) -> bool:
    running = {"state": JobState.RUNNING, "leased_by": worker, "leased_until": lease_end(LEASE_DURATION)}
    began = {"started_at": Coalesce(F("started_at"), now), "attempt": F("attempt") + 1}
    return bool(claimable(now=now).filter(pk=pk).update(**running, **began))


def held(worker: str, runs: Collection[int]) -> dict[int, JobRun]:
    """Those of `runs` that are still `worker`'s, with what a look needs, by number: of a captured dataset `accepted` is the newest version of its subject,
    and `emptied` in which transaction its table was emptied last. One query."""
    related = ("copy__dataset__feed__connection", "copy__dataset__team", "copy__data_center", "copy__rebuild")
    mine = _follow_runs().filter(pk__in=runs, state=JobState.RUNNING, leased_by=worker)
    of_subject = SchemaVersion.objects.filter(subject__name=OuterRef("copy__dataset__feed__capture__topic"))
    accepted = of_subject.filter(deprecated_at=None).order_by("-version").values("version")[:1]
    capture = "copy__dataset__feed__capture"
    is_of_load = Q(**{f"{capture}__captured_load": F(f"{capture}__load")})
    emptied = Case(When(is_of_load, then=F(f"{capture}__emptied_sequence")))
    known = mine.select_related(*related).annotate(accepted=Subquery(accepted), emptied=emptied)
    return {run.pk: run for run in known}


def renew(worker: str) -> None:
    """All of `worker`'s, while a batch keeps it from telling."""
    mine = _follow_runs().filter(state=JobState.RUNNING, leased_by=worker)
    mine.update(leased_until=lease_end(LEASE_DURATION))


def tell(run: int, worker: str, sums: FollowSums, *, is_well: bool, now: datetime) -> bool:
    """Writes the sums down and renews the lease. `is_well`: a look has succeeded since the claim. False: it is no longer `worker`'s."""
    well = {"attempt": 1, "error": ""} if is_well else {}
    mine = _follow_runs().filter(pk=run, state=JobState.RUNNING, leased_by=worker)
    progress = {"progress": sums.to_json(), "progress_at": now, "leased_until": lease_end(LEASE_DURATION)}
    return bool(mine.update(**progress, **well))


def give_back(run: int, worker: str, sums: FollowSums, *, now: datetime) -> None:
    """For another process to go on at once; the attempt does not count."""
    mine = _follow_runs().filter(pk=run, state=JobState.RUNNING, leased_by=worker)
    queued = {"state": JobState.QUEUED, "due_at": now, "leased_by": "", "leased_until": None}
    mine.update(**queued, attempt=F("attempt") - 1, progress=sums.to_json(), progress_at=now)


def keep_sums(run: int, sums: FollowSums, *, now: datetime) -> None:
    """Of a run that waits, is paused or has ended, and is nobody's."""
    _follow_runs().filter(pk=run, leased_by="").update(progress=sums.to_json(), progress_at=now)


def note_problem(run: JobRun, worker: str, why: str) -> None:
    """It is still `worker`'s; the next look that succeeds clears it."""
    _follow_runs().filter(pk=run.pk, state=JobState.RUNNING, leased_by=worker).update(error=why)
    run.error = why


def due_at(run: int) -> datetime | None:
    """None: it does not wait."""
    return _follow_runs().filter(pk=run, state__in=job_runs.READY).values_list("due_at", flat=True).first()


def clear_failing(run: JobRun, *, now: datetime) -> None:
    """A look has succeeded: what was said of jobs that load changes is over."""
    for kind in (JobKind.FOLLOW, JobKind.INCREMENTAL):
        findings.clear_findings(run.copy, findings.JOB_FAILING, job=kind, now=now)


def end_unwanted(*, now: datetime) -> int:
    """Ends the runs whose copy is not followed any more, whoever holds them. How many. Those of a feed that is paused stay."""
    unwanted = _follow_runs().filter(state__in=job_runs.ACTIVE).exclude(copy__in=followed_copies().values("pk"))
    pks = list(unwanted.values_list("pk", flat=True))
    ended = {"state": JobState.CANCELLED, "ended_at": now, "leased_by": "", "leased_until": None}
    return _follow_runs().filter(pk__in=pks, state__in=job_runs.ACTIVE).update(**ended, error=_NO_LONGER) if pks else 0


def followed_copies() -> QuerySet[DatasetCopy]:
    """Loaded copies with a live feed of a connection; also those that are being built."""
    live = DatasetCopy.with_removed.filter(removed_at=None, dataset__ingested=True, dataset__offboarded_at=None)
    fed = live.filter(dataset__feed__kind=FeedKind.CONNECTION, replica=None)
    return fed.annotate(loaded=_newest(JobKind.BOOTSTRAP), dropped=_newest(JobKind.DROP)).filter(
        loaded__gt=Coalesce(F("dropped"), 0)
    )


def overdue_looks(*, now: datetime) -> int:
    """How many copies were not looked at for longer than their interval, as far as it was told."""
    runs = _follow_runs().filter(state__in=(JobState.QUEUED, JobState.RUNNING)).select_related("copy__dataset__feed")
    looks = ((run, FollowSums.from_json(run.progress).looked_at) for run in runs)
    return sum(next_look_at(looked_at, run.copy.dataset.feed.every, now=now) <= now for run, looked_at in looks)


def _follow_runs() -> QuerySet[JobRun]:
    return JobRun.objects.filter(kind=JobKind.FOLLOW)


def _newest(kind: JobKind) -> Subquery:
    ended = JobRun.objects.filter(copy=OuterRef("pk"), kind=kind, state=JobState.SUCCEEDED)
    return Subquery(ended.order_by("-pk").values("pk")[:1])
