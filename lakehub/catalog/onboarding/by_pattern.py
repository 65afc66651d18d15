"""The tables of one connection whose names are of a pattern and which nobody onboarded yet, as applications for onboarding: what is captured needs a key, and the tables say theirs."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import translate
from functools import cached_property, partial

from lakehub.accounts.models import Team
from lakehub.catalog import ports
from lakehub.catalog.datasets.copies import check_separate_lakes
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.models import TIERS, Connection, DataCenter, Dataset, Feed
from lakehub.catalog.onboarding.along_lineage import dataset_name_of_table
from lakehub.catalog.onboarding.bulk import MAX_REQUESTS, OnboardingLine, OnboardingSelection, OnboardingStatus
from lakehub.catalog.onboarding.checks import check_lake_columns, check_table_of_capture
from lakehub.catalog.onboarding.onboard import RESERVED_NAMES
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from lakehub.catalog.ports import SurveyedTable
from lakehub.catalog.storages import ServerDatabase, Storage, takes_patterns
from lakehub.catalog.validation import Problems, find_by_name
from lakehub.kernel.errors import Refused

MAX_PATTERN = 500
"""Characters: each of the names that a server lists is compared with each of the pattern's."""
_MAX_NAMED = 5
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
        return any(match(table) for match in self.matchers.values())

    @cached_property
    def matchers(self) -> Mapping[str, Callable[[str], object]]:
        """By name."""
        return {name: re.compile(translate(name)).match for name in self.names}


@dataclass(frozen=True)
class PatternRequest:
    """What a person or a program says of all tables of a pattern; names, not objects. No data centers: the only one that there is."""

    connection: str
    tables: str
    team: str
    tier: int | None
    data_centers: Sequence[str] = ()


def requests_by_pattern(request: PatternRequest) -> OnboardingSelection:
    """`requests` for what can be onboarded; `lines` for what is already, or cannot be captured. One look at the server. Raises Refused."""
    connection, pattern, like = _checked(request)
    try:
        known = _onboarded(connection)
        survey = ports.survey_for_capture(connection.url, partial(_matching, connection.storage, pattern))
    except MetadataUnavailable as problem:
        raise Refused(f"Nothing was onboarded: {problem}") from problem
    if survey.of_server:
        raise Refused.for_fields({"connection": " ".join(survey.of_server)})
    return _select(survey.tables, known, like)


class NotListed(Refused):
    """A table was chosen that is none of those that match."""


def keep_chosen(selection: OnboardingSelection, chosen: Collection[str]) -> OnboardingSelection:
    """`chosen`: tables. What cannot be onboarded says so in its line. Raises NotListed, which names what does not match."""
    listed = {each.table for each in selection.requests} | {line.table for line in selection.lines}
    if unlisted := sorted({*chosen} - listed):
        names = " or ".join(f"`{name[:100]}`" for name in unlisted[:_MAX_NAMED])
        more = f" or {len(unlisted) - _MAX_NAMED} more" if len(unlisted) > _MAX_NAMED else ""
        raise NotListed.for_fields(
            {"chosen": f"Nothing was onboarded. No table that matches is called {names}{more}: look at the list again."}
        )
    if not chosen:
        raise Refused.for_fields({"chosen": "Choose at least one table."})
    requests = tuple(each for each in selection.requests if each.table in chosen)
    return OnboardingSelection(requests, tuple(line for line in selection.lines if line.table in chosen))


