"""The tables of one connection whose names are of a pattern and which nobody onboarded yet, as applications for onboarding: what is captured needs a key, and the tables say theirs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import translate
from functools import cached_property

from lakehub.catalog.metadata import MetadataUnavailable, StorageUnreachable
from lakehub.catalog.models import Connection, DataCenter, Dataset, Feed
from lakehub.catalog.onboarding.along_lineage import dataset_name_of_table
from lakehub.catalog.onboarding.bulk import MAX_REQUESTS, OnboardingLine, OnboardingSelection, OnboardingStatus
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from lakehub.catalog.storages import ServerDatabase, Storage, takes_patterns
from lakehub.kernel.errors import Refused

MAX_LISTED = 100_000
"""Names that a storage is asked for."""
MAX_PATTERN = 500
"""Characters: each of the names that a storage lists is compared with each of the pattern's."""
_NO_KEY = "The table has no primary key. Give it one, or onboard it alone with a record key that no two rows share."


@dataclass(frozen=True)
class TablePattern:
    """`text`: names with `*`, `?` and `[...]`, several with commas between; capital letters are others than small ones."""

    text: str

    def __post_init__(self) -> None:
        if not self.names:
            raise Refused.for_fields(
                {"tables": "Name the tables: a pattern such as `sales_*`, or several with commas."}
            )
        if len(self.text) > MAX_PATTERN:
            raise Refused.for_fields(
                {
                    "tables": f"The pattern has {len(self.text):,} characters; {MAX_PATTERN} are the most. Onboard the tables in parts, or as a list."
                }
            )

    @property
    def names(self) -> list[str]:
        return [name for each in self.text.split(",") if (name := each.strip())]

    def matches(self, table: str) -> bool:
        return any(match(table) for match in self._matches)

    @cached_property
    def _matches(self) -> list[Callable[[str], object]]:
        return [re.compile(translate(name)).match for name in dict.fromkeys(self.names)]


def requests_by_pattern(
    connection: Connection, pattern: TablePattern, *, team: str, tier: int, data_centers: Sequence[str]
) -> OnboardingSelection:
    """`requests` for what can be onboarded; `lines` for what is already, or has no key. Raises Refused."""
    if not takes_patterns(connection.plugin):
        raise Refused.for_fields(
            {
                "connection": f"Tables of `{connection.name}` have no primary key that could be read: onboard them one by one, or as a list. "
                "By a pattern those are onboarded that are captured from a database, with a connection of the plug-in `mysql`."
            }
        )
    like = OnboardingRequest("", team, tier, connection.name, "", tuple(data_centers) or _only_data_center())
    taken = set(Dataset.objects.filter(offboarded_at=None).values_list("name", flat=True))
    requests, lines = list[OnboardingRequest](), list[OnboardingLine]()
    try:
        storage = connection.storage
        known = _onboarded(connection, storage)
        for table in _matching(storage, pattern):
            name = known.get(table) or dataset_name_of_table(table)
            if table in known:
                lines.append(OnboardingLine(name, OnboardingStatus.EXISTS))
            elif name in taken:
                why = f"Another dataset has the name `{name}` already, perhaps of the same table by another connection. Onboard `{table}` alone, under another name."
                lines.append(OnboardingLine(name, OnboardingStatus.REFUSED, {"name": why}))
            else:
                taken.add(name)
                _apply(storage, replace(like, name=name, table=table), requests, lines)
    except MetadataUnavailable as problem:
        raise Refused(f"Nothing was onboarded: {problem}") from problem
    return OnboardingSelection(tuple(requests), tuple(lines))


def _only_data_center() -> tuple[str, ...]:
    """None where it has to be said which."""
    names = tuple(DataCenter.objects.values_list("name", flat=True)[:2])
    return names if len(names) == 1 else ()


def _matching(storage: Storage, pattern: TablePattern) -> Sequence[str]:
    """Raises Refused where there is none, or too many; MetadataUnavailable."""
    tables = storage.tables(MAX_LISTED)
    matching = [table for table in tables if pattern.matches(table)]
    if not matching:
        raise Refused.for_fields(
            {
                "tables": f"No table matches `{pattern.text[:200]}`. The account can see {len(tables):,} tables. {storage.empty_hint}"
            }
        )
    if len(matching) > MAX_REQUESTS:
        raise Refused.for_fields(
            {
                "tables": f"`{pattern.text[:200]}` matches {len(matching):,} tables; at most {MAX_REQUESTS} can be onboarded at once. Narrow the pattern."
            }
        )
    return matching


def _apply(
    storage: Storage, application: OnboardingRequest, requests: list[OnboardingRequest], lines: list[OnboardingLine]
) -> None:
    """Raises StorageUnreachable: no other table of it can be looked at either."""
    try:
        key = storage.describe(application.table).primary_key
    except StorageUnreachable:
        raise
    except MetadataUnavailable as problem:
        lines.append(OnboardingLine(application.name, OnboardingStatus.REFUSED, {"table": str(problem)}))
        return
    if key:
        requests.append(replace(application, primary_key=key))
    else:
        lines.append(OnboardingLine(application.name, OnboardingStatus.REFUSED, {"primary_key": _NO_KEY}))


def _onboarded(connection: Connection, storage: Storage) -> dict[str, str]:
    """The names of datasets by table, as the storage lists it."""
    place = storage.location()
    database = f"{place.name}." if isinstance(place, ServerDatabase) else ""
    feeds = Feed.objects.filter(connection=connection, dataset__offboarded_at=None)
    names = feeds.values_list("object", "dataset__name")
    return {table.partition("?")[0].removeprefix(database): name for table, name in names}
