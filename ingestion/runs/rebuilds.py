"""Rebuilds of datasets with another partition: how far the new tables are, the switch when all are whole, and what is dropped.

A new table is whole when it was loaded, and has read all changes that the present one has. It then holds as many records at least:
where it has fewer (rows that the source no longer has), a person decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Max

from ingestion.models import Finding, JobKind, JobRun, JobState
from ingestion.ports import rows_in_lake
from ingestion.runs import job_runs, leases
from ingestion.runs.copy_lag import complete_upto, is_loaded
from lakehub.catalog.models import Dataset, DatasetCopy, Rebuild, RebuildState
from lakehub.catalog.onboarding import rebuild as rebuilds
from lakehub.kernel.error_isolation import log_and_continue
from lakehub.kernel.errors import Conflict

MIN_CHECK_INTERVAL = timedelta(minutes=1)
"""So often at most the rows of new tables are counted that hold fewer than the present ones."""
FAILED, LOADING, BEHIND, WHOLE = "failed", "loading", "behind", "whole"


@dataclass(frozen=True)
class BuiltCopy:
    """A table that is being built: its newest run, and how far it is: failed, loading, behind (changes are read) or whole."""

    copy: DatasetCopy
    run: JobRun | None
    state: str


def built_copies(rebuild: Rebuild) -> list[BuiltCopy]:
    """By data center. Some queries a copy."""
    present = {copy.data_center_id: copy for copy in rebuild.dataset.copies.all()}
    copies = DatasetCopy.with_removed.filter(rebuild=rebuild)
    related = copies.select_related("dataset__feed", "data_center", "rebuild").order_by("data_center__name")
    return [_built_copy(copy, present.get(copy.data_center_id)) for copy in related]


def _built_copy(copy: DatasetCopy, present: DatasetCopy | None) -> BuiltCopy:
    run = job_runs.with_details(copy.runs.order_by("-pk")).first()
    if run is not None and run.state == JobState.FAILED:
        return BuiltCopy(copy, run, FAILED)
    if not is_loaded(copy):
        return BuiltCopy(copy, run, LOADING)
    read, read_by_present = complete_upto(copy), _read_upto(present) if present else None
    is_current = read is not None and (read_by_present is None or read >= read_by_present)
    return BuiltCopy(copy, run, WHOLE if is_current else BEHIND)


def _read_upto(copy: DatasetCopy) -> datetime | None:
    """Also where a follow run has committed something and not told yet when it looked."""
    newest = copy.commits.filter(run__kind=JobKind.FOLLOW).aggregate(at=Max("completed_at"))["at"]
    return max((at for at in (complete_upto(copy), newest) if at is not None), default=None)


@dataclass(frozen=True)
class RebuildProgress:
    """The newest rebuild of a dataset: how far its tables are, while it is under way; and what was left to drop."""

    rebuild: Rebuild
    copies: list[BuiltCopy]
    left_tables: list[DatasetCopy]

    @property
    def is_under_way(self) -> bool:
        return self.rebuild.state == RebuildState.BUILDING

    @property
    def needs_decision(self) -> bool:
        return self.is_under_way and bool(self.rebuild.problem) and not self.rebuild.accepted_by


def rebuild_progress(dataset: Dataset) -> RebuildProgress | None:
    """None: there never was one."""
    rebuild = Rebuild.objects.filter(dataset=dataset).select_related("dataset__feed").order_by("-pk").first()
    if rebuild is None:
        return None
    copies = built_copies(rebuild) if rebuild.state == RebuildState.BUILDING else []
    return RebuildProgress(rebuild, copies, droppable_tables(dataset))


def cancel(rebuild: Rebuild, *, actor: str, now: datetime) -> None:
    """The present tables stay; what waits to be loaded is taken out of the queue. Raises Conflict."""
    with transaction.atomic():
        rebuilds.cancel_rebuild(rebuild, actor=actor, now=now)
        waiting = JobRun.objects.filter(copy__rebuild=rebuild, state__in=job_runs.PENDING)
        waiting.update(state=JobState.CANCELLED, ended_at=now)


def droppable_tables(dataset: Dataset) -> list[DatasetCopy]:
    """What removed copies left in the lake, and no drop was asked for or has removed."""
    dropped = JobRun.objects.filter(copy__dataset=dataset, kind=JobKind.DROP)
    gone = set(dropped.exclude(state__in=(JobState.FAILED, JobState.CANCELLED)).values_list("copy", flat=True))
    return [copy for copy in rebuilds.left_tables(dataset) if copy.pk not in gone]


def drop_left_tables(dataset: Dataset, *, actor: str, now: datetime) -> list[JobRun]:
    """Asks for them to be removed from the lake, with their error tables. Raises Conflict where there is none."""
    copies = droppable_tables(dataset)
    if not copies:
        raise Conflict(f"Nothing that `{dataset.name}` left in the lake is there to be dropped.")
    return [job_runs.request_run(copy, JobKind.DROP, asked_by=actor, now=now) for copy in copies]


def switch_whole_rebuilds(*, holder: str, now: datetime) -> int:
    """Switches each dataset whose new tables are all whole. How many. `holder` takes the leases of the copies meanwhile."""
    switched = 0
    under_way = Rebuild.objects.filter(state=RebuildState.BUILDING, dataset__offboarded_at=None)
    for rebuild in under_way.select_related("dataset__feed"):
        with log_and_continue(f"Switching {rebuild}"):
            switched += _switch_if_whole(rebuild, holder, now=now)
    return switched


def _switch_if_whole(rebuild: Rebuild, holder: str, *, now: datetime) -> bool:
    if _was_checked_lately(rebuild, now) or not _all_whole(rebuild):
        return False
    old, new = _copies_of(rebuild)
    with _all_leased([*old, *new], holder) as are_leased:
        # Nobody begins to write now; who does already is waited for.
        if not are_leased or job_runs.running_jobs([copy.pk for copy in (*old, *new)]) or not _all_whole(rebuild):
            return False
        if not rebuild.accepted_by:
            problem = _lacking_rows(old, new)
            Rebuild.objects.filter(pk=rebuild.pk).update(problem=problem, checked_at=now)
            if problem:
                return False
        rebuilds.switch_rebuild(rebuild, now=now)
    # What was raised and cleared while they were built is nobody's matter.
    past = Finding.objects.filter(copy__in=new, cleared_at__isnull=False)
    past.update(raise_claimed_at=now, clear_claimed_at=now)
    return True


def _was_checked_lately(rebuild: Rebuild, now: datetime) -> bool:
    """And told to hold too few rows: to count them is not free."""
    if rebuild.accepted_by or not rebuild.problem or rebuild.checked_at is None:
        return False
    return now < rebuild.checked_at + max(rebuild.dataset.feed.every, MIN_CHECK_INTERVAL)


def _all_whole(rebuild: Rebuild) -> bool:
    built = built_copies(rebuild)
    return bool(built) and all(each.state == WHOLE for each in built)


def _copies_of(rebuild: Rebuild) -> tuple[list[DatasetCopy], list[DatasetCopy]]:
    """The present ones and the new ones."""
    old = rebuild.dataset.copies.select_related("data_center")
    new = DatasetCopy.with_removed.filter(rebuild=rebuild).select_related("data_center")
    return list(old), list(new)


@contextmanager
def _all_leased(copies: list[DatasetCopy], holder: str) -> Iterator[bool]:
    taken: list[DatasetCopy] = []
    try:
        taken += (copy for copy in copies if leases.acquire(copy, holder))
        yield len(taken) == len(copies)
    finally:
        for copy in taken:
            leases.release(copy, holder)


def _lacking_rows(old: list[DatasetCopy], new: list[DatasetCopy]) -> str:
    """Which new table holds fewer records than the present one, or cannot be counted; empty: none."""
    present = {copy.data_center_id: copy for copy in old}
    problems = []
    for copy in new:
        if copy.data_center_id not in present or not is_loaded(present[copy.data_center_id]):
            continue
        try:
            before, after = rows_in_lake(present[copy.data_center_id].uri), rows_in_lake(copy.uri)
        except ValueError as problem:
            problems.append(f"{copy.data_center}: the rows cannot be counted: {problem}")
            continue
        if after < before:
            problems.append(
                f"{copy.data_center}: the new table holds {after:,} rows, the present one {before:,}; "
                f"{before - after:,} rows that the source no longer has would be gone"
            )
    return "; ".join(problems)


def drop_cancelled(*, now: datetime) -> int:
    """Asks for the tables of cancelled rebuilds to be removed, each once. How many."""
    cancelled = DatasetCopy.with_removed.filter(rebuild__state=RebuildState.CANCELLED)
    begun = cancelled.filter(runs__started_at__isnull=False).exclude(runs__kind=JobKind.DROP).distinct()
    copies = list(begun.select_related("dataset__feed", "data_center", "rebuild"))
    for copy in copies:
        job_runs.request_run(copy, JobKind.DROP, asked_by=job_runs.SCHEDULE, now=now)
    return len(copies)
