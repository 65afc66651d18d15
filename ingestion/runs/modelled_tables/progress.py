"""How far the pipelines of copies have read their inputs: which commits wait, and since when. Asked of our own records, never of the lake."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from ingestion.domain.pipelines.definition import PipelineInput
from ingestion.lake.lake_copies import lake_copies
from ingestion.models import Commit, JobKind, JobRun, Pipeline, ReaderPosition
from ingestion.pipelines.positions import reader_name
from ingestion.runs.copy_lag import with_table
from ingestion.runs.modelled_tables.input_commits import SERVICES, inputs_of_file
from lakehub.catalog.models import DatasetCopy

MAX_PENDING = 1000
"""So many commits that wait, and so many that were read, are counted for an input; one more stands for all beyond."""
RECENT = timedelta(days=1)
ROW_KINDS = ("inserted", "updated", "deleted")
MAKING_KINDS = (JobKind.BOOTSTRAP, JobKind.INCREMENTAL, JobKind.BACKFILL)
"""The runs that make rows by a pipeline."""


@dataclass(frozen=True)
class InputProgress:
    """Of one input in one data center, by the name that the SELECT calls it. `copy` None: the input has none there any more.

    `pending`: commits that were begun after the newest one that was read, 0 of an input whose changes are ignored; None: nothing was read yet. `waits_since`: when the first of them was completed.
    `processed`: of the last day, those that were read; at most MAX_PENDING + 1. `read_upto`: when the newest of all that were read was completed.
    """

    input: PipelineInput
    copy: DatasetCopy | None
    pending: int | None = None
    waits_since: datetime | None = None
    processed: int = 0
    read_upto: datetime | None = None

    @property
    def has_more(self) -> bool:
        return self.pending is not None and self.pending > MAX_PENDING

    @property
    def has_more_processed(self) -> bool:
        return self.processed > MAX_PENDING


@dataclass(frozen=True)
class CopyProgress:
    """`rows`: changed in the last day, by kind. `newest_run`: of those that make rows."""

    copy: DatasetCopy
    inputs: tuple[InputProgress, ...]
    has_table: bool
    rows: Mapping[str, int]
    newest_run: JobRun | None = None

    @property
    def waits_since(self) -> datetime | None:
        """Of the commit that has waited longest, of inputs whose changes are followed."""
        followed = (each.waits_since for each in self.inputs if each.input.is_followed)
        return min((since for since in followed if since is not None), default=None)

    @property
    def pending(self) -> int:
        return sum(each.pending or 0 for each in self.inputs if each.input.is_followed)

    @property
    def has_more(self) -> bool:
        """More wait than are counted."""
        return any(each.has_more for each in self.inputs if each.input.is_followed)

    def lag(self, *, now: datetime) -> timedelta | None:
        """None: it has no table yet, or nobody knows what it has read."""
        followed = [each for each in self.inputs if each.input.is_followed]
        if not self.has_table or all(each.pending is None for each in followed):
            return None
        return timedelta() if self.waits_since is None else max(timedelta(), now - self.waits_since)


def progress_of(copies: Collection[DatasetCopy], *, now: datetime) -> list[CopyProgress]:
    """In their order; of those whose dataset a pipeline makes. Six queries, however many there are."""
    files = dict(Pipeline.objects.filter(dataset__in={copy.dataset_id for copy in copies}).values_list("pk", "files"))
    inputs = {pk: inputs_of_file(texts.get("pipeline.yaml", "")) for pk, texts in files.items()}
    made = [copy for copy in copies if copy.dataset_id in inputs]
    beside = _copies_beside(made, {each.dataset for names in inputs.values() for each in names})
    readers = ReaderPosition.objects.filter(
        copy__in=[copy.pk for copy in beside.values()], name__in={reader_name(copy.dataset) for copy in made}
    )
    reads = _reads_of(readers, now)
    tables, rows, runs = with_table([copy.pk for copy in made]), _recent_rows(made, now), _newest_runs(made)

    def progress(copy: DatasetCopy, each: PipelineInput) -> InputProgress:
        read = beside.get((each.dataset, copy.data_center_id))
        facts = {} if read is None else reads.get((read.pk, reader_name(copy.dataset)), {})
        if facts and not each.is_followed:  # its commits start no run, so none of them waits for one
            facts = {**facts, "pending": 0, "waits_since": None}
        return InputProgress(each, read, **facts)

    return [
        CopyProgress(
            copy,
            tuple(progress(copy, each) for each in inputs[copy.dataset_id]),
            copy.pk in tables,
            rows.get(copy.pk, dict.fromkeys(ROW_KINDS, 0)),
            runs.get(copy.pk),
        )
        for copy in made
    ]


def _copies_beside(copies: Iterable[DatasetCopy], datasets: Collection[str]) -> dict[tuple[str, int], DatasetCopy]:
    """Of the inputs, by dataset and data center."""
    centers = {copy.data_center_id for copy in copies}
    there = lake_copies().filter(data_center__in=centers, dataset__name__in=datasets)
    return {(copy.dataset.name, copy.data_center_id): copy for copy in there}


def _reads_of(readers: QuerySet[ReaderPosition], now: datetime) -> dict[tuple[int, str], dict[str, Any]]:
    """By copy and reader, fields of InputProgress. Instants are compared with instants: the lake's clock need not be ours."""
    commits = Commit.objects.exclude(operation__in=SERVICES)
    waiting = commits.filter(copy=OuterRef("copy"), instant__gt=OuterRef("position")).order_by("instant")
    beside = commits.filter(copy=OuterRef(OuterRef("copy")))
    position = OuterRef(OuterRef("position"))
    counted = _first(beside.filter(instant__gt=position).order_by("instant"))
    read = commits.filter(copy=OuterRef("copy"), instant__lte=OuterRef("position"))
    # Of the newest that were read, and not of a day: an input with a commit every few seconds has tens of thousands.
    recent = _first(beside.filter(instant__lte=position).order_by("-instant")).filter(completed_at__gt=now - RECENT)
    facts = {
        "pending": Coalesce(_count(counted), 0),
        "processed": Coalesce(_count(recent), 0),
        "waits_since": Subquery(waiting.values("completed_at")[:1]),
        "read_upto": Subquery(read.order_by("-instant").values("completed_at")[:1]),
    }
    rows = readers.annotate(**facts).values_list("copy", "name", *facts)
    return {(copy, name): dict(zip(facts, values, strict=True)) for copy, name, *values in rows}


