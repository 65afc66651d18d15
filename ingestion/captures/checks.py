"""Can a server be tapped, and a table of it be captured? Asked where a connection is tried and a dataset onboarded, before the tap meets it."""

from __future__ import annotations

from sqlalchemy.exc import SQLAlchemyError

from ingestion.capture.server_checks import read_server_facts, server_problems
from ingestion.capture.snapshot.definitions import named_table
from ingestion.capture.table_checks import read_table_facts, table_problems
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.ports import CaptureFindings
from lakehub.source_databases.engine import CannotOpen, error_text, open_database
from lakehub.source_databases.urls import UnusableUrl, read_url, with_mariadb_driver


def capture_findings(url: str, table: str = "") -> CaptureFindings:
    """The port `catalog.CaptureCheck`. `table`: `name` or `database.name`; empty: the server alone is asked. Raises MetadataUnavailable."""
    url = with_mariadb_driver(url)
    try:
        with open_database(url) as source:
            server = server_problems(read_server_facts(source.connection))
            database, name = named_table(table, read_url(url).address.database or "")
            facts = read_table_facts(source.connection, database, name) if table else None
            of_table = [] if facts is None else table_problems(facts, database, name)
    except (CannotOpen, UnusableUrl) as problem:
        raise MetadataUnavailable(str(problem)) from problem
    except SQLAlchemyError as problem:
        raise MetadataUnavailable(f"The server did not say how it is set up: {error_text(problem, url)}") from problem
    return CaptureFindings(
        tuple(problem.text for problem in server if not problem.is_warning),
        tuple(problem.text for problem in server if problem.is_warning),
        tuple(of_table),
        {} if facts is None else facts.generated,
    )
