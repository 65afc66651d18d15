"""What people do with backfills: ask for one, pause it, let it go on, end it, and try again what failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction

from ingestion.domain.backfills.chunks import (
    DEFAULT_CHUNK_SIZE,
    MAX_CHUNK_SIZE,
    cut,
    partitions_between,
    partitions_named,
)
from ingestion.domain.backfills.states import ACTIONS, TRANSITIONS, states_for
from ingestion.models import Backfill, BackfillChunk, BackfillState, ChunkState, JobKind, JobRun, JobState
from ingestion.runs.copy_lag import has_table
from ingestion.runs.job_runs import PENDING
from ingestion.runs.requests.job_checks import check_request
from lakehub.accounts.audit import audit_log
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.suggest import did_you_mean

_MAX_SHOWN = 5
_MAX_NAME = 60
"""Characters of a name that an error repeats."""


@dataclass(frozen=True)
class PartitionChoice:
    """All from `first` to `last`, both included, or those that are named."""

    first: str = ""
    last: str = ""
    partitions: Sequence[str] = ()


def request_backfill(
    copy: DatasetCopy, choice: PartitionChoice, *, chunk_size: int = DEFAULT_CHUNK_SIZE, actor: str, now: datetime
) -> Backfill:
    """Raises Refused for what makes no sense, and Conflict where another one of the copy is under way. Nothing is written then."""
    names = _partitions_of(copy, choice)
    if not 1 <= chunk_size <= MAX_CHUNK_SIZE:
        raise Refused.for_fields(
            {
                "chunk_size": f"`chunk_size` is {chunk_size}: give a whole number of partitions from 1 to {MAX_CHUNK_SIZE:,}."
            }
        )
    check_request(copy, JobKind.BACKFILL, {"partitions": names})
    if not has_table(copy):
        raise Refused(
            f"{copy} has no table yet, so there is nothing to backfill: its first run, a bootstrap, makes all rows."
        )
    _check_free(copy, names)
    try:
        with transaction.atomic():
            backfill = Backfill.objects.create(
                copy=copy,
                first=names[0],
                last=names[-1],
                chunk_size=chunk_size,
                asked_by=actor,
                asked_at=now,
                resumed_at=now,
            )
            BackfillChunk.objects.bulk_create(
                BackfillChunk(backfill=backfill, number=number, partitions=chunk, size=len(chunk))
                for number, chunk in enumerate(cut(names, chunk_size), start=1)
            )
            facts = {"first": names[0], "last": names[-1], "partitions": len(names), "chunk_size": chunk_size}
            audit_log.record(actor, "backfill", f"copy:{copy}", now=now, backfill=backfill.pk, **facts)
    except IntegrityError:
        _check_free(copy, names)
        raise
    return backfill


def find_backfill(dataset: Dataset, number: int) -> Backfill:
    """Raises NotFound."""
    backfills = Backfill.objects.filter(copy__dataset=dataset, pk=number)
    backfill = backfills.select_related("copy__dataset__feed", "copy__data_center").first()
    if backfill is None:
        raise NotFound(f"Dataset `{dataset.name}` has no backfill {number}.")
    return backfill


def change_backfill(backfill: Backfill, action: str, *, actor: str, now: datetime) -> Backfill:
    """One of ACTIONS. A chunk that is at work is left to end; one whose run has not begun goes back to those that wait.

    Raises Refused where there is no such action, or it makes no sense any more, and Conflict where the backfill is in a state that does not take it.
    """
    if action not in ACTIONS:
        raise Refused(
            f"There is no action `{action[:_MAX_NAME]}` of a backfill: {', '.join(ACTIONS)}.{did_you_mean(action, ACTIONS)}"
        )
    try:
        with transaction.atomic():
            fresh = Backfill.objects.select_for_update().get(pk=backfill.pk)
            state = TRANSITIONS.get((fresh.state, action))
            if state is None:
                raise Conflict(
                    f"Backfill {fresh.pk} of {backfill.copy} is {fresh.state}: to {action} it, it has to be {' or '.join(states_for(action))}. Nothing was changed."
                )
            fresh.state = BackfillState(state)
            if state == BackfillState.RUNNING:
                check_request(backfill.copy, JobKind.BACKFILL, {"partitions": [fresh.first]})
                fresh.resumed_at, fresh.ended_at, fresh.error = now, None, ""
            else:
                take_back_run(fresh, now=now)
            if state == BackfillState.CANCELLED:
                fresh.ended_at, fresh.error = now, f"{actor} has cancelled it."
            if action == "retry":
                failed = fresh.chunks.filter(state=ChunkState.FAILED)
                failed.update(state=ChunkState.WAITING, run=None, began_at=None, ended_at=None, error="")
            fresh.save()
            audit_log.record(actor, f"{action} backfill", f"copy:{backfill.copy}", now=now, backfill=fresh.pk)
    except IntegrityError:
        _check_free(backfill.copy, [backfill.first, backfill.last])
        raise
    backfill.refresh_from_db()
    return backfill


def end_backfill(backfill: Backfill, why: str, *, now: datetime) -> None:
    """What it was asked for is gone. Called in a transaction."""
    open_now = Backfill.objects.filter(pk=backfill.pk, ended_at=None)
    if open_now.update(state=BackfillState.CANCELLED, ended_at=now, error=why):
        take_back_run(backfill, now=now)


def _partitions_of(copy: DatasetCopy, choice: PartitionChoice) -> list[str]:
    dataset, layout = copy.dataset, copy.layout
    if not dataset.is_modelled:
        raise Refused(
            f"Dataset `{dataset.name}` is not made by a pipeline: ask for its partitions by `POST /api/v1/datasets/{dataset.name}/runs` with the kind `backfill`."
        )
    if not layout.partition_column:
        raise Refused(
            f"Dataset `{dataset.name}` has no partitions: `manage.py ingest bootstrap {dataset.name} --replace` recomputes all of it."
        )
    if choice.partitions and (choice.first or choice.last):
        raise Refused("A backfill names `partitions`, or `first` and `last`, and not both.")
    if bool(choice.first) != bool(choice.last):
        missing = "last" if choice.first else "first"
        raise Refused.for_fields({missing: f"`{missing}` is missing: a range has a first and a last partition."})
    try:
        if choice.first:
            return partitions_between(choice.first, choice.last, layout.partition_grain, layout.zone)
        return partitions_named(choice.partitions, layout.partition_grain, layout.zone)
    except ValueError as problem:
        raise Refused(f"`{dataset.name}` cannot be backfilled so: {problem}") from None


def _check_free(copy: DatasetCopy, names: Sequence[str]) -> None:
    """Raises Conflict."""
    other = Backfill.objects.filter(copy=copy, ended_at=None).first()
    if other is None:
        return
    asked = set(names)
    both = [name for chunk in other.chunks.values_list("partitions", flat=True) for name in chunk if name in asked]
    shared = f", and has {', '.join(both[:_MAX_SHOWN])}{' and others' if len(both) > _MAX_SHOWN else ''} too" if both else ""  # fmt: skip
    raise Conflict(
        f"Backfill {other.pk} of {copy}, from {other.first} to {other.last}, is {other.state}{shared}; nothing was changed. Ask again when it has ended, or cancel it."
    )


def take_back_run(backfill: Backfill, *, now: datetime) -> None:
    """A run that is at work is left to end."""
    for chunk in backfill.chunks.filter(state=ChunkState.RUNNING, run__state__in=PENDING):
        waiting = JobRun.objects.filter(chunks=chunk.pk, state__in=PENDING)
        if waiting.update(state=JobState.CANCELLED, ended_at=now):
            BackfillChunk.objects.filter(pk=chunk.pk).update(state=ChunkState.WAITING, run=None, began_at=None)
