"""A database of MariaDB whose changes a tap takes to a log of segments, and the rows that somebody who reads the log has."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ingestion.capture.binlog.stream import BinlogStream, ServerAddress
from ingestion.capture.snapshot.definitions import read_charsets
from ingestion.capture.tap.captured_rows import CapturedRows
from ingestion.capture.tap.captured_table import CaptureSpec
from ingestion.capture.tap.known_tables import KnownTable
from ingestion.capture.tap.position import TapPosition, TapState
from ingestion.capture.tap.tap import Tap
from ingestion.changelog import CHANGELOGS, Changelog, ChangelogConfig, Outgoing
from ingestion.domain.merging.events import Operation, RowKey
from ingestion.heatpipe.decoder import Decoder
from ingestion.heatpipe.encoder import Encoder
from lakehub.setup.machine import scaled
from tests.services.database_tables import DRIVERS
from tests.unit.ingestion.capture.tapping import Versions

PRODUCER = "tap:test"
OWN_SERVER_ID = 100_000 + os.getpid()
"""Two runs of the tests may share a server: it throws out whoever has the id of another replica."""


def is_committed(tap: Tap) -> bool:
    """All that it has taken is in the changelog: its position is ahead of that for as long as more waits to be taken."""
    return not tap._has_moved and not tap.position.begun


@dataclass
class TappedServer:
    engine: sa.Engine
    url: sa.URL
    database: str
    start: str
    log_url: str
    log: Changelog
    charsets: dict[int, str]
    versions: Versions = field(default_factory=Versions)
    stopped: dict[str, str] = field(default_factory=dict)
    altered: list[str] = field(default_factory=list)
    by_statement: list[str] = field(default_factory=list)

    def table_stopped(self, topic: str, reason: str) -> None:
        self.stopped[topic] = reason

    def table_altered(self, topic: str) -> None:
        self.altered.append(topic)

    def written_by_statement(self, transaction: str) -> None:
        self.by_statement.append(transaction)

    def execute(self, *statements: str) -> None:
        with self.engine.connect() as connection:
            for statement in (f"USE {self.database}", *statements):
                connection.exec_driver_sql(statement)
            connection.commit()

    def select(self, query: str) -> list[sa.Row[Any]]:
        with self.engine.connect() as connection:
            return [*connection.exec_driver_sql(query)]

    def gtid(self) -> str:
        return self._scalar("SELECT @@gtid_binlog_pos")

    def sequence(self) -> int:
        """Of the newest transaction. Other suites commit to the same server, so what is compared with it is within two of them."""
        return TapPosition(self.gtid()).sequence

    def all_rows(self, table: str) -> list[dict[str, Any]]:
        with self.engine.connect() as connection:
            rows = connection.execute(sa.text(f"SELECT * FROM {self.database}.{table}")).mappings()
            return [dict(row) for row in rows]

    def rows(self, table: str, *, key: str = "id") -> dict[Any, dict[str, Any]]:
        return {row[key]: row for row in self.all_rows(table)}

    def take(self, *tables: str, until: Callable[[Tap], bool] | None = None, **options: Any) -> None:
        """A tap takes all that was changed by now; or until it is ended."""
        end = TapPosition(self.gtid())
        is_over = until or (lambda tap: tap.position.sequence >= end.sequence and is_committed(tap))
        deadline = time.monotonic() + scaled(30)
        with self.tap(*tables, **options) as tap:
            while not is_over(tap):
                assert time.monotonic() < deadline, (tap.position, self.gtid())
                tap.step()

    @contextmanager
    def tap(self, *tables: str, server_id: int = OWN_SERVER_ID, **options: Any) -> Iterator[Tap]:
        writer = self.log.writer(PRODUCER)
        stored = writer.position()
        start = TapState(TapPosition(self.start)) if stored is None else TapState.from_json(stored)
        address = ServerAddress(
            str(self.url.host), int(self.url.port or 0), str(self.url.username), str(self.url.password), server_id
        )
        stream = BinlogStream(
            address,
            start.position.gtid,
            lambda database, table: database == self.database and table in tables,
            self.charsets,
        )
        stream.open()
        try:
            yield Tap(
                stream,
                writer,
                [CaptureSpec(table, self.database, table, **options) for table in tables],
                start=start,
                versions=self.versions,
                charsets=self.charsets,
                new_encoder=self._encoder,
                observer=self,
                clock=lambda: datetime.now(UTC),
                monotonic=time.monotonic,
                pause=time.sleep,
            )
        finally:
            stream.close()

    def write(self, topic: str, *messages: bytes) -> None:
        """By somebody else."""
        self.log.writer("somebody else").commit([Outgoing(topic, b"", message) for message in messages], {})

    def messages(self, topic: str) -> list[bytes]:
        return [message.value or b"" for message in self.log.reader().read(topic, {})]

    def known(self, topic: str) -> KnownTable:
        """What the tap has kept of a table."""
        return TapState.from_json(self.log.writer(PRODUCER).position() or {}).known[topic]

    def replayed(self, topic: str, *, key: tuple[str, ...] = ("id",)) -> dict[RowKey, dict[str, Any]]:
        """The table that the log's events make, one after the other."""
        decoder, table = Decoder(topic, key, bytes, self.versions.of_id), dict[RowKey, dict[str, Any]]()
        for message in self.log.reader().read(topic, {}):
            event = decoder.decode(message.value or b"", (message.offset,)).event
            if event.operation is Operation.DELETE:
                table.pop(event.row_key, None)
            else:
                table[event.row_key] = dict(event.values)
        return table

    def _scalar(self, query: str) -> str:
        with self.engine.connect() as connection:
            return str(connection.exec_driver_sql(query).scalar())

    @staticmethod
    def _encoder(table: CapturedRows) -> Encoder:
        return Encoder(table.schema, table.record_key, "mysql:test", "dc1", lambda: datetime.now(UTC))


@contextmanager
def tapped_server(mariadb_url: str, database: str, folder: Path) -> Iterator[TappedServer]:
    url = sa.make_url(mariadb_url).set(drivername=DRIVERS["mariadb_url"])
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    config = ChangelogConfig(folder.as_uri(), 86_400.0, lambda: datetime.now(UTC))
    with engine.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {database}")
        connection.exec_driver_sql(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
        charsets = read_charsets(connection)
    server = TappedServer(engine, url, database, "", config.url, CHANGELOGS.get("segments")(config), charsets)
    server.start = server.gtid()
    try:
        yield server
    finally:
        server.execute(f"DROP DATABASE {database}")
        engine.dispose()
