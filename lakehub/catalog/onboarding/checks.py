"""Checks of an onboarding request against the real table: keys, order columns, partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from lakehub.catalog import ports
from lakehub.catalog.datasets.copies import CopySource, check_distinct_tables, check_separate_lakes
from lakehub.catalog.datasets.hidden_columns import check_generated, check_hidden_columns, used_columns
from lakehub.catalog.metadata import (
    NESTED_TYPES,
    ColumnType,
    KeyEvidence,
    MetadataUnavailable,
    TableMetadata,
)
from lakehub.catalog.models import PARTITION_FIELDS, Connection
from lakehub.catalog.onboarding import partition_proposal as proposal
from lakehub.catalog.onboarding.column_proposals import ColumnProposal, propose_columns
from lakehub.catalog.storages import has_cells
from lakehub.catalog.validation import (
    Problems,
    check_record_key,
    find_by_name,
    read_key_evidence,
    read_table_metadata,
)
from lakehub.kernel.lake_names import names_unfit_for_the_lake, unfit_names_text
from lakehub.kernel.partitions import Grain
from lakehub.kernel.partitions.form import partition_form, split_columns
from lakehub.kernel.partitions.zones import UnknownZone, zone_named
from lakehub.kernel.suggest import did_you_mean

if TYPE_CHECKING:
    from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest


_UNSORTABLE = frozenset({ColumnType.FLOAT, ColumnType.BOOLEAN, ColumnType.BINARY, ColumnType.JSON}) | NESTED_TYPES


def check_keys(
    problems: Problems, application: OnboardingRequest, connection: Connection, table: TableMetadata
) -> KeyEvidence | None:
    """The keys name real columns, and what is brought into the lake has a record key in each row, and each once.

    Returns the evidence for the primary key, else for the record key.
    """
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
    _check_holds_times(problems, named["event_time"], table)
    if application.ingested:
        _check_plain(problems, "record_key" if application.record_key else "primary_key", record_key, table)
    return _check_evidence(problems, application, connection)


def _check_columns_exist(problems: Problems, name: str, columns: Sequence[str], table: TableMetadata) -> bool:
    missing = [column for column in columns if column not in table.names]
    for column in missing:
        problems.add(name, f"There is no column `{column}`.{did_you_mean(column, table.names)}")
    return not missing


def _check_sortable(problems: Problems, name: str, columns: Sequence[str], table: TableMetadata) -> None:
    types = {column.name: column.type for column in table.columns}
    for column in columns:
        if types[column] in _UNSORTABLE:
            problems.add(name, f"Column `{column}` is {types[column]}: use a timestamp, a whole number or a string.")


def _check_plain(problems: Problems, name: str, columns: Sequence[str], table: TableMetadata) -> None:
    """A record key of the lake is written as text, and bytes have none that stays."""
    types = {column.name: column.type for column in table.columns}
    for column in columns:
        if types[column].is_nested or types[column] is ColumnType.BINARY:
            problems.add(
                name,
                f"Column `{column}` is {types[column]} and cannot be a part of a record key: name columns with plain values, "
                "or load a view that has one.",
            )


def _check_holds_times(problems: Problems, columns: Sequence[str], table: TableMetadata) -> None:
    """Texts may say times, as SQLite's do; numbers and all else are compared with no time."""
    types = {column.name: column.type for column in table.columns}
    for column in columns:
        if types[column] not in (ColumnType.DATE, ColumnType.TIMESTAMP, ColumnType.STRING):
            problems.add(
                "event_time",
                f"Column `{column}` is {types[column]} and holds no times: use a date or a timestamp, or leave it empty.",
            )


def _check_evidence(problems: Problems, application: OnboardingRequest, connection: Connection) -> KeyEvidence | None:
    shown = read_key_evidence(problems, "primary_key", application.primary_key, connection, application.table)
    named = application.record_key if tuple(application.record_key) != tuple(application.primary_key) else ()
    evidence = read_key_evidence(problems, "record_key", named, connection, application.table) if named else shown
    if application.ingested and evidence is not None:
        name = "record_key" if application.record_key else "primary_key"
        check_record_key(problems, name, application.record_key or application.primary_key, evidence)
    return shown or evidence