def _checked(request: PatternRequest) -> tuple[Connection, TablePattern, OnboardingRequest]:
    """What is the same for all of them. Raises Refused, by field."""
    problems = Problems()
    connection = None
    if request.connection:
        connection = find_by_name(problems, "connection", Connection, request.connection)
    else:
        problems.add("connection", "Name the connection whose tables are captured.")
    if request.team:
        find_by_name(problems, "team", Team, request.team)
    else:
        problems.add("team", "Name the team that owns them.")
    if request.tier is None or request.tier not in TIERS:
        problems.add("tier", f"Choose a tier from {TIERS[0]} (highest) to {TIERS[-1]}.")
    data_centers = [*request.data_centers] or _only_data_center()
    if not data_centers:
        problems.add("data_centers", "Name at least one data center.")
    for name in data_centers:
        find_by_name(problems, "data_centers", DataCenter, name)
    check_separate_lakes(problems, data_centers)
    if connection is not None and not takes_patterns(connection.plugin):
        problems.add(
            "connection",
            f"Tables of `{connection.name}` have no primary key that could be read: onboard them one by one, or as a list. "
            "By a pattern those are onboarded that are captured from a database, with a connection of the plug-in `mysql`.",
        )
    problems.raise_if_any()
    assert connection is not None
    assert request.tier is not None  # each missing one is a problem
    like = OnboardingRequest("", request.team, request.tier, connection.name, "", tuple(data_centers))
    return connection, TablePattern(request.tables), like


def _only_data_center() -> list[str]:
    """None where it has to be said which."""
    names = list(DataCenter.objects.values_list("name", flat=True)[:2])
    return names if len(names) == 1 else []


def _matching(storage: Storage, pattern: TablePattern, tables: Sequence[str]) -> Sequence[str]:
    """Raises Refused where a name of the pattern matches none, or where there are too many."""
    for name, match in pattern.matchers.items():
        if not any(map(match, tables)):
            seen = f"The account can see {len(tables):,} tables. {storage.empty_hint}"
            raise Refused.for_fields({"tables": f"No table matches `{name[:200]}`. {seen}"})
    matching = [table for table in tables if pattern.matches(table)]
    if len(matching) > MAX_REQUESTS:
        raise Refused.for_fields(
            {
                "tables": f"`{pattern.text[:200]}` matches {len(matching):,} tables; at most {MAX_REQUESTS} can be onboarded at once. Narrow the pattern."
            }
        )
    return matching


def _select(
    tables: Mapping[str, SurveyedTable], known: Mapping[str, str], like: OnboardingRequest
) -> OnboardingSelection:
    taken = dict(Dataset.objects.values_list("name", "offboarded_at"))
    requests, lines = list[OnboardingRequest](), list[OnboardingLine]()
    for table, surveyed in tables.items():
        if table in known:
            lines.append(OnboardingLine(known[table], OnboardingStatus.EXISTS, table=table))
            continue
        application = replace(like, name=dataset_name_of_table(table), table=table, primary_key=surveyed.primary_key)
        problems = _problems(application, surveyed, taken)
        if problems.fields:
            lines.append(OnboardingLine(application.name, OnboardingStatus.REFUSED, problems.fields, table=table))
        else:
            taken[application.name] = None
            requests.append(application)
    return OnboardingSelection(tuple(requests), tuple(lines))


def _problems(
    application: OnboardingRequest, surveyed: SurveyedTable, taken: Mapping[str, datetime | None]
) -> Problems:
    """What onboarding it would stop at, as far as the catalogs say it: of the server, and of ours."""
    problems, name = Problems(), application.name
    if name in RESERVED_NAMES or name in taken:
        why = "an address of the REST API" if name in RESERVED_NAMES else "the name of another dataset"
        left = ", which was off-boarded" if taken.get(name) else ", perhaps of the same table by another connection"
        problems.add(
            "name",
            f"`{name}` is {why}{left if name in taken else ''}. Onboard `{application.table}` alone, under another name.",
        )
    if "." in application.table:
        problems.add("table", f"`{application.table}` has a dot, which would part a database from a table: rename it.")
    if surveyed.columns and not application.primary_key:
        problems.add("primary_key", _NO_KEY)
    check_lake_columns(problems, application, surveyed.columns)
    check_table_of_capture(problems, application, surveyed.findings)
    return problems


def _onboarded(connection: Connection) -> dict[str, str]:
    """The names of datasets by table, as the storage lists it. Raises MetadataUnavailable."""
    place = connection.storage.location()
    database = f"{place.name}." if isinstance(place, ServerDatabase) else ""
    feeds = Feed.objects.filter(connection=connection, dataset__offboarded_at=None)
    names = feeds.values_list("object", "dataset__name")
    return {table.partition("?")[0].removeprefix(database): name for table, name in names}
