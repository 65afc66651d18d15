"""What the first commits of a load have touched, kept with them until the last has made the table whole and it is tested.

The timeline cannot be asked then: of a long load the archive has taken the first commits.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import QuerySet

from ingestion.domain.checkpoint import number_of_commit
from ingestion.models import Commit
from ingestion.spark.tables.timeline import LakeCommit, PartitionChange
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import Interval

Touched = Mapping[Interval, PartitionChange]


class Touches(NamedTuple):
    """Of a commit. `now`: to be tested. `later`: as JSON, of a part of a load. `parts`: how many earlier commits were parts of what it has made whole."""

    now: Touched
    later: list[list[Any]] | None = None
    parts: int = 0


def touches_in_load(copy: DatasetCopy, lake_commit: LakeCommit, touched: Touched) -> Touches:
    """Of a commit of a bootstrap. `touched`: by the commit alone."""
    if lake_commit.is_part_of_load:
        return Touches(
            {}, [[over.start.isoformat(), over.end.isoformat(), *change] for over, change in touched.items()]
        )
    if _begins_load(lake_commit):
        return Touches(touched)
    added, parts = dict(touched), 0
    for part in _parts(copy).iterator():
        parts += 1
        for start, end, *change in part.touched_of_part or ():
            over = Interval(datetime.fromisoformat(start), datetime.fromisoformat(end))
            added[over] = PartitionChange(*map(sum, zip(added.get(over, PartitionChange()), change, strict=True)))
    return Touches(added, parts=parts)


def forget_parts(commit: Commit, lake_commit: LakeCommit) -> None:
    """Earlier ones, after the first commit of a load, which may follow upon one that was given up, and after the last."""
    if _begins_load(lake_commit) or not lake_commit.is_part_of_load:
        _parts(commit.copy).exclude(pk=commit.pk).update(touched_of_part=None)


def _begins_load(lake_commit: LakeCommit) -> bool:
    return number_of_commit(str(lake_commit.run.get("run_id", ""))) == 1


def _parts(copy: DatasetCopy) -> QuerySet[Commit]:
    return Commit.objects.filter(copy=copy, is_part_of_load=True, touched_of_part__isnull=False)
