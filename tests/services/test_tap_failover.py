"""The connection is led to a replica of its server: captures go on there by GTID, each change once; a server that lacks what was captured is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from ingestion.capture.binlog import stream as stream_module
from ingestion.capture.tap import tap as tap_module
from ingestion.captures.changelog import configured_changelog
from ingestion.captures.records import begin_load, topic_of
from ingestion.heatpipe.decoder import Decoder
from ingestion.models import Finding, TapServer
from ingestion.schemas import registry
from ingestion.schemas.captured_versions import subject_schema_of
from ingestion.tapping.server_tap import LeaseLost, ServerTap
from lakehub.accounts.models import AuditEntry
from lakehub.catalog.models import Connection, Dataset
from tests.polling import wait_until
from tests.services.captured_shop import CapturedShop, captured_shop
from tests.services.own_mariadb import OwnMariaDB, own_mariadb

pytestmark = pytest.mark.django_db(transaction=True)

DATABASE = "lakehub_moving"
SMALL_EVENTS = "--binlog-row-event-max-size=256"
"""So rows are cut into other events than at the primary."""


@dataclass
class Pair:
    """A primary and its replica, and the datasets that are captured from the one that `shop` names."""

    primary: OwnMariaDB
    replica: OwnMariaDB
    shop: CapturedShop
    start: Callable[..., OwnMariaDB]

    def wait_for_replica(self) -> None:
        end = self.primary.gtid()
        wait_until(lambda: self.replica.gtid() == end, otherwise=lambda: self.replica.gtid())

    def promote(self) -> None:
        self.replica.execute("STOP SLAVE", "RESET SLAVE ALL")

    def lead_to(self, server: OwnMariaDB, *only: Dataset) -> None:
        """The connections of all datasets, or of these."""
        connections = Connection.objects.filter(plugin="mysql")
        for connection in connections.filter(feeds__dataset__in=only) if only else connections:
            _, at, rest = connection.url.rpartition("@")
            connection.url = connection.url.replace(rest.partition("/")[0], server.address)
            connection.save()
        self.shop.url = f"{server.url}/{DATABASE}"

    def take(self, tap: ServerTap, server: OwnMariaDB) -> None:
        end = server.gtid()
        self.shop.step_until(tap, lambda: tap.position == end)

    def stored_rows(self, server: OwnMariaDB, table: str) -> dict[Any, Any]:
        return {(row[0],): dict(zip(("id", "n"), row, strict=True)) for row in server.execute(f"SELECT id, n FROM {DATABASE}.{table}")}


@pytest.fixture
def pair(mariadb_url: str, tmp_path: Path, settings: Any) -> Iterator[Pair]:
    """`mariadb_url`: where there is one, others can be started."""
    settings.LAKEHUB_CHANGELOG_URL = (tmp_path / "log").as_uri()
    with ExitStack() as stack:

        def start(name: str, number: int, *options: str) -> OwnMariaDB:
            return stack.enter_context(own_mariadb(tmp_path / name, number, *options))

        primary, replica = start("primary", 1), start("replica", 2, SMALL_EVENTS)
        follow(replica, primary)
        shop = stack.enter_context(captured_shop(primary.url, DATABASE, tmp_path))
        yield Pair(primary, replica, shop, start)
        if shop.source.engine.url.port == primary.port and primary._process.poll() is not None:
            primary.start()  # the database is dropped there


def follow(replica: OwnMariaDB, primary: OwnMariaDB, *, position: str = "") -> None:
    source = f"MASTER_HOST='127.0.0.1', MASTER_PORT={primary.port}, MASTER_USER='lakehub', MASTER_PASSWORD='lakehub'"
    replica.execute(
        f"SET GLOBAL gtid_slave_pos = '{position}'", f"CHANGE MASTER TO {source}, MASTER_USE_GTID=slave_pos", "START SLAVE"
    )


def use(*statements: str) -> tuple[str, ...]:
    return (f"USE {DATABASE}", *statements)


def rows_taken(tap: ServerTap) -> int:
    """Of the transaction that it is in."""
    return sum(tap._session.place["taken"].values()) if tap._session is not None else 0


def keys_of(dataset: Dataset) -> list[bytes]:
    """The reference keys of its events, as they came."""
    decoder = Decoder(topic_of(dataset), ("id",), bytes, lambda number: subject_schema_of(registry.find_by_id(number)))
    messages = configured_changelog().reader().read(topic_of(dataset), {})
    return [decoder.decode(each.value or b"", (each.offset,)).event.reference_key for each in messages]


def test_captures_go_on_at_a_promoted_replica_within_a_transaction_and_each_change_is_there_once(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = pair.shop
    trips, riders = shop.dataset("trips"), shop.dataset("riders")
    monkeypatch.setattr(tap_module, "MAX_PENDING", 100)
    monkeypatch.setattr(stream_module, "_POLLED_AT_ONCE", 1)
    first = shop.tap()
    shop.step_until(first, lambda: shop.is_captured(riders))
    shop.execute("INSERT INTO riders VALUES (1, 1)", "INSERT INTO trips VALUES (1, 0)")
    pair.take(first, pair.primary)
    both = ("INSERT INTO trips SELECT seq, 0 FROM seq_2_to_3000", "INSERT INTO riders SELECT seq, 0 FROM seq_2_to_900")
    shop.execute("START TRANSACTION", *both, "UPDATE trips SET n = 1 WHERE id > 2000", "COMMIT")
    shop.step_until(first, lambda: 3000 < rows_taken(first) < 4800)
    first._end_session()
    taken = (shop.messages(trips), shop.messages(riders))
    assert 0 < sum(taken) < 4900
    assert taken[1] > 0
    pair.wait_for_replica()
    pair.primary.kill()
    pair.promote()
    pair.replica.execute(*use("UPDATE trips SET n = 2 WHERE id <= 10", "DELETE FROM riders WHERE id = 1"))
    pair.lead_to(pair.replica)
    second = shop.tap("host:2:b")
    shop.step_until(second, lambda: second.position != "")
    pair.replica.execute(*use("INSERT INTO trips VALUES (5000, 7)", "UPDATE riders SET n = 3"))
    pair.take(second, pair.replica)
    assert shop.rows(trips) == pair.stored_rows(pair.replica, "trips")
    assert shop.rows(riders) == pair.stored_rows(pair.replica, "riders")
    assert (shop.messages(trips), shop.messages(riders)) == (3000 + 1000 + 10 + 1, 900 + 1 + 899)
    for dataset in (trips, riders):
        keys = keys_of(dataset)
        assert keys == sorted(set(keys))
        capture = shop.capture(dataset)
        assert (capture.captured_load, capture.captured_table) == (1, f"{shop.server}/{DATABASE}.{dataset.name}")
    assert [server.address for server in TapServer.objects.all()] == [shop.server] == [pair.replica.address]
    assert not Finding.objects.exists()
    line = AuditEntry.objects.get(action="move capture", subject="dataset:trips")
    assert (line.actor, line.detail["before"], line.detail["after"]) == ("tap", pair.primary.address, shop.server)
