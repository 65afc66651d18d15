"""Checks of an onboarding request against the real table: keys, order columns, partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lakehub.catalog.metadata import (
    ColumnType,
    KeyEvidence,
    TableMetadata,
)
from lakehub.catalog.models import Connection
from lakehub.catalog.validation import Problems, check_key_evidence
from lakehub.kernel.partitions import Grain
from lakehub.kernel.suggest import did_you_mean

if TYPE_CHECKING:
    from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest


def check_keys(
    problems: Problems, application: OnboardingRequest, connection: Connection, table: TableMetadata
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
    columns_exist = [_check_columns_exist(problems, name, columns, table) for name, columns in named.items()]
    if application.ingested and not record_key:
        problems.add("record_key", "A dataset that is ingested needs a record key: the columns that name a row.")
    if not all(columns_exist):
        return None
    for name in ("reference_key", "cursor_column"):
        _check_sortable(problems, name, named[name], table)
    return _check_evidence(problems, application, connection)


def _check_columns_exist(problems: Problems, name: str, columns: Sequence[str], table: TableMetadata) -> bool:
    missing = [column for column in columns if column not in table.names]
    for column in missing:
        problems.add(name, f"There is no column `{column}`.{did_you_mean(column, table.names)}")
    return not missing


def _check_sortable(problems: Problems, name: str, columns: Sequence[str], table: TableMetadata) -> None:
    types = {column.name: column.type for column in table.columns}
    for column in columns:
        if types[column] in (ColumnType.FLOAT, ColumnType.BOOLEAN, ColumnType.BINARY):
            problems.add(name, f"Column `{column}` is {types[column]}: use a timestamp, a whole number or a string.")


def _check_evidence(problems: Problems, application: OnboardingRequest, connection: Connection) -> KeyEvidence | None:
    shown = check_key_evidence(problems, "primary_key", application.primary_key, connection, application.table)
    evidence = check_key_evidence(problems, "record_key", application.record_key, connection, application.table)
    if evidence is not None and evidence.distinct < evidence.rows - evidence.nulls:
        problems.add(
            "record_key",
            f"The record key {', '.join(application.record_key)} names {evidence.distinct:,} of {evidence.rows:,} rows: it must be unique.",
        )
    return shown or evidence


def check_partition(problems: Problems, application: OnboardingRequest, table: TableMetadata) -> None:
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
        _check_columns_exist(problems, "partition_column", [application.partition_column], table)
    try:
        ZoneInfo(application.partition_tz)
    except (ZoneInfoNotFoundError, ValueError):
        problems.add(
            "partition_tz", f"There is no time zone `{application.partition_tz}`: use a name such as America/New_York."
        )
