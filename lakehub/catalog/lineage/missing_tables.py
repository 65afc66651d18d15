"""Looks at the tables of all datasets: columns that changed are taken in, a table that is gone is noted, and off-boarded
when it stays gone. A storage that is out of reach says nothing about its tables, is asked once a look, and again later that day; one that lost many at
once rather looks like an empty mount, another schema or a grant that went than like tables that were dropped: nobody is
off-boarded then.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from django.conf import settings
from django.db.models import F, Q
from django.db.models.functions import Coalesce

from lakehub.accounts.audit import audit_log
from lakehub.catalog.datasets import changes, offboarding
from lakehub.catalog.datasets.copies import CopySource, source_tables
from lakehub.catalog.metadata import MetadataUnavailable, NoSuchTable, StorageUnreachable, TableMetadata
from lakehub.catalog.models import Connection, Dataset
from lakehub.kernel.error_isolation import log_and_continue
from lakehub.kernel.errors import Conflict

logger = logging.getLogger(__name__)
ACTOR = "daily look"
MIN_MISSING_CHECKS = 3
"""On so many days a look must have found a table gone, and none have found anything else, however long ago the first was."""
MAX_OFFBOARDED = 3
MAX_OFFBOARDED_SHARE = 0.2
"""More than a few, and more than this share of a connection's datasets, do not go in one look."""
MAX_WAIT = timedelta(minutes=20)
"""For all storages of one look that are out of reach. A network that is gone holds a worker no longer."""
SILENT_AFTER_S = 5.0
"""A look that failed after so long says nothing of its table alone: the next one would most likely wait as long."""


class SourceTurn(Protocol):
    """Around one look at a table of a connection. Raises MetadataUnavailable where it has to wait for its turn."""

    def __call__(self, connection: Connection, table: str) -> AbstractContextManager[None]: ...


def offboarding_delay() -> timedelta | None:
    """How long a table must be gone before its dataset is off-boarded; None: for ever."""
    days = settings.LAKEHUB_OFFBOARD_AFTER_DAYS
    return timedelta(days=days) if days else None


@dataclass
class TableCheckReport:
    """The datasets by what was found of them."""

    changed: list[str] = field(default_factory=list)
    found_again: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    offboarded: dict[str, str] = field(default_factory=dict)
    """With the reason."""
    refused: dict[str, str] = field(default_factory=dict)
    """The connections of which too many would have been off-boarded at once."""
    out_of_reach: dict[str, str] = field(default_factory=dict)
    """The connections that were out of reach, or had to wait for their turn, with the reason."""
    not_looked_at: list[str] = field(default_factory=list)
    """Those of `unreadable` that such a connection is the reason for, in the order in which to look at them again."""

    def before_next_attempt(self) -> TableCheckReport:
        """With nothing of those that are looked at again."""
        unreadable = {name: why for name, why in self.unreadable.items() if name not in self.not_looked_at}
        return replace(self, unreadable=unreadable, out_of_reach={}, not_looked_at=[])


class _NotAsked(StorageUnreachable):
    """It was out of reach before, or others were for too long."""


class _Reader:
    """Describes tables, each in its turn, and asks no storage twice that was out of reach, or silent, the first time."""

    def __init__(self, turn: SourceTurn, monotonic: Callable[[], float]) -> None:
        self._turn, self._monotonic = turn, monotonic
        self._waited_s = 0.0
        self.out_of_reach: dict[str, str] = {}
        """The names of connections, with the reason."""
        self.asked_in_vain: set[str] = set()
        """The names of datasets."""

    def describe(self, source: CopySource) -> TableMetadata:
        """Raises NoSuchTable; StorageUnreachable where no other table of the connection is asked for; else MetadataUnavailable."""
        connection = source.connection
        if connection.name not in self.out_of_reach and self._waited_s > MAX_WAIT.total_seconds():
            self.out_of_reach[connection.name] = (
                f"{connection} was not looked at: others that are out of reach took too long."
            )
        if why := self.out_of_reach.get(connection.name):
            raise _NotAsked(why)
        began = self._monotonic()
        try:
            with self._turn(connection, source.table):
                return connection.storage.describe(source.table)
        except NoSuchTable:
            raise
        except MetadataUnavailable as problem:
            took_s = self._monotonic() - began
            self._waited_s += took_s
            # Many sources let one in and fall silent then, which their drivers tell like any other error of a query.
            if not isinstance(problem, StorageUnreachable) and took_s < SILENT_AFTER_S:
                raise
            self.out_of_reach[connection.name] = str(problem)
            raise StorageUnreachable(str(problem)) from problem


def _at_once(connection: Connection, table: str) -> AbstractContextManager[None]:
    return nullcontext()


