"""Which tables of a database could be captured, and why not the others: many in one look at the catalog of their server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from ingestion.capture.binlog.table_map import TableMap
from ingestion.capture.column_checks import uncertain_keys, unfit_columns
from ingestion.capture.server_checks import read_server_facts, server_problems
from ingestion.capture.snapshot.definitions import read_charsets, read_definitions
from ingestion.capture.table_checks import table_problems
from ingestion.capture.table_facts import TableFacts, read_facts_of_tables, read_table_names
from lakehub.catalog.metadata import MetadataUnavailable, StorageUnreachable
from lakehub.catalog.ports import CaptureFindings, CaptureSurvey, SurveyedTable
from lakehub.catalog.storages.sql import TIMEOUTS
from lakehub.catalog.storages.sql.looks import place_for_a_look
from lakehub.source_databases.engine import CannotOpen, error_text, open_database
from lakehub.source_databases.urls import UnusableUrl, read_url, with_mariadb_driver

_NEVER_WAIT = "SET SESSION lock_wait_timeout = 0"
"""For a table that is locked, such as one that another session renames or alters: each query of the look would wait for each such table, twice for some.
The connection is closed after the look."""


def survey_database(url: str, choose: Callable[[Sequence[str]], Sequence[str]]) -> CaptureSurvey:
    """The port `catalog.CaptureSurveyor`: with one connection, and as many queries for many tables as for one."""
    url = with_mariadb_driver(url)
    try:
        database = read_url(url).address.database or ""
        with place_for_a_look(), open_database(url, TIMEOUTS) as source, source.at_most(TIMEOUTS.silence):
            return _survey(source.connection, database, choose)
    except UnusableUrl as problem:
        raise MetadataUnavailable(str(problem)) from problem
    except CannotOpen as problem:
        raise StorageUnreachable(str(problem)) from problem
    except SQLAlchemyError as problem:
        raise MetadataUnavailable(
            f"The server did not say which tables it has: {error_text(problem, url)}"
        ) from problem


def _survey(
    connection: sa.Connection, database: str, choose: Callable[[Sequence[str]], Sequence[str]]
) -> CaptureSurvey:
    server = server_problems(read_server_facts(connection))
    if reasons := tuple(problem.text for problem in server if not problem.is_warning):
        return CaptureSurvey({}, reasons)
    connection.exec_driver_sql(_NEVER_WAIT)
    if not (tables := choose(sorted(read_table_names(connection, database)))):
        return CaptureSurvey({})
    facts = read_facts_of_tables(connection, database, tables)
    definitions, charsets = read_definitions(connection, database, tables), read_charsets(connection)
    seen = [table for table in tables if table in facts]  # others were dropped just now
    return CaptureSurvey({table: _surveyed(facts[table], definitions.get(table), database, charsets) for table in seen})


def _surveyed(
    facts: TableFacts, definition: TableMap | None, database: str, charsets: Mapping[int, str]
) -> SurveyedTable:
    """`definition`: None where the server does not show it now."""
    if definition is None:
        problems = table_problems(replace(facts, has_definition=False), database, facts.table)
        return SurveyedTable((), (), CaptureFindings(of_table=tuple(problems)))
    of_table = table_problems(facts, database, facts.table)
    findings = CaptureFindings(
        of_table=tuple(of_table),
        generated=facts.generated,
        unfit={} if of_table else unfit_columns(definition, charsets),
        uncertain_keys={} if of_table else uncertain_keys(definition, charsets),
    )
    names = tuple(column.name for column in definition.columns)
    return SurveyedTable(names, definition.primary_key, findings)
