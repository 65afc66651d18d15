"""Can a server be tapped, and a table of it be captured? Asked where a connection is tried and a dataset onboarded, before the tap meets it."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings
from sqlalchemy.exc import SQLAlchemyError

from ingestion.capture.cell_checks import cell_table_problems
from ingestion.capture.column_checks import uncertain_keys, unfit_columns
from ingestion.capture.server_checks import read_server_facts, server_problems
from ingestion.capture.snapshot.definitions import NoSuchTable, named_table, read_charsets, read_definition
from ingestion.capture.table_checks import table_problems
from ingestion.capture.table_facts import read_table_facts
from ingestion.captures.servers import is_kafka
from ingestion.changelog import ChangelogError
from ingestion.changelog.kafka.address import read_address
from ingestion.changelog.kafka.topics import is_topic_of_changelog
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.ports import CaptureFindings
from lakehub.kernel.cells.cell_tables import NotCells, read_cell_object
from lakehub.source_databases.engine import CannotOpen, error_text, open_database
from lakehub.source_databases.urls import UnusableUrl, read_url, with_mariadb_driver
from lakehub.source_topics.address import read_topics_url, with_port
from lakehub.source_topics.kafka_url import UnusableKafkaUrl


def capture_findings(url: str, table: str = "", *, has_cells: bool = False) -> CaptureFindings:
    """The port `catalog.CaptureCheck`. `table`: `name` or `database.name`, or a topic; empty: the server alone is asked. Raises MetadataUnavailable."""
    if is_kafka(url):
        return CaptureFindings(of_table=tuple(_topic_problems(url, table)))
    url = with_mariadb_driver(url)
    try:
        table, options = read_cell_object(table) if has_cells else (table, None)
        with open_database(url) as source:
            server = server_problems(read_server_facts(source.connection))
            database, name = named_table(table, read_url(url).address.database or "")
            facts = read_table_facts(source.connection, database, name) if table else None
            of_table = [] if facts is None else table_problems(facts, database, name)
            unfit, uncertain = dict[str, str](), dict[str, str]()
            if facts is not None and options is not None and not of_table:
                of_table = cell_table_problems(source.connection, database, name, options)
            elif facts is not None and not of_table:
                definition, charsets = (
                    read_definition(source.connection, database, name),
                    read_charsets(source.connection),
                )
                unfit, uncertain = unfit_columns(definition, charsets), uncertain_keys(definition, charsets)
    except (CannotOpen, UnusableUrl, NotCells, NoSuchTable) as problem:
        raise MetadataUnavailable(str(problem)) from problem
    except SQLAlchemyError as problem:
        raise MetadataUnavailable(f"The server did not say how it is set up: {error_text(problem, url)}") from problem
    return CaptureFindings(
        tuple(problem.text for problem in server if not problem.is_warning),
        tuple(problem.text for problem in server if problem.is_warning),
        tuple(of_table),
        {} if facts is None else facts.generated,
        unfit,
        uncertain,
    )


def _topic_problems(url: str, topic: str) -> Iterator[str]:
    """All else shows when its messages are looked at."""
    if not topic or settings.LAKEHUB_CHANGELOG != "kafka":
        return
    try:
        own, address = read_address(settings.LAKEHUB_CHANGELOG_URL), read_topics_url(url)
    except (ChangelogError, UnusableKafkaUrl) as problem:
        raise MetadataUnavailable(str(problem)) from problem
    brokers = {with_port(broker) for broker in own.brokers.lower().split(",")}
    if brokers & {*address.brokers} and is_topic_of_changelog(own.prefix, topic):
        yield f"The topic `{topic}` is one of Lakehub's own changelog: what is captured from it would come there again. Onboard the topic that others write."
