"""The inputs of pipelines as our own records know them: when each was committed to last, and whether a pipeline makes it and is about to."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from ingestion.domain.pipelines.definition import PipelineInput
from ingestion.domain.pipelines.pipeline_file import PIPELINE_FILE
from ingestion.domain.pipelines.reading import inputs_of
from ingestion.models import Commit, JobKind, JobRun, JobState
from ingestion.spark.tables.timeline import TABLE_SERVICES
from lakehub.catalog.models import DatasetCopy, FeedKind

SERVICES = [operation.lower() for operation in TABLE_SERVICES]
"""Operations of commits that change no row."""
UPDATING_KINDS = (JobKind.INCREMENTAL, JobKind.BOOTSTRAP)
"""Of runs that bring the table of a pipeline up to date with its inputs."""
_AT_WORK = (JobState.QUEUED, JobState.RUNNING)
"""Without runs that are paused, or wait for an input: nobody knows for how long."""


class InputState(NamedTuple):
    """`copy`: its number. `committed_at`: when the newest commit was completed that has touched its files; None: there is none. `is_modelled`: a pipeline makes it. `is_at_work`: a run
    of that pipeline is queued or at work; `ended_at`: when the newest that is over ended."""

    copy: int
    committed_at: datetime | None
    is_modelled: bool
    is_at_work: bool
    ended_at: datetime | None


@lru_cache(maxsize=1000)
def inputs_of_file(pipeline_file: str) -> tuple[PipelineInput, ...]:
    return inputs_of({PIPELINE_FILE: pipeline_file})


def followed_inputs(copies: Collection[DatasetCopy]) -> dict[int, list[InputState]]:
    """Of copies that pipelines make, by copy: the inputs in its data center whose changes are followed. Of pipelines that do not run with each commit, only modelled tables. One query."""
    names = {
        copy.pk: {each.dataset for each in inputs_of_file(copy.dataset.pipeline.files.get(PIPELINE_FILE, "")) if each.is_followed}
        for copy in copies
    }  # fmt: skip
    on_commit = set[str]().union(*(names[copy.pk] for copy in copies if copy.dataset.pipeline.on_commit))
    is_modelled = Q(dataset__name__in=set[str]().union(*names.values()), dataset__feed__kind=FeedKind.PIPELINE)
    beside = DatasetCopy.objects.filter(data_center__in={copy.data_center_id for copy in copies})
    states = _states_of(beside.filter(is_modelled | Q(dataset__name__in=on_commit)))
    return {
        copy.pk: [states[key] for name in sorted(names[copy.pk]) if (key := (name, copy.data_center_id)) in states]
        for copy in copies
    }


def _states_of(inputs: QuerySet[DatasetCopy]) -> dict[tuple[str, int], InputState]:
    """By dataset and data center."""
    commits = Commit.objects.filter(copy=OuterRef("pk")).exclude(operation__in=SERVICES)
    # A partition may have lost all of its rows without one being counted.
    commits = commits.exclude(inserts=0, updates=0, deletes=0, touched_count=0).order_by("-completed_at")
    making = JobRun.objects.filter(copy=OuterRef("pk"), kind__in=UPDATING_KINDS)
    ended = making.filter(ended_at__isnull=False).order_by("-pk")
    rows = inputs.annotate(
        newest=Subquery(commits.values("completed_at")[:1]),
        is_at_work=Exists(making.filter(state__in=_AT_WORK)),
        made_at=Subquery(ended.values("ended_at")[:1]),
    ).values_list("dataset__name", "data_center", "pk", "newest", "dataset__feed__kind", "is_at_work", "made_at")
    return {
        (name, center): InputState(pk, newest, kind == FeedKind.PIPELINE, is_at_work, made_at)
        for name, center, pk, newest, kind, is_at_work, made_at in rows
    }
