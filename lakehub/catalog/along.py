"""What lies up and down the lineage of a dataset and nobody onboarded yet, as applications for onboarding."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

from lakehub.catalog.bulk import Line, Result
from lakehub.catalog.checking import reader
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.models import Connection, Dataset, DatasetKind, LineageLink, LineageTable
from lakehub.catalog.onboarding import Application
from lakehub.kernel.errors import NotFound


class Direction(StrEnum):
    UP = "up"
    DOWN = "down"
    BOTH = "both"


@dataclass(frozen=True)
class Along:
    """`applications` for what can be onboarded; `lines` for what is already, or that nobody can read."""

    applications: tuple[Application, ...]
    lines: tuple[Line, ...]


def along(
    dataset: Dataset,
    direction: Direction,
    *,
    tier: int | None = None,
    team: str = "",
    grace: timedelta = timedelta(),
) -> Along:
    """All the way up, all the way down, or both. What is found is watched where it lies, in the dataset's data centers, and
    has its tier and team unless told. Raises NotFound where lineage does not know the dataset."""
    known = list(LineageTable.objects.filter(dataset=dataset).values_list("pk", flat=True))
    if not known:
        raise NotFound(
            f"Lineage does not know {dataset.name}. `manage.py lineage` reads it now; docs/onboarding.md says how tables are named."
        )
    like = Application(
        name="",
        team=team or dataset.team.name,
        tier=dataset.tier if tier is None else tier,
        connection="",
        table="",
        data_centers=tuple(dataset.copies.values_list("data_center__name", flat=True)),
        kind=DatasetKind.APPEND_ONLY,
        ingested=False,
        grace=grace,
        description=f"Found along the lineage of {dataset.name}.",
    )
    tables = LineageTable.objects.filter(pk__in=set(_reached(known, direction)), dropped=False)
    return _sorted_out(tables.exclude(dataset=dataset).select_related("connection", "dataset"), like)


def _reached(start: Iterable[int], direction: Direction) -> Iterator[int]:
    """Up, or down, and not what is down from what is up."""
    pairs = list(LineageLink.objects.values_list("upstream_id", "downstream_id"))
    if direction in (Direction.DOWN, Direction.BOTH):
        yield from _walk(start, pairs)
    if direction in (Direction.UP, Direction.BOTH):
        yield from _walk(start, [(down, up) for up, down in pairs])


def _walk(start: Iterable[int], steps: Iterable[tuple[int, int]]) -> Iterator[int]:
    following: dict[int, list[int]] = {}
    for begin, end in steps:
        following.setdefault(begin, []).append(end)
    waiting = list(start)
    seen = set(waiting)
    while waiting:
        for end in following.get(waiting.pop(), ()):
            if end not in seen:
                seen.add(end)
                waiting.append(end)
                yield end


def _sorted_out(tables: Iterable[LineageTable], like: Application) -> Along:
    applications: dict[tuple[str, str], Application] = {}
    lines: dict[str, Line] = {}
    for table in sorted(tables, key=str):
        connection = table.connection
        if table.dataset is not None:
            lines[table.dataset.name] = Line(table.dataset.name, Result.EXISTS)
        elif connection is None:
            why = {"connection": f"No connection reads {table}: make one whose name is its namespace."}
            lines[str(table)] = Line(str(table), Result.REFUSED, why)
        else:
            try:
                found = _application(connection, table.object, like)
            except MetadataUnavailable as problem:
                lines[str(table)] = Line(str(table), Result.REFUSED, {"table": str(problem)})
            else:
                applications[connection.name, table.object] = found
    return Along(tuple(_named_apart(applications.values())), tuple(lines.values()))


def _application(connection: Connection, table: str, like: Application) -> Application:
    """Its key is what the storage says; without one the tests that need it are skipped, and the owners are told."""
    key = reader(connection).describe(table).primary_key
    return replace(like, name=slug(table), connection=connection.name, table=table, primary_key=key)


def slug(table: str) -> str:
    """`ops.Flight Legs` is `ops-flight-legs`; a glob is called by its folder."""
    words = re.findall(r"[a-z0-9_]+", re.sub(r"(/\*)?\.[a-z]+$", "", table.lower()) if "*" in table else table.lower())
    name = "-".join(words).lstrip("-_0123456789")[:63]
    return name or "table"


def _named_apart(applications: Iterable[Application]) -> Iterator[Application]:
    """Two tables of one name in two places are called by their place too."""
    every = list(applications)
    often = Counter(one.name for one in every)
    for one in every:
        yield one if often[one.name] == 1 else replace(one, name=slug(f"{one.connection}.{one.table}"))