def check_hidden(
    problems: Problems, application: OnboardingRequest, table: TableMetadata | None, *, captured: bool
) -> None:
    """`captured`: the table would be, if its rows come into the lake."""
    used = used_columns(
        record_key=application.record_key,
        primary_key=application.primary_key,
        partition=split_columns(application.partition_column),
        others={
            "the event time": application.event_time,
            "the reference key": application.reference_key,
            "the watermark": application.cursor_column,
        },
        table=table,
    )
    is_captured = captured and application.ingested
    check_hidden_columns(problems, application.hidden, used, table, name=application.name, captured=is_captured)


def check_lake_columns(problems: Problems, application: OnboardingRequest, columns: Sequence[str]) -> None:
    """The lake's tables have Avro's names: what no job could write is refused, and not loaded in vain."""
    unfit = names_unfit_for_the_lake(name for name in columns if name not in application.columns_left_out)
    if application.ingested and unfit:
        remedy = "Load a view that renames them, or monitor the table where it lies."
        problems.add("table", f"{unfit_names_text(unfit)} {remedy}")


def check_capture(problems: Problems, application: OnboardingRequest, connection: Connection) -> None:
    """What the tap would stop at is told before."""
    try:
        cells = has_cells(connection.plugin)
        log = ports.capture_findings(connection.url, application.table, has_cells=cells)
    except MetadataUnavailable as error:
        problems.add("connection", str(error))
        return
    for text in log.of_server:
        problems.add("connection", text)
    check_table_of_capture(problems, application, log)


def check_table_of_capture(problems: Problems, application: OnboardingRequest, log: ports.CaptureFindings) -> None:
    """`log`: of the table, however many were looked at together."""
    for text in log.of_table:
        problems.add("table", text)
    for column, reason in log.unfit.items():
        if column not in application.columns_left_out:
            problems.add("table", reason)
    name = "record_key" if application.record_key else "primary_key"
    for column in application.record_key or application.primary_key:
        if type_ := log.uncertain_keys.get(column):
            problems.add(
                name,
                f"Column `{column}` is {type_} in the lake and cannot be a part of a captured table's record key: its texts, whole numbers, dates and decimals without "
                "a fraction may. Name other columns, or load the table by its cursor column, from a connection with the plug-in `sql`.",
            )
    check_generated(problems, application.hidden, log.generated)


def check_cells(problems: Problems, application: OnboardingRequest) -> None:
    """A row comes in pieces: it is whole in the lake only, and what its partition is may come after it."""
    if not application.ingested:
        problems.add("ingested", "The table holds cells, which are rows in the lake only. Bring it into the lake.")
    if application.partition_column:
        problems.add(
            "partition_column",
            f"The rows of a table of cells come in pieces, and `{application.partition_column}` may come after the others: leave the partition out, "
            f"and give the grain `{Grain.NONE}`.",
        )


def check_copies(
    problems: Problems,
    application: OnboardingRequest,
    connection: Connection | None,
    *,
    before: OnboardingRequest | None = None,
) -> dict[str, CopySource]:
    """The copies that lie elsewhere than the table, by data center: each is there, has the columns, and is no other's table.

    `before`: as the dataset is. A copy that stays is read only where the partition differs, and then without a scan of its key.
    """
    if application.ingested:
        if application.copies:
            problems.add("copies", "What is brought into the lake has its copies there: leave out where they lie.")
        check_separate_lakes(problems, application.data_centers)
        return {}
    is_partitioned_as_before = all(getattr(application, name) == getattr(before, name, "") for name in PARTITION_FIELDS)
    elsewhere: dict[str, CopySource] = {}
    for copy in application.copies:
        if copy.data_center not in application.data_centers or copy.data_center in elsewhere:
            problems.add("copies", f"`{copy.data_center}` must be one of the data centers, and have one table.")
            continue
        source = find_by_name(problems, "copies", Connection, copy.connection)
        if source is not None:
            elsewhere[copy.data_center] = CopySource(source, copy.table)
            stays = before is not None and copy in before.copies
            if not (stays and is_partitioned_as_before):
                _check_table_of_copy(
                    problems, application, elsewhere[copy.data_center], copy.data_center, with_key=not stays
                )
    if connection is not None:
        at_table = CopySource(connection, application.table)
        check_distinct_tables(
            problems, [(name, elsewhere.get(name, at_table)) for name in dict.fromkeys(application.data_centers)]
        )
    return elsewhere


