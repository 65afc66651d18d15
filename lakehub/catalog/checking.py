"""The checks of onboarding, each against the real thing; problems are gathered so that all are mended at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lakehub.accounts.models import Team
from lakehub.catalog.metadata import (
    READERS,
    ColumnType,
    KeyEvidence,
    MetadataReader,
    MetadataUnavailable,
    TableMetadata,
)
from lakehub.catalog.models import Connection, DataCenter, Dataset
from lakehub.catalog.ports import overrides_check
from lakehub.kernel.calendar import Grain
from lakehub.kernel.errors import Refused
from lakehub.kernel.registry import UnknownPlugin
from lakehub.kernel.suggest import did_you_mean

if TYPE_CHECKING:
    from lakehub.catalog.onboarding import Application

Named = TypeVar("Named", Team, Connection, DataCenter, Dataset)


class Problems:
    """What is wrong, by field."""

    def __init__(self) -> None:
        self._by_field: dict[str, list[str]] = {}

    def add(self, name: str, why: str) -> None:
        self._by_field.setdefault(name, []).append(why)

    def raise_any(self) -> None:
        if self._by_field:
            raise Refused.because({name: " ".join(why) for name, why in self._by_field.items()})


def find(problems: Problems, name: str, model: type[Named], wanted: str) -> Named | None:
    """The object with this name, or a problem with the nearest name."""
    live = model._default_manager.filter(offboarded_at=None) if model is Dataset else model._default_manager.all()
    found = live.filter(name=wanted).first()
    if found is None:
        kind = str(model._meta.verbose_name)
        near = did_you_mean(wanted, live.values_list("name", flat=True)[:1000])
        problems.add(name, f"There is no {kind} `{wanted}`.{near}")
    return found


def reader(connection: Connection) -> MetadataReader:
    return READERS.get(connection.plugin)(connection.url)


def check_overrides(problems: Problems, overrides: Mapping[str, object], tier: int, zone: str) -> None:
    """What cannot be read would be noticed by whoever reads it later, and not by whoever wrote it."""
    for why in overrides_check()(overrides, tier=tier, zone=zone):
        problems.add("overrides", why)


LONGEST = timedelta(days=3660)


def check_length(problems: Problems, name: str, length: timedelta | None, *, least: timedelta = timedelta()) -> None:
    """A length of time that can be counted with: not below `least`, and not beyond ten years."""
    if length is not None and not least <= length <= LONGEST:
        problems.add(name, f"{length} is no length of time to go by: give {least} to {LONGEST.days} days.")


def find_table(problems: Problems, connection: Connection, table: str) -> TableMetadata | None:
    try:
        return reader(connection).describe(table)
    except (MetadataUnavailable, UnknownPlugin) as error:
        problems.add("table", str(error))
        return None


def check_keys(
    problems: Problems, application: Application, connection: Connection, table: TableMetadata
) -> KeyEvidence | None:
    """The keys name real columns, and no row has a null in one. Returns the evidence for the primary key."""
    record_key = application.record_key or application.primary_key
    named = {
        "primary_key": application.primary_key,
        "record_key": application.record_key,
        "reference_key": [application.reference_key] if application.reference_key else [],
        "cursor_column": [application.cursor_column] if application.cursor_column else [],
        "event_time": [application.event_time] if application.event_time else [],
    }
    known = [_columns_exist(problems, name, columns, table) for name, columns in named.items()]
    if application.ingested and not record_key:
        problems.add("record_key", "A dataset that is ingested needs a record key: the columns that name a row.")
    if not all(known):
        return None
    for name in ("reference_key", "cursor_column"):
        _sortable(problems, name, named[name], table)
    return _evidence(problems, application, connection)


def _columns_exist(problems: Problems, name: str, columns: Sequence[str], table: TableMetadata) -> bool:
    missing = [column for column in columns if column not in table.names]
    for column in missing:
        problems.add(name, f"There is no column `{column}`.{did_you_mean(column, table.names)}")
    return not missing


def _sortable(problems: Problems, name: str, columns: Sequence[str], table: TableMetadata) -> None:
    types = {column.name: column.type for column in table.columns}
    for column in columns:
        if types[column] in (ColumnType.FLOAT, ColumnType.BOOLEAN, ColumnType.BINARY):
            problems.add(name, f"Column `{column}` is {types[column]}: use a timestamp, a whole number or a string.")


def _evidence(problems: Problems, application: Application, connection: Connection) -> KeyEvidence | None:
    shown = check_evidence(problems, "primary_key", application.primary_key, connection, application.table)
    evidence = check_evidence(problems, "record_key", application.record_key, connection, application.table)
    if evidence is not None and evidence.distinct < evidence.rows - evidence.nulls:
        problems.add(
            "record_key",
            f"The record key {', '.join(application.record_key)} names {evidence.distinct:,} of {evidence.rows:,} rows: it must be unique.",
        )
    return shown or evidence


def check_evidence(
    problems: Problems, name: str, key: Sequence[str], connection: Connection, table: str
) -> KeyEvidence | None:
    """How well the key holds in the real rows; a null in it is a problem. None where there is no key."""
    if not key:
        return None
    try:
        evidence = reader(connection).key_evidence(table, key)
    except MetadataUnavailable as error:
        problems.add(name, str(error))
        return None
    if evidence.nulls:
        problems.add(
            name,
            f"The key {', '.join(key)} has a null in {evidence.nulls:,} of {evidence.rows:,} rows: a key must always be there. "
            "Choose columns that are never null.",
        )
    return evidence


def check_partition(problems: Problems, application: Application, table: TableMetadata) -> None:
    if application.grain not in list(Grain):
        problems.add("grain", f"There is no grain `{application.grain}`.{did_you_mean(application.grain, Grain)}")
    elif application.partition_column and application.grain == Grain.NONE:
        problems.add(
            "grain",
            f"A table that is partitioned by `{application.partition_column}` needs its grain: hour, day or month.",
        )
    elif application.grain != Grain.NONE and not application.partition_column:
        problems.add("partition_column", f"The grain is {application.grain}, but no partition column is named.")
    if application.partition_column:
        _columns_exist(problems, "partition_column", [application.partition_column], table)
    try:
        ZoneInfo(application.partition_tz)
    except (ZoneInfoNotFoundError, ValueError):
        problems.add(
            "partition_tz", f"There is no time zone `{application.partition_tz}`: use a name such as America/New_York."
        )