def check_tables(
    *,
    offboard_after: timedelta | None,
    turn: SourceTurn = _at_once,
    earlier: TableCheckReport | None = None,
    is_tried_again: bool = False,
    now: datetime,
    monotonic: Callable[[], float] = time.monotonic,
) -> TableCheckReport:
    """`offboard_after`: how long a table must be gone; None: nothing is off-boarded. `turn`: around each look; as it is, at once.

    `earlier`: of an attempt whose `not_looked_at` alone are looked at now; the report is of both. `is_tried_again`: where a connection
    is out of reach, another attempt follows. What a changelog or a pipeline feeds has no source table that could be gone, so no report names it.
    """
    live = Dataset.objects.filter(offboarded_at=None, feed__connection__isnull=False)
    datasets = list(live.select_related("feed__connection").order_by("name"))
    looked, reader = TableCheckReport(), _Reader(turn, monotonic)
    if earlier is not None:
        by_name = {dataset.name: dataset for dataset in datasets}
        datasets = [by_name[name] for name in earlier.not_looked_at if name in by_name]
        looked = earlier.before_next_attempt()
    for dataset in datasets:
        with log_and_continue(f"Looking at the table of {dataset}"):
            _check_table(dataset, looked, reader, now=now)
    looked.out_of_reach = reader.out_of_reach
    # A table at which a source falls silent each time must not keep the others from their turn.
    looked.not_looked_at.sort(key=lambda name: name in reader.asked_in_vain)
    # Once a day, of all that is known by then: else each attempt might off-board as many as may go in one look.
    if offboard_after is not None and not (is_tried_again and looked.out_of_reach):
        _offboard_missing(looked, since=now - offboard_after, now=now)
    return looked


def _check_table(dataset: Dataset, looked: TableCheckReport, reader: _Reader, *, now: datetime) -> None:
    """Its columns are those of the first copy that can be read. It is missing where the table of every copy is gone.

    How often it was missing stays as it was where a storage is out of reach, and begins anew where one answered.
    """
    table: TableMetadata | None = None
    gone: list[str] = []
    unreadable: list[str] = []
    out_of_reach: list[StorageUnreachable] = []
    for source in source_tables(dataset):
        try:
            described = reader.describe(source)
        except NoSuchTable as problem:
            gone.append(str(problem))
        except MetadataUnavailable as problem:
            unreadable.append(str(problem))
            if isinstance(problem, StorageUnreachable):
                out_of_reach.append(problem)
        else:
            table = table or described
    if gone and table is None and not unreadable:
        looked.missing[dataset.name] = " ".join(gone)
        since = Coalesce(F("missing_since"), now)
        Dataset.objects.filter(pk=dataset.pk).update(missing_since=since, missing_checks=F("missing_checks") + 1)
        return
    if gone or unreadable:
        looked.unreadable[dataset.name] = " ".join((*gone, *unreadable))
    if out_of_reach:
        looked.not_looked_at.append(dataset.name)
        if any(not isinstance(problem, _NotAsked) for problem in out_of_reach):
            reader.asked_in_vain.add(dataset.name)
    if table is None:
        if not out_of_reach:
            _clear_missing(dataset)
        return
    if dataset.missing_since is not None:
        looked.found_again.append(dataset.name)
        _clear_missing(dataset)
    before = dataset.metadata_version
    if changes.record_columns(dataset, table, actor=ACTOR, now=now).metadata_version != before:
        looked.changed.append(dataset.name)


def _clear_missing(dataset: Dataset) -> None:
    Dataset.objects.filter(pk=dataset.pk).update(missing_since=None, missing_checks=0)


def _offboard_missing(looked: TableCheckReport, *, since: datetime, now: datetime) -> None:
    """Only what was looked for just now and not found."""
    stays_gone = Q(name__in=looked.missing, missing_since__lte=since, missing_checks__gte=MIN_MISSING_CHECKS)
    leaving: dict[Connection, list[Dataset]] = defaultdict(list)
    for dataset in Dataset.objects.filter(stays_gone, offboarded_at=None).select_related("feed__connection"):
        assert dataset.feed.connection is not None  # only a table of a connection is missing
        leaving[dataset.feed.connection].append(dataset)
    for connection, datasets in leaving.items():
        if why := _reason_to_keep(connection, datasets, looked):
            logger.warning("Nothing of %s is off-boarded: %s", connection, why)
            looked.refused[connection.name] = why
            names = [dataset.name for dataset in datasets]
            audit_log.record(
                ACTOR, "off-boarding refused", f"connection:{connection.name}", now=now, why=why, datasets=names
            )
        else:
            _offboard_all(datasets, looked, now=now)


def _reason_to_keep(connection: Connection, leaving: list[Dataset], looked: TableCheckReport) -> str:
    """Why these do not go; empty where they may."""
    live = set(Dataset.objects.filter(feed__connection=connection, offboarded_at=None).values_list("name", flat=True))
    if live <= looked.missing.keys():
        problem_text = f"all of its {len(live)} tables are gone"
    elif len(leaving) > max(MAX_OFFBOARDED, MAX_OFFBOARDED_SHARE * len(live)):
        problem_text = f"{len(leaving)} of its {len(live)} tables are gone"
    else:
        return ""
    return (
        f"{problem_text}, as if it were out of reach. Look at its address, mounts and grants; "
        "where they are gone indeed, off-board them by `manage.py offboard`."
    )


def _offboard_all(datasets: list[Dataset], looked: TableCheckReport, *, now: datetime) -> None:
    for dataset in datasets:
        why = f"its table is gone since {dataset.missing_since:%Y-%m-%d %H:%M} UTC"
        try:
            offboarding.offboard_dataset(dataset, actor=ACTOR, now=now, why=why)
        except Conflict:
            continue  # somebody did it just now
        looked.offboarded[dataset.name] = why
