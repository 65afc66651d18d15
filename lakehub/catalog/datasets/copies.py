"""Each copy of a dataset has a place of its own: compared with itself, a table always agrees."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, count
from urllib.parse import unquote, urlsplit

from django.db import IntegrityError, transaction

from lakehub.catalog.metadata.table_locations import is_same_table
from lakehub.catalog.models import Connection, DataCenter, Dataset, DatasetCopy, Rebuild
from lakehub.catalog.validation import Problems
from lakehub.kernel.errors import Conflict

_MAX_ATTEMPTS = 5
_SAME_SCHEMES = {"s3a": "s3", "s3n": "s3", "": "file"}


@dataclass(frozen=True)
class CopySource:
    """Where a copy lies that is only monitored."""

    connection: Connection
    table: str

    def __str__(self) -> str:
        return f"{self.connection}.{self.table}"


def create_copy(
    dataset: Dataset, data_center: DataCenter, source: CopySource | None, *, rebuild: Rebuild | None = None
) -> DatasetCopy:
    """In the lake where the dataset is ingested. `source`: None is the table of the feed. `rebuild`: it is built for that.

    Raises Conflict where others take each table of the lake that it would have.
    """
    copy = DatasetCopy(
        dataset=dataset,
        data_center=data_center,
        connection=source.connection if source else None,
        object=source.table if source else "",
        rebuild=rebuild,
    )
    if not dataset.ingested:
        copy.save(force_insert=True)
        return copy
    for _ in range(_MAX_ATTEMPTS):
        copy.uri = _free_lake_table(dataset, data_center)
        try:
            with transaction.atomic():
                copy.save(force_insert=True)
        except IntegrityError:
            # A rebuild of `flights` and the onboarding of `flights-2` may look for a free table at the same time.
            if not DatasetCopy.with_removed.filter(uri=copy.uri).exists():
                raise
        else:
            return copy
    raise Conflict(f"Others have taken the table {copy.uri} of the lake just now. Nothing was changed: try it again.")


def _free_lake_table(dataset: Dataset, data_center: DataCenter) -> str:
    """Below the name of the dataset; beside what an earlier copy left there."""
    first = f"{data_center.lake_uri.rstrip('/')}/{dataset.name}"
    taken = set(DatasetCopy.with_removed.filter(uri__startswith=first).values_list("uri", flat=True))
    return next(uri for uri in chain([first], (f"{first}-{number}" for number in count(2))) if uri not in taken)


def check_distinct_tables(
    problems: Problems, sources: Sequence[tuple[str, CopySource]], *, name: str = "copies"
) -> None:
    """No two data centers' copies are one table, also not by two connections or two names."""
    located = [(center, source, source.connection.table_location(source.table)) for center, source in sources]
    for (first, source, place), (second, other, other_place) in combinations(located, 2):
        if is_same_table(place, other_place):
            same = f"the same table, {source}" if source == other else f"the same rows, as {source} and as {other}"
            problems.add(
                name,
                f"{first} and {second} would read {same}: a comparison of it with itself always passes. "
                f"Name the connection and table of the copy in {second}, or leave {second} out.",
            )


def check_separate_lakes(problems: Problems, data_centers: Iterable[str], *, name: str = "data_centers") -> None:
    """No two of the data centers keep their lake in one folder: a dataset would have one table for two copies."""
    uris = DataCenter.objects.filter(name__in=list(data_centers)).values_list("name", "lake_uri")
    for (first, uri), (second, other) in combinations(uris, 2):
        if lake_folder(uri) == lake_folder(other):
            problems.add(
                name,
                f"{first} and {second} keep their lakes in one folder, {uri}: both copies would be one table. "
                f"Leave out {second}, or add a data center with a lake of its own.",
            )


def lake_folder(uri: str) -> str:
    """Equal for two ways to write one folder."""
    parts = urlsplit(uri)
    scheme = _SAME_SCHEMES.get(parts.scheme, parts.scheme)
    path = unquote(parts.path).rstrip("/")
    if scheme == "file":
        return os.path.realpath(path or "/")
    return f"{scheme}://{parts.netloc.lower()}{os.path.normpath(path)}"


def copy_sources(dataset: Dataset) -> list[tuple[str, CopySource]]:
    """By data center where the copies lie of a dataset that is only monitored; without those that no connection has."""
    copies = dataset.copies.select_related("connection", "data_center", "dataset__feed__connection")
    return [(copy.data_center.name, CopySource(*copy.source)) for copy in copies if copy.source is not None]


def source_tables(dataset: Dataset) -> list[CopySource]:
    """The tables that are read for it, each once; first that of the feed, where anything reads it."""
    feed = dataset.feed_or_none
    sources = [] if feed is None or feed.connection is None else [CopySource(feed.connection, feed.object)]
    if dataset.ingested:
        return sources
    of_copies = [source for _, source in copy_sources(dataset)]
    return list(dict.fromkeys([source for source in sources if source in of_copies] + of_copies)) or sources
