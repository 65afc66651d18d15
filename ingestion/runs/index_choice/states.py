"""Which index the jobs of a copy use, and how far the one is that was chosen instead, for people."""

from __future__ import annotations

from dataclasses import dataclass

from ingestion.index_shares.standing import HBASE, standing_index, wanted_index
from ingestion.models import JobKind, JobRun, JobState
from lakehub.catalog.models import Dataset, DatasetCopy

_AT_WORK = (JobState.QUEUED, JobState.WAITING, JobState.PAUSED, JobState.RUNNING)

_MAX_ERROR = 300
"""Characters; the run has all of it."""


@dataclass(frozen=True)
class CopyIndex:
    """`run`: the newest that builds `wanted`, None: nobody asked; `removal`: the one that waits to remove the former one's table of HBase."""

    copy: DatasetCopy
    index: str
    wanted: str
    run: JobRun | None
    removal: JobRun | None

    @property
    def is_changing(self) -> bool:
        return self.index != self.wanted

    @property
    def sentence(self) -> str:
        """`simple; hbase is being built by run 12.`"""
        parts = [self.index]
        if self.is_changing:
            parts.append(f"{self.wanted} {_building(self.run)}")
        if self.removal is not None:
            parts.append(f"the table that {HBASE} had is removed by run {self.removal.pk}")
        return f"{'; '.join(parts)}."


def _building(run: JobRun | None) -> str:
    again = "ask for `rebuild_index`, or set the index back"
    if run is None or run.state == JobState.CANCELLED:
        return f"is not being built: {again}"
    if run.state == JobState.FAILED:
        return f"could not be built by run {run.pk} ({run.error:.{_MAX_ERROR}}): {again}"
    return f"{'is being built' if run.state == JobState.RUNNING else 'waits to be built'} by run {run.pk}"


def copy_indexes(dataset: Dataset) -> list[CopyIndex]:
    """By data center; none where no job writes the dataset. Two queries, and one for each copy whose index is being changed."""
    if not dataset.ingested or dataset.feed_or_none is None:
        return []
    copies = dataset.copies.select_related("index_change", "data_center").order_by("data_center__name")
    removals = JobRun.objects.filter(copy__dataset=dataset, kind=JobKind.DROP_INDEX, state__in=_AT_WORK)
    removal_of = {run.copy_id: run for run in removals}
    return [_copy_index(dataset, copy, removal_of.get(copy.pk)) for copy in copies]


def _copy_index(dataset: Dataset, copy: DatasetCopy, removal: JobRun | None) -> CopyIndex:
    copy.dataset = dataset
    index, wanted, run = standing_index(copy), wanted_index(copy), None
    if index != wanted:
        run = JobRun.objects.filter(copy=copy, kind=JobKind.REBUILD_INDEX).order_by("-pk").first()
    return CopyIndex(copy, index, wanted, run, removal)
