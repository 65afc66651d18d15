"""Pipelines that read each other's tables: the upstream one runs first, and the others as soon as it has committed, once for each change."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from ingestion.domain.pipelines.definition import DEFAULT_EVERY
from ingestion.models import JobKind
from ingestion.runs.modelled_tables.input_commits import InputState
from lakehub.catalog.models import DatasetCopy


class PlannedRun(NamedTuple):
    """`since`: when its last run began. `waits_until`: how long it waits for runs of its inputs at most."""

    copy: DatasetCopy
    kind: JobKind
    due_at: datetime
    since: datetime
    waits_until: datetime


def awaited_commit(copy: DatasetCopy, inputs: Collection[InputState]) -> datetime | None:
    """The newest commit of those for which the pipeline does not wait for its interval: with `every: commit` of all inputs, without `every` of modelled tables."""
    pipeline, every = copy.dataset.pipeline, copy.dataset.feed.every
    awaited = (each for each in inputs if pipeline.on_commit or (each.is_modelled and every == DEFAULT_EVERY))
    return max((each.committed_at for each in awaited if each.committed_at is not None), default=None)


def upstream_first(
    planned: Collection[PlannedRun], inputs: Mapping[int, Collection[InputState]], *, now: datetime
) -> Iterator[tuple[DatasetCopy, JobKind, datetime]]:
    """Each with when it is due: not before the runs of its inputs that are due or at work have ended."""
    due = {run.copy.pk for run in planned if run.due_at <= now}
    for run in planned:
        waits = run.due_at <= now and any(_goes_first(each, run, due) for each in inputs.get(run.copy.pk, ()))
        yield run.copy, run.kind, run.waits_until if waits else run.due_at


def _goes_first(state: InputState, run: PlannedRun, due: Collection[int]) -> bool:
    """Not where it has gone already since the last run: it may always be at work."""
    is_coming = state.is_modelled and (state.is_at_work or state.copy in due)
    return is_coming and (state.ended_at is None or state.ended_at <= run.since)
