"""The server of a captured table, as its rows are read: a connection, what it says of the table, and where it stands in its binlog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from ingestion.capture.binlog.column_changes import ColumnChange
from ingestion.capture.binlog.events import BinlogError
from ingestion.capture.binlog_files import read_newest_gtid
from ingestion.capture.snapshot.definitions import NoSuchTable, read_charsets, read_definition
from ingestion.capture.table_facts import read_table_facts
from ingestion.capture.tap.captured_cells import CapturedCells
from ingestion.capture.tap.captured_table import CapturedTable, CaptureSpec, NotCaptured
from ingestion.domain.schema import Schema, evolve_schema
from ingestion.heatpipe.event_schema import event_schema
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.heatpipe.subject_schema import SubjectSchema
from ingestion.sources import SourceError
from lakehub.kernel.addresses import redacted_url
from lakehub.source_databases.engine import CannotOpen, SourceConnection, error_text, open_database
from lakehub.source_databases.timeouts import Timeouts
from lakehub.source_databases.urls import UnusableUrl, read_url, with_mariadb_driver

TIMEOUTS = Timeouts(silence=timedelta(minutes=5))


@dataclass(frozen=True)
class MysqlServer:
    url: str = field(repr=False)

    @cached_property
    def database(self) -> str:
        return read_url(self.url).address.database or ""

    @contextmanager
    def opened(self) -> Iterator[OpenServer]:
        """Raises SourceError, which has no password."""
        try:
            with open_database(with_mariadb_driver(self.url), TIMEOUTS) as source:
                yield OpenServer(source)
        except (CannotOpen, UnusableUrl) as problem:
            raise SourceError(f"{redacted_url(self.url)} cannot be read: {problem}") from problem
        except (NotCaptured, NoSuchTable, BinlogError) as problem:
            raise SourceError(str(problem)) from problem
        except SQLAlchemyError as problem:
            raise SourceError(f"{redacted_url(self.url)} did not answer: {error_text(problem, self.url)}") from problem


@dataclass(frozen=True)
class OpenServer:
    source: SourceConnection

    @property
    def connection(self) -> sa.Connection:
        return self.source.connection

    def captured_table(self, spec: CaptureSpec, topic: EventTopic) -> CapturedTable:
        """As it is now. Raises NotCaptured, NoSuchTable."""
        with self.source.at_most(TIMEOUTS.silence):
            definition = read_definition(self.connection, spec.database, spec.table)
            charsets = read_charsets(self.connection)
            facts = read_table_facts(self.connection, spec.database, spec.table) if spec.hidden else None
        if facts is not None and (why := spec.hidden.shown_by(facts.generated)):
            raise NotCaptured(f"The table `{spec.database}.{spec.table}` is not read. {why}")
        return CapturedTable.of(spec, definition, _KnownVersions(topic), charsets)

    def captured_cells(self, spec: CaptureSpec, topic: EventTopic) -> CapturedCells:
        """As they are now. Raises NotCaptured, NoSuchTable."""
        with self.source.at_most(TIMEOUTS.silence):
            definition = read_definition(self.connection, spec.database, spec.table)
            charsets = read_charsets(self.connection)
        return CapturedCells.of(spec, definition, _KnownVersions(topic), charsets)

    def newest_sequence(self) -> int:
        """Of the transactions in the binlog: some of them may not be seen by a snapshot yet."""
        with self.source.at_most(TIMEOUTS.silence):
            position = read_newest_gtid(self.connection)
        return max((int(gtid.rpartition("-")[2]) for gtid in position.split(",") if gtid.strip()), default=0)


@dataclass(frozen=True)
class _KnownVersions:
    """A `SchemaVersions` of those that a job was told of."""

    topic: EventTopic

    def version_of(self, subject: str, columns: Schema) -> SubjectSchema:
        """The newest that has room for these columns; none of the registry's (0) where there is none yet."""
        for schema in reversed(self.topic.event_schemas):
            evolution = evolve_schema(schema.row_columns, columns)
            if evolution.target == schema.row_columns and not evolution.conflicts:
                return schema
        return SubjectSchema(subject, 0, 0, event_schema(subject, columns))

    def note_changes(self, subject: str, sequence: int, changes: Sequence[ColumnChange]) -> None:
        """The tap's."""

    def note_emptied(self, subject: str, sequence: int) -> None:
        """The tap's."""