def _first(commits: QuerySet[Commit]) -> QuerySet[Commit]:
    """So many as are counted."""
    return Commit.objects.filter(pk__in=commits.values("pk")[: MAX_PENDING + 1])


def _count(commits: QuerySet[Commit]) -> Subquery:
    """Of those of one copy."""
    return Subquery(commits.order_by().values("copy").annotate(count=Count("pk")).values("count"))


def _recent_rows(copies: Iterable[DatasetCopy], now: datetime) -> dict[int, dict[str, int]]:
    commits = Commit.objects.filter(copy__in=[copy.pk for copy in copies], completed_at__gt=now - RECENT)
    sums = commits.exclude(operation__in=SERVICES).order_by().values("copy")
    rows = sums.annotate(*(Sum(field) for field in ("inserts", "updates", "deletes")))
    fields = ("copy", "inserts__sum", "updates__sum", "deletes__sum")
    return {copy: dict(zip(ROW_KINDS, counts, strict=True)) for copy, *counts in rows.values_list(*fields)}


def _newest_runs(copies: Iterable[DatasetCopy]) -> dict[int, JobRun]:
    making = JobRun.objects.filter(copy=OuterRef("pk"), kind__in=MAKING_KINDS).order_by("-pk").values("pk")[:1]
    newest = DatasetCopy.objects.filter(pk__in=[copy.pk for copy in copies]).values(newest=Subquery(making))
    return {run.copy_id: run for run in JobRun.objects.filter(pk__in=newest).select_related("copy__data_center")}
