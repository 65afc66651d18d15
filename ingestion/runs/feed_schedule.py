"""What is due: a copy that was never loaded gets a bootstrap, every other one a run that follows its source, and beside it one that
puts small files together where there are many. A replica gets runs that replicate, and of pipelines that read each other the upstream one comes first.

Loaded means: a bootstrap has succeeded since the last drop. What was given up is asked for again after the feed's interval.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery

from ingestion.lake.files.small_files import PLANNED, is_clustering_due
from ingestion.models import Commit, JobKind, JobRun, JobState
from ingestion.runs import job_runs
from ingestion.runs.modelled_tables.chains import PlannedRun, awaited_commit, upstream_first
from ingestion.runs.modelled_tables.input_commits import UPDATING_KINDS, InputState, followed_inputs
from ingestion.runs.replicas.schedule import planned_replications
from ingestion.spark.contract.job_kinds import EXCLUSIVE_KINDS
from lakehub.catalog.datasets.feed_options import effective_options_of
from lakehub.catalog.models import DatasetCopy, FeedKind
from lakehub.kernel.errors import Conflict

CLUSTER_EVERY = timedelta(hours=1)
MAX_FILE_LOOKS = 20
"""At a time: each lists all files of a table, and after a restart all copies are due."""
_files_looked_at: dict[int, datetime] = {}
"""By copy, in this process."""


def request_due_runs(*, now: datetime) -> list[JobRun]:
    """What is known of a copy's newest runs is a look into an index for each, however many there were."""
    planned = chain(_planned_requests(now), _planned_pipeline_requests(now), planned_replications(now))
    due = [(copy, kind) for copy, kind, at in planned if at <= now]
    requested_runs = [_request(copy, kind, now) for copy, kind in due]
    return [run for run in requested_runs if run is not None]


def next_request_at(*, now: datetime) -> datetime | None:
    """When the first of the copies that are idle now is asked for; None: none is fed."""
    planned = chain(_planned_requests(now), _planned_pipeline_requests(now), planned_replications(now))
    return min((at for _, _, at in planned), default=None)


def _planned_requests(now: datetime) -> Iterator[tuple[DatasetCopy, JobKind, datetime]]:
    """Each idle copy with the job that is next, and when it is due: at once where nothing has been tried before."""
    copies = idle_fed_copies().annotate(
        loaded=_newest_run_value("pk", kind=JobKind.BOOTSTRAP, state=JobState.SUCCEEDED),
        dropped=_newest_run_value("pk", kind=JobKind.DROP, state=JobState.SUCCEEDED),
        failed_at=_newest_run_value("ended_at", kind=JobKind.BOOTSTRAP, state=JobState.FAILED),
        has_work=Exists(_active_runs().exclude(kind=JobKind.CLUSTER).filter(copy=OuterRef("pk"))),
        unfollowed_at=_newest_run_value("ended_at", kind=JobKind.FOLLOW, state=JobState.FAILED),
    )
    for copy in copies:
        is_loaded = (copy.loaded or 0) > (copy.dropped or 0)
        if not is_loaded and copy.has_work:
            continue  # which may become the bootstrap, or has to end before one
        failed_at = copy.unfollowed_at if is_loaded else copy.failed_at
        # One that lies ahead was noted by a clock that was wrong, and holds nothing up.
        is_waiting = failed_at is not None and failed_at <= now
        due_at = failed_at + copy.dataset.feed.every if is_waiting else now
        yield copy, JobKind.FOLLOW if is_loaded else JobKind.BOOTSTRAP, due_at


def _planned_pipeline_requests(now: datetime) -> Iterator[tuple[DatasetCopy, JobKind, datetime]]:
    """Each copy that a pipeline makes, where no job of its does so now."""
    making = _active_runs().filter(kind__in=(JobKind.INCREMENTAL, *EXCLUSIVE_KINDS)).values("copy")
    fed = _fed_copies(FeedKind.PIPELINE).filter(dataset__pipeline__isnull=False).exclude(pk__in=making)
    known = fed.select_related("dataset__pipeline").annotate(
        loaded=_newest_run_value("pk", kind=JobKind.BOOTSTRAP, state=JobState.SUCCEEDED),
        dropped=_newest_run_value("pk", kind=JobKind.DROP, state=JobState.SUCCEEDED),
        failed_at=_newest_run_value("ended_at", kind=JobKind.BOOTSTRAP, state=JobState.FAILED),
        loaded_at=_newest_run_value("ended_at", kind=JobKind.BOOTSTRAP, state=JobState.SUCCEEDED),
        followed_at=_newest_run_value("ended_at", kind=JobKind.INCREMENTAL),
        began_at=_newest_run_value("started_at", kind__in=UPDATING_KINDS),
        ended_at=_newest_run_value("ended_at", kind__in=UPDATING_KINDS),
    )
    copies = [*known]
    inputs = followed_inputs(copies) if copies else {}
    planned = [_planned_pipeline_run(copy, inputs[copy.pk], now) for copy in copies]
    yield from upstream_first(planned, inputs, now=now)