def _check_table_of_copy(
    problems: Problems, application: OnboardingRequest, source: CopySource, data_center: str, *, with_key: bool
) -> None:
    """What the tests read by name is in this copy too, and can be read."""
    of_copy = Problems()
    if (table := read_table_metadata(of_copy, source.connection, source.table)) is not None:
        named = (*application.primary_key, *application.record_key, *split_columns(application.partition_column))
        named += (application.event_time, application.reference_key)
        columns_exist = _check_columns_exist(of_copy, "table", list(dict.fromkeys(filter(None, named))), table)
        if columns_exist and with_key:
            read_key_evidence(of_copy, "table", application.primary_key, source.connection, source.table)
    for why in of_copy.texts:
        problems.add("copies", f"{data_center}: {why}")


def check_partition(
    problems: Problems, application: OnboardingRequest, connection: Connection, table: TableMetadata
) -> str:
    """The form in which the partition column says a time, as the types of the columns have it."""
    if application.grain not in list(Grain):
        problems.add("grain", f"There is no grain `{application.grain}`.{did_you_mean(application.grain, Grain)}")
    elif application.partition_column and application.grain == Grain.NONE:
        grains = ", ".join(grain for grain in Grain if grain is not Grain.NONE)
        problems.add(
            "grain",
            f"A table that is partitioned by `{application.partition_column}` needs its grain: {grains}."
            f"{_proposal_text(application, connection, table)}",
        )
    elif application.grain != Grain.NONE and not application.partition_column:
        problems.add("partition_column", f"The grain is {application.grain}, but no partition column is named.")
    columns = split_columns(application.partition_column)
    columns_exist = _check_columns_exist(problems, "partition_column", columns, table)
    try:
        zone = zone_named(application.partition_tz)
    except UnknownZone:
        problems.add(
            "partition_tz",
            f"There is no time zone `{application.partition_tz[:100]}`: use a name such as America/New_York.",
        )
        return ""
    if application.grain not in list(Grain) or application.grain == Grain.NONE or not columns or not columns_exist:
        return ""
    return _check_form(problems, application, connection, table, zone)


def proposals_for(
    application: OnboardingRequest, connection: Connection, table: TableMetadata
) -> tuple[ColumnProposal, ...]:
    """Of the partition and the event time what was left out and the data says. They are never taken unasked."""
    seen = tuple(column for column in table.columns if not any(column.name in of for of in application.hidden.values()))
    try:
        return propose_columns(
            replace(table, columns=seen),
            connection.storage,
            application.table,
            partition=not application.partition_column,
            event_time=not application.event_time,
            zone=zone_named(application.partition_tz),
        )
    except (MetadataUnavailable, ValueError):
        return ()


def _check_form(
    problems: Problems, application: OnboardingRequest, connection: Connection, table: TableMetadata, zone: ZoneInfo
) -> str:
    grain = Grain(application.grain)
    text = proposal.form_by_types(table, application.partition_column, grain, application.partition_form.strip())
    form = proposal.partition_form_or_problem(application.partition_column, grain, zone, text)
    if isinstance(form, str):
        problems.add("partition_form", form)
        return ""
    problem = proposal.partition_problem(table, form)
    if not problem:
        try:
            newest = connection.storage.newest_values(application.table, form.columns, proposal.SAMPLE_VALUES)
        except MetadataUnavailable as error:
            problem = str(error)
        else:
            problem = proposal.sample_problem(form, newest)
    if problem:
        problems.add("partition_form", problem)
    return text


def _proposal_text(application: OnboardingRequest, connection: Connection, table: TableMetadata) -> str:
    """What the data says; nothing where it says no time, or cannot be read."""
    names = split_columns(application.partition_column)
    try:
        zone = zone_named(application.partition_tz)
        if any(name not in table.names for name in names):
            return ""
        newest = connection.storage.newest_values(application.table, names, proposal.SAMPLE_VALUES)
    except (ValueError, MetadataUnavailable):
        return ""
    proposed = proposal.propose_partition(table, application.partition_column, newest.values, zone)
    if proposed is None:
        return ""
    form = partition_form(application.partition_column, proposed.grain, zone, proposed.form)
    meaning = proposal.newest_meaning(form, newest)
    written = f" and the form {proposed.form}" if proposed.form else ""
    return f" By its values it is {proposed.grain}{written}{f': {meaning}' if meaning else ''}."
