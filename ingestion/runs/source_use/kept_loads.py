"""Which loads of a captured table have their raw chunks kept, where, and until when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from ingestion.models import JobKind, JobRun
from ingestion.raw_chunks.folders import RawFolder, RawLoad
from ingestion.runs.job_specs import raw_chunks_uri
from ingestion.runs.requests.source_checks import is_landed_feed
from ingestion.sources.mysql.snapshot import ROWS
from ingestion.spark.tables.timeline import open_storage
from lakehub.catalog.models import Dataset, DatasetCopy

_MAX_RUNS = 200
"""Of the newest bootstraps: chunks of older ones are gone."""


@dataclass(frozen=True)
class KeptLoad:
    """`run`: the number of the run that began it; None: not known any more. `rows`: how many, of a load that is whole; another goes on with its chunks.
    `kept_until`: at least; None: until a load of the table has ended."""

    uri: str
    run: int | None
    rows: int | None
    written_at: datetime
    kept_until: datetime | None

    @property
    def is_whole(self) -> bool:
        return self.rows is not None


@dataclass(frozen=True)
class RawChunkPlace:
    """The folder of a copy, and the loads in it, newest first. `problem`: why it cannot be read."""

    data_center: str
    uri: str
    loads: tuple[KeptLoad, ...] = ()
    problem: str = ""

    @property
    def can_be_loaded(self) -> bool:
        return any(load.is_whole for load in self.loads)


def raw_chunk_places(dataset: Dataset, *, ahead: timedelta) -> list[RawChunkPlace]:
    """By data center; none where no chunks land. Reads the folders of all copies, and asks two queries. `ahead`: of the instance's clock."""
    copies = dataset.copies.select_related("data_center", "dataset").order_by("data_center__name")
    return _places_of(dataset, copies, ahead)


def raw_chunk_place(copy: DatasetCopy, *, ahead: timedelta) -> RawChunkPlace | None:
    """Of one copy: only its folder is read. None where no chunks land."""
    return next(iter(_places_of(copy.dataset, [copy], ahead)), None)


def _places_of(dataset: Dataset, copies: Iterable[DatasetCopy], ahead: timedelta) -> list[RawChunkPlace]:
    if not is_landed_feed(dataset.feed_or_none):
        return []
    bootstraps = JobRun.objects.filter(copy__dataset=dataset, kind=JobKind.BOOTSTRAP).order_by("-pk")
    numbers = {str(key): number for key, number in bootstraps.values_list("key", "pk")[:_MAX_RUNS]}
    return [_place_of(copy, numbers, ahead) for copy in copies]


def _place_of(copy: DatasetCopy, numbers: Mapping[str, int], ahead: timedelta) -> RawChunkPlace:
    uri, name = raw_chunks_uri(copy), copy.data_center.name
    try:
        loads = [_kept_load(load, uri, numbers, ahead) for load in RawFolder(*open_storage(uri)).loads()]
    except (OSError, ValueError) as problem:
        return RawChunkPlace(name, uri, problem=f"{type(problem).__name__}: {problem}")
    kept = (load for load in loads if load is not None)
    return RawChunkPlace(name, uri, tuple(sorted(kept, key=lambda load: load.written_at, reverse=True)))


def _kept_load(load: RawLoad, uri: str, numbers: Mapping[str, int], ahead: timedelta) -> KeptLoad | None:
    """None: it was removed meanwhile."""
    written_at, facts = load.written_at(), load.end_facts()
    if written_at is None:
        return None
    written_at += ahead
    rows = None if facts is None else int(facts[ROWS])
    kept = timedelta(days=settings.LAKEHUB_RAW_DAYS)
    folder = load.path.rpartition("/")[2]
    return KeptLoad(f"{uri}/{folder}", numbers.get(load.name), rows, written_at, written_at + kept if kept else None)
