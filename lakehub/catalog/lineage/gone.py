"""Looks at the tables of all datasets: columns that changed are taken in, a table that is gone is noted, and off-boarded
when it stays gone. A storage that is out of reach says nothing about its tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings

from lakehub.catalog import changes
from lakehub.catalog.checking import reader
from lakehub.catalog.metadata import MetadataUnavailable, NoSuchTable
from lakehub.catalog.models import Dataset
from lakehub.kernel.apart import apart
from lakehub.kernel.errors import Conflict

ACTOR = "daily look"


def patience() -> timedelta | None:
    """How long a table must be gone before its dataset is off-boarded; None: for ever."""
    days = settings.LAKEHUB_OFFBOARD_AFTER_DAYS
    return timedelta(days=days) if days else None


@dataclass
class Looked:
    """The datasets by what was found of them."""

    changed: list[str] = field(default_factory=list)
    found_again: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    offboarded: dict[str, str] = field(default_factory=dict)
    """With the reason."""


def look(*, offboard_after: timedelta | None, now: datetime) -> Looked:
    """`offboard_after`: how long a table must be gone; None: nothing is off-boarded."""
    looked = Looked()
    live = Dataset.objects.filter(offboarded_at=None, feed__isnull=False).select_related("feed__connection")
    for dataset in live.order_by("name"):
        with apart(f"Looking at the table of {dataset}"):
            _look_at(dataset, looked, now=now)
    if offboard_after is not None:
        _offboard(looked, since=now - offboard_after, now=now)
    return looked


def _look_at(dataset: Dataset, looked: Looked, *, now: datetime) -> None:
    try:
        table = reader(dataset.feed.connection).describe(dataset.feed.object)
    except NoSuchTable as problem:
        looked.missing[dataset.name] = str(problem)
        Dataset.objects.filter(pk=dataset.pk, missing_since=None).update(missing_since=now)
        return
    except MetadataUnavailable as problem:
        looked.unreadable[dataset.name] = str(problem)
        return
    if dataset.missing_since is not None:
        looked.found_again.append(dataset.name)
        Dataset.objects.filter(pk=dataset.pk).update(missing_since=None)
    before = dataset.metadata_version
    if changes.see_columns(dataset, table, actor=ACTOR, now=now).metadata_version != before:
        looked.changed.append(dataset.name)


def _offboard(looked: Looked, *, since: datetime, now: datetime) -> None:
    """Only what was looked for just now and not found."""
    for dataset in Dataset.objects.filter(name__in=looked.missing, offboarded_at=None, missing_since__lte=since):
        why = f"its table is gone since {dataset.missing_since:%Y-%m-%d %H:%M} UTC"
        try:
            changes.offboard(dataset, actor=ACTOR, now=now, why=why)
        except Conflict:
            continue  # somebody did it just now
        looked.offboarded[dataset.name] = why