def _planned_pipeline_run(copy: Any, inputs: Collection[InputState], now: datetime) -> PlannedRun:
    """`copy`: with what is known of its newest runs."""
    is_loaded, every = (copy.loaded or 0) > (copy.dropped or 0), copy.dataset.feed.every
    last = max(filter(None, (copy.loaded_at, copy.followed_at)), default=None) if is_loaded else copy.failed_at
    if last is not None and last > now:
        last = None  # it was noted by a clock that was wrong
    due_at = now if last is None else last + every
    # Once for each commit: a run that failed, was refused or cancelled is not begun again and again.
    since, committed_at = copy.began_at or copy.ended_at, awaited_commit(copy, inputs)
    if is_loaded and committed_at is not None and (since is None or committed_at > since):
        due_at = min(due_at, now)
    registered_at = copy.dataset.pipeline.changed_at
    waits_until = (last or registered_at) + 2 * every
    kind = JobKind.INCREMENTAL if is_loaded else JobKind.BOOTSTRAP
    return PlannedRun(copy, kind, due_at, since or registered_at, waits_until)


def request_due_clusterings(*, now: datetime, wall: datetime) -> list[JobRun]:
    """For copies with so many commits since their files were looked at that there may be many small ones, and where there are.

    A process looks at a copy's files once in `CLUSTER_EVERY`, and at MAX_FILE_LOOKS copies in one call. `wall`: the time of files, where `now` is that of runs.
    """
    due = islice((copy for copy in _copies_with_new_files(now) if _is_look_due(copy, now)), MAX_FILE_LOOKS)
    runs = []
    for copy in due:
        max_file_mib = int(effective_options_of(copy.dataset)["max_file_mib"])
        if is_clustering_due(copy, max_file_mib=max_file_mib, wall=wall):
            params = {"planned": True}
            runs.append(job_runs.request_run(copy, JobKind.CLUSTER, params, asked_by=job_runs.SCHEDULE, now=now))
    return runs


def _copies_with_new_files(now: datetime) -> QuerySet[DatasetCopy]:
    """Loaded ones without a clustering that waits, runs or ended within `CLUSTER_EVERY`."""
    since = now - CLUSTER_EVERY
    recent = JobRun.objects.filter(copy=OuterRef("pk"), kind=JobKind.CLUSTER)
    recent = recent.filter(Q(state__in=job_runs.ACTIVE) | Q(ended_at__gt=since))
    clustered_at = _newest_run_value("ended_at", kind=JobKind.CLUSTER, state=JobState.SUCCEEDED)
    commits = Commit.objects.filter(copy=OuterRef("pk"))
    # As many as make the least number of files that is worth it: how many more there are does not matter.
    newest = Subquery(
        commits.order_by("-completed_at").values("completed_at")[PLANNED.min_files - 1 : PLANNED.min_files]
    )
    copies = _fed_copies().annotate(clustered_at=clustered_at, nth_commit_at=newest)
    many = Q(clustered_at=None) | Q(nth_commit_at__gt=F("clustered_at"))
    return copies.filter(many, ~Exists(recent), nth_commit_at__isnull=False)


def _is_look_due(copy: DatasetCopy, now: datetime) -> bool:
    looked_at = _files_looked_at.get(copy.pk)
    if looked_at is not None and now - CLUSTER_EVERY < looked_at <= now:
        return False
    _files_looked_at[copy.pk] = now
    return True


def idle_fed_copies() -> QuerySet[DatasetCopy]:
    """Copies that jobs load from a connection, and that none loads whole or follows; also those that are being built."""
    at_work = _active_runs().filter(kind__in=(JobKind.FOLLOW, *EXCLUSIVE_KINDS)).values("copy")
    return _fed_copies().exclude(pk__in=at_work)


def _active_runs() -> QuerySet[JobRun]:
    return JobRun.objects.filter(state__in=job_runs.ACTIVE)


def _fed_copies(kind: FeedKind = FeedKind.CONNECTION) -> QuerySet[DatasetCopy]:
    live = DatasetCopy.with_removed.filter(removed_at=None, dataset__ingested=True, dataset__offboarded_at=None)
    fed = live.filter(replica=None, dataset__feed__kind=kind, dataset__feed__paused=False)
    return fed.select_related("dataset__feed__connection", "data_center")


def _newest_run_value(fact: str, **which: object) -> Subquery:
    return Subquery(JobRun.objects.filter(copy=OuterRef("pk"), **which).order_by("-pk").values(fact)[:1])


def _request(copy: DatasetCopy, kind: JobKind, now: datetime) -> JobRun | None:
    try:
        return job_runs.request_run(copy, kind, asked_by=job_runs.SCHEDULE, now=now)
    except Conflict:
        # Another scheduler was faster.
        return None
