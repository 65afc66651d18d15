"""A database of MariaDB with datasets of ours that are captured from it, and the taps that do so: in this process, step by step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from ingestion.capture.tap.position import TapPosition
from ingestion.captures.changelog import configured_changelog
from ingestion.captures.records import topic_of
from ingestion.captures.servers import captures_by_server, server_of
from ingestion.domain.merging.events import Operation, RowKey
from ingestion.heatpipe.decoder import Decoder
from ingestion.models import Capture, TapServer
from ingestion.schemas import registry
from ingestion.schemas.captured_versions import subject_schema_of
from ingestion.tapping import tap_leases
from ingestion.tapping.parts import TapParts
from ingestion.tapping.server_tap import ServerTap
from ingestion.tapping.session import open_session
from lakehub.catalog.models import Dataset
from tests import factories as make
from tests.polling import scaled
from tests.services.tapped_server import TappedServer, is_committed, tapped_server

KEY = "key of the tests"


@dataclass
class CapturedShop:
    """`source`: the database. `url`: of connections to it."""

    source: TappedServer
    url: str
    taps: list[ServerTap] = field(default_factory=list)

    @property
    def server(self) -> str:
        return server_of(self.url)

    @property
    def row(self) -> TapServer:
        return TapServer.objects.get(address=self.server)

    def execute(self, *statements: str) -> None:
        self.source.execute(*statements)

    def dataset(self, name: str, *, definition: str = "id int PRIMARY KEY, n int", url: str = "") -> Dataset:
        """With a table of its name, which is made where `definition` is not empty."""
        if definition:
            self.execute(f"CREATE TABLE {name} ({definition})")
        dataset = make.dataset(name, by_day=False)
        connection = make.connection(f"shop-{len(url)}", url or self.url, plugin="mysql")
        make.feed(dataset, connection=connection, object=name, cursor_column="")
        return dataset

    def capture(self, dataset: Dataset) -> Capture:
        return Capture.objects.get(feed__dataset=dataset)

    def is_captured(self, dataset: Dataset) -> bool:
        return any(capture.is_captured for capture in Capture.objects.filter(feed__dataset=dataset))

    def tap(self, holder: str = "host:1:a") -> ServerTap:
        """One that has claimed the server."""
        plan = captures_by_server()[self.server]
        tap_leases.free_servers([self.server])
        assert tap_leases.claim(self.server, holder)
        parts = TapParts(configured_changelog(), KEY, lambda: datetime.now(UTC), time.monotonic, time.sleep)
        self.taps.append(ServerTap(self.server, plan, holder, parts, open_session))
        return self.taps[-1]

    def follow_plan(self, tap: ServerTap) -> None:
        tap.plan(captures_by_server()[self.server])

    def step_until(self, tap: ServerTap, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + scaled(30)
        while not holds():
            assert time.monotonic() < deadline, (self.row.error, [*Capture.objects.values()])
            tap.step()

    def take(self, tap: ServerTap) -> None:
        """All that was changed by now."""
        self.take_to(tap, self.source.gtid())

    def take_to(self, tap: ServerTap, gtid: str) -> None:
        """Or further: other suites commit to the same server."""
        end = TapPosition(gtid).sequence

        def has_taken() -> bool:
            session: Any = tap._session
            return TapPosition(tap.position).sequence >= end and is_committed(session.tap)

        self.step_until(tap, has_taken)

    def rows(self, dataset: Dataset) -> dict[RowKey, dict[str, Any]]:
        """The table that the events of the dataset make, one after the other."""
        topic = topic_of(dataset)
        schema_of = cache(lambda number: subject_schema_of(registry.find_by_id(number)))
        decoder = Decoder(topic, ("id",), bytes, schema_of)
        table = dict[RowKey, dict[str, Any]]()
        for message in configured_changelog().reader().read(topic, {}):
            event = decoder.decode(message.value or b"", (message.offset,)).event
            if event.operation is Operation.DELETE:
                table.pop(event.row_key, None)
            else:
                table[event.row_key] = dict(event.values)
        return table

    def messages(self, dataset: Dataset) -> int:
        bounds = configured_changelog().reader().bounds(topic_of(dataset))
        return sum(bound.next for bound in bounds.values())


@contextmanager
def captured_shop(mariadb_url: str, database: str, folder: Path) -> Iterator[CapturedShop]:
    with tapped_server(mariadb_url, database, folder / "unused") as source:
        shop = CapturedShop(source, f"{mariadb_url}/{database}")
        try:
            yield shop
        finally:
            for tap in shop.taps:
                tap._end_session()
