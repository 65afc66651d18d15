"""What lies up and down the lineage of a dataset and nobody onboarded yet, as applications for onboarding."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum

from django.db.models import Q

from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.models import Connection, Dataset, DatasetKind, LineageLink, LineageTable
from lakehub.catalog.onboarding.bulk import OnboardingLine, OnboardingSelection, OnboardingStatus
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from lakehub.kernel.errors import NotFound


class Direction(StrEnum):
    UP = "up"
    DOWN = "down"
    BOTH = "both"


def requests_along_lineage(
    dataset: Dataset,
    direction: Direction,
    *,
    tier: int | None = None,
    team: str = "",
    grace: timedelta = timedelta(),
) -> OnboardingSelection:
    """All the way up, all the way down, or both. What is found is watched where it lies, as a copy in the first of the
    dataset's data centers, and has its tier and team unless told. Raises NotFound where lineage does not know the dataset."""
    start_tables = list(LineageTable.objects.filter(dataset=dataset).values_list("pk", flat=True))
    if not start_tables:
        raise NotFound(
            f"Lineage does not know {dataset.name}. `manage.py lineage` reads it now; docs/onboarding.md says how tables are named."
        )
    like = OnboardingRequest(
        name="",
        team=team or dataset.team.name,
        tier=dataset.tier if tier is None else tier,
        connection="",
        table="",
        data_centers=tuple(dataset.copies.values_list("data_center__name", flat=True)[:1]),
        kind=DatasetKind.APPEND_ONLY,
        ingested=False,
        grace=grace,
        description=f"Found along the lineage of {dataset.name}.",
    )
    tables = LineageTable.objects.filter(
        pk__in=set(_reachable_tables(start_tables, direction, dataset.team_id)), dropped=False
    )
    return _select_tables(tables.exclude(dataset=dataset).select_related("connection", "dataset"), like)


def _reachable_tables(start: Iterable[int], direction: Direction, team: int) -> Iterator[int]:
    """Up, or down, and not what is down from what is up. What other teams than `team` posted does not lead there."""
    links = LineageLink.objects.filter(Q(team=None) | Q(team=team))
    pairs = list(links.values_list("upstream_id", "downstream_id"))
    if direction in (Direction.DOWN, Direction.BOTH):
        yield from _walk_links(start, pairs)
    if direction in (Direction.UP, Direction.BOTH):
        yield from _walk_links(start, [(down, up) for up, down in pairs])


def _walk_links(start: Iterable[int], steps: Iterable[tuple[int, int]]) -> Iterator[int]:
    following: dict[int, list[int]] = {}
    for begin, end in steps:
        following.setdefault(begin, []).append(end)
    waiting = list(start)
    visited = set(waiting)
    while waiting:
        for end in following.get(waiting.pop(), ()):
            if end not in visited:
                visited.add(end)
                waiting.append(end)
                yield end


def _select_tables(tables: Iterable[LineageTable], like: OnboardingRequest) -> OnboardingSelection:
    applications: dict[tuple[str, str], OnboardingRequest] = {}
    lines: dict[str, OnboardingLine] = {}
    for table in sorted(tables, key=str):
        connection = table.connection
        if table.dataset is not None:
            lines[table.dataset.name] = OnboardingLine(table.dataset.name, OnboardingStatus.EXISTS)
        elif connection is None:
            why = {"connection": f"No connection reads {table}: make one whose name is its namespace."}
            lines[str(table)] = OnboardingLine(str(table), OnboardingStatus.REFUSED, why)
        else:
            try:
                application = _request_for(connection, table.object, like)
            except MetadataUnavailable as problem:
                lines[str(table)] = OnboardingLine(str(table), OnboardingStatus.REFUSED, {"table": str(problem)})
            else:
                applications[connection.name, table.object] = application
    return OnboardingSelection(tuple(_with_unique_names(applications.values())), tuple(lines.values()))


def _request_for(connection: Connection, table: str, like: OnboardingRequest) -> OnboardingRequest:
    """Its key is what the storage says; without one the tests that need it are skipped, and the owners are told."""
    key = connection.storage.describe(table).primary_key
    return replace(like, name=dataset_name_of_table(table), connection=connection.name, table=table, primary_key=key)


def dataset_name_of_table(table: str) -> str:
    """`ops.Flight Legs` is `ops-flight-legs`; a glob is called by its folder."""
    words = re.findall(r"[a-z0-9_]+", re.sub(r"(/\*)?\.[a-z]+$", "", table.lower()) if "*" in table else table.lower())
    name = "-".join(words).lstrip("-_0123456789")[:63]
    return name or "table"


def _with_unique_names(applications: Iterable[OnboardingRequest]) -> Iterator[OnboardingRequest]:
    """Two tables of one name in two places are called by their place too."""
    every = list(applications)
    often = Counter(application.name for application in every)
    for application in every:
        yield (
            application
            if often[application.name] == 1
            else replace(application, name=dataset_name_of_table(f"{application.connection}.{application.table}"))
        )
