"""The connection is led to a replica of its server: captures go on there by GTID, each change once; a server that lacks what was captured is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
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
from ingestion.tapping import session as session_module
from ingestion.tapping.server_tap import LeaseLost, ServerTap
from lakehub.accounts.models import AuditEntry
from lakehub.catalog.datasets.connection_change import change_connection
from lakehub.catalog.models import Connection, Dataset
from tests.polling import wait_until
from tests.services.captured_shop import CapturedShop, captured_shop
from tests.services.own_mariadb import OwnMariaDB, own_mariadb
from tests.services.test_tap_process import ROWS, counted, tap_process, wait_for

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
        """The connections of all datasets, or of these, as an operator does it."""
        connections = Connection.objects.filter(plugin="mysql")
        for connection in connections.filter(feeds__dataset__in=only) if only else connections:
            led_to = connection.url.rpartition("@")[2].partition("/")[0]
            url = connection.url.replace(led_to, server.address)
            change_connection(connection, url, actor="ann", now=datetime.now(UTC), by_operator=True)
        self.shop.url = f"{server.url}/{DATABASE}"

    def take(self, tap: ServerTap, server: OwnMariaDB) -> None:
        self.shop.take_to(tap, server.gtid())

    def stored_rows(self, server: OwnMariaDB, table: str) -> dict[Any, Any]:
        return {
            (row[0],): dict(zip(("id", "n"), row, strict=True))
            for row in server.execute(f"SELECT id, n FROM {DATABASE}.{table}")
        }


@pytest.fixture
def pair(mariadb_url: str, tmp_path: Path, settings: Any, request: pytest.FixtureRequest) -> Iterator[Pair]:
    """`mariadb_url`: where there is one, others can be started. By its parameter with another changelog."""
    settings.LAKEHUB_CHANGELOG_URL = (tmp_path / "log").as_uri()
    if getattr(request, "param", "") == "kafka":
        settings.LAKEHUB_CHANGELOG = "kafka"
        settings.LAKEHUB_CHANGELOG_URL = f"{request.getfixturevalue('kafka_url')}/{uuid4().hex}"
    with ExitStack() as stack:

        def start(name: str, number: int, *options: str) -> OwnMariaDB:
            return stack.enter_context(own_mariadb(tmp_path / name, number, *options))

        primary, replica = start("primary", 1), start("replica", 2, SMALL_EVENTS)
        follow(replica, primary)
        shop = stack.enter_context(captured_shop(primary.url, DATABASE, tmp_path))
        yield Pair(primary, replica, shop, start)
        if not primary.is_running:
            primary.start()  # the database is dropped there


def follow(replica: OwnMariaDB, primary: OwnMariaDB, *, position: str = "") -> None:
    source = f"MASTER_HOST='127.0.0.1', MASTER_PORT={primary.port}, MASTER_USER='lakehub', MASTER_PASSWORD='lakehub'"
    replica.execute(
        f"SET GLOBAL gtid_slave_pos = '{position}'",
        f"CHANGE MASTER TO {source}, MASTER_USE_GTID=slave_pos",
        "START SLAVE",
    )


def use(*statements: str) -> tuple[str, ...]:
    return (f"USE {DATABASE}", *statements)


def at_another_time(*statements: str) -> tuple[str, ...]:
    """A server may be set up anew within the second in which the former one has committed: the binlog tells no less."""
    return use("SET timestamp = UNIX_TIMESTAMP() - 60", *statements)


def rows_taken(tap: ServerTap) -> int:
    """Of the transaction that it is in."""
    return sum(tap._session.place["taken"].values()) if tap._session is not None else 0


def keys_of(dataset: Dataset) -> list[bytes]:
    """The reference keys of its events, as they came."""
    decoder = Decoder(topic_of(dataset), ("id",), bytes, lambda number: subject_schema_of(registry.find_by_id(number)))
    messages = configured_changelog().reader().read(topic_of(dataset), {})
    return [decoder.decode(each.value or b"", (each.offset,)).event.reference_key for each in messages]


@pytest.mark.parametrize("pair", ["segments", "kafka"], indirect=True)
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
    second._tell()
    assert shop.rows(trips) == pair.stored_rows(pair.replica, "trips")
    assert shop.rows(riders) == pair.stored_rows(pair.replica, "riders")
    for dataset, changes in ((trips, 3000 + 1000 + 10 + 1), (riders, 900 + 1 + 899)):
        keys = keys_of(dataset)
        assert keys == sorted(set(keys))
        assert len(keys) == counted(dataset) == changes
        capture = shop.capture(dataset)
        assert (capture.captured_load, capture.captured_table) == (1, f"{shop.server}/{DATABASE}.{dataset.name}")
    assert [server.address for server in TapServer.objects.all()] == [shop.server] == [pair.replica.address]
    assert not Finding.objects.exists()
    line = AuditEntry.objects.get(action="move capture", subject="dataset:trips")
    assert (line.actor, line.detail["before"], line.detail["after"]) == ("tap", pair.primary.address, shop.server)


def test_a_replica_that_is_behind_is_waited_for_and_nothing_is_lost(pair: Pair) -> None:
    shop = pair.shop
    trips = shop.dataset("trips")
    first = shop.tap()
    shop.step_until(first, lambda: shop.is_captured(trips))
    pair.wait_for_replica()
    pair.replica.execute("STOP SLAVE SQL_THREAD")
    shop.execute("INSERT INTO trips VALUES (1, 1)", "INSERT INTO trips VALUES (2, 2)")
    pair.take(first, pair.primary)
    gtid = first.position
    first.close()
    pair.lead_to(pair.replica)
    second = shop.tap("host:2:b")
    assert second.step() > 0
    assert (
        f"does not have the transaction {gtid} yet, which was captured last from {pair.primary.address}"
        in shop.row.error
    )
    assert "load the datasets of the connection again" in shop.row.error
    assert (shop.is_captured(trips), Finding.objects.exists()) == (True, False)
    assert shop.capture(trips).captured_table.startswith(pair.primary.address)
    pair.replica.execute("START SLAVE SQL_THREAD")
    shop.step_until(second, lambda: second.position != "")
    shop.execute("INSERT INTO trips VALUES (3, 3)")  # at the primary, which it still follows
    pair.wait_for_replica()
    pair.take(second, pair.replica)
    assert shop.rows(trips) == pair.stored_rows(pair.replica, "trips")
    assert (shop.messages(trips), shop.row.error) == (3, "")


def test_who_waits_for_a_replica_keeps_no_other_dataset_of_it_waiting(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = pair.shop
    monkeypatch.setattr(session_module, "LOOK_FOR_MOVES_S", 1.0)
    trips, riders = shop.dataset("trips"), shop.dataset("riders", url=f"{shop.url}?charset=utf8mb4")
    former = shop.url
    pair.wait_for_replica()
    pair.lead_to(pair.replica, riders)
    there = shop.tap("host:2:b")
    shop.step_until(there, lambda: shop.is_captured(riders))
    shop.url = former
    here = shop.tap()
    shop.step_until(here, lambda: shop.is_captured(trips))
    pair.replica.execute("STOP SLAVE SQL_THREAD")
    shop.execute("INSERT INTO trips VALUES (1, 1)", "INSERT INTO riders VALUES (1, 1)")
    pair.take(here, pair.primary)
    here.close()
    pair.lead_to(pair.replica, trips)
    shop.follow_plan(there)
    there._told_at = float("-inf")
    shop.step_until(there, lambda: "does not have the transaction" in str(shop.row.warnings))
    assert (shop.row.error, shop.row.captured) == ("", 1)
    pair.replica.execute("START SLAVE SQL_THREAD")
    shop.step_until(there, lambda: shop.messages(riders) == 1)
    shop.step_until(there, lambda: shop.capture(trips).captured_table.startswith(pair.replica.address))
    shop.execute("UPDATE trips SET n = 2")
    shop.step_until(there, lambda: shop.messages(trips) == 2)
    assert shop.rows(trips) == pair.stored_rows(pair.replica, "trips")
    assert shop.messages(riders) == 1


def diverged(pair: Pair) -> OwnMariaDB:
    """Promoted before it had got what was captured last, and written to since."""
    pair.replica.execute(*use(*[f"INSERT INTO riders VALUES ({number}, 0)" for number in range(100, 110)]))
    return pair.replica


def with_a_detour(pair: Pair) -> OwnMariaDB:
    """The same, and then it has got later transactions of the former primary: as servers do that replicate from each other."""
    diverged(pair)
    ahead = int(pair.replica.gtid().rpartition("-")[2]) + 1
    pair.replica.execute(f"SET gtid_seq_no = {ahead}", "SET server_id = 1", *use("INSERT INTO riders VALUES (200, 0)"))
    return pair.replica


def set_up_anew(pair: Pair) -> OwnMariaDB:
    """With the same `server_id`, as servers have that nobody has given one; its transactions have the same names, and are others."""
    fresh = pair.start("fresh", 1)
    tables = [f"CREATE TABLE {name} (id int PRIMARY KEY, n int)" for name in ("trips", "riders")]
    fresh.execute(f"CREATE DATABASE {DATABASE}", *at_another_time(*tables))
    fresh.execute(*at_another_time(*[f"INSERT INTO riders VALUES ({number}, 0)" for number in range(50)]))
    return fresh


def begun_later(pair: Pair) -> OwnMariaDB:
    """A replica from a backup: its binlog begins with what came after that."""
    late = pair.start("late", 3)
    pair.shop.execute("INSERT INTO riders VALUES (1, 1)", "INSERT INTO trips VALUES (90, 0)")
    tables = [f"CREATE TABLE {name} (id int PRIMARY KEY, n int)" for name in ("trips", "riders")]
    late.execute("SET sql_log_bin = 0", f"CREATE DATABASE {DATABASE}", *use(*tables))
    follow(late, pair.primary, position=pair.primary.gtid())
    pair.shop.execute("INSERT INTO riders VALUES (2, 1)")
    wait_until(lambda: late.gtid() == pair.primary.gtid())
    return late


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (diverged, "does not have the transaction {gtid}.* went its own way before it had got it"),
        (with_a_detour, "does not have the transaction {gtid}.*It has 0-[12]-.* in that place"),
        (set_up_anew, "does not have the transaction {gtid}.*its {gtid} was committed at .*, and not at "),
        (begun_later, "does not have the transaction {gtid}.*It has 0-1-.* in that place"),
    ],
)
def test_a_server_that_lacks_what_was_captured_stops_the_captures_until_they_are_loaded_again(
    pair: Pair, other: Callable[[Pair], OwnMariaDB], words: str
) -> None:
    shop = pair.shop
    trips, riders = shop.dataset("trips"), shop.dataset("riders")
    first = shop.tap()
    shop.step_until(first, lambda: shop.is_captured(riders))
    pair.wait_for_replica()
    pair.promote()
    shop.execute("INSERT INTO trips VALUES (1, 1)", "INSERT INTO trips VALUES (2, 1)")
    pair.take(first, pair.primary)
    gtid = first.position
    first.close()
    server = other(pair)
    pair.lead_to(server)
    second = shop.tap("host:2:b")
    shop.step_until(second, lambda: shop.capture(trips).is_stopped)
    assert re.search(words.format(gtid=gtid), shop.capture(trips).stopped_why)
    assert "Load the dataset again" in shop.capture(trips).stopped_why
    assert Finding.objects.filter(kind="capture_stopped", cleared_at=None).count() == 2
    server.execute(*use("INSERT INTO trips VALUES (3, 1)"))
    assert shop.messages(trips) == 2
    begin_load(shop.capture(trips), uuid4())
    shop.follow_plan(second)
    shop.step_until(second, lambda: shop.is_captured(trips))
    server.execute(*use("INSERT INTO trips VALUES (4, 1)"))
    pair.take(second, server)
    assert shop.messages(trips) == 3


def test_connections_that_are_led_there_one_after_the_other_lose_nothing(pair: Pair) -> None:
    """The one that has stayed is captured from the former server meanwhile."""
    shop = pair.shop
    trips, riders = shop.dataset("trips"), shop.dataset("riders", url=f"{shop.url}?charset=utf8mb4")
    first = shop.tap()
    shop.step_until(first, lambda: shop.is_captured(riders))
    shop.execute("INSERT INTO trips VALUES (1, 0)", "INSERT INTO riders VALUES (1, 0)")
    pair.take(first, pair.primary)
    former = shop.url
    pair.lead_to(pair.replica, trips)
    shop.url = former
    shop.follow_plan(first)
    shop.execute("INSERT INTO trips VALUES (2, 0)", "INSERT INTO riders VALUES (2, 0)")
    pair.take(first, pair.primary)  # trips waits where it was
    assert (shop.messages(trips), shop.messages(riders)) == (1, 2)
    pair.wait_for_replica()
    pair.lead_to(pair.replica, trips)
    second = shop.tap("host:2:b")
    pair.take(second, pair.replica)
    assert (shop.messages(trips), shop.messages(riders)) == (2, 2)
    with pytest.raises(LeaseLost):
        shop.execute("INSERT INTO trips VALUES (3, 0)", "INSERT INTO riders VALUES (3, 0)")
        pair.take(first, pair.primary)  # its place was taken from it
    first.close()
    pair.wait_for_replica()
    pair.take(second, pair.replica)
    pair.lead_to(pair.replica)
    shop.follow_plan(second)
    shop.step_until(second, lambda: shop.capture(riders).captured_table.startswith(shop.server))
    pair.replica.execute(*use("INSERT INTO trips VALUES (4, 0)", "INSERT INTO riders VALUES (4, 0)"))
    pair.take(second, pair.replica)
    for dataset in (trips, riders):
        assert shop.rows(dataset) == pair.stored_rows(pair.replica, dataset.name)
        assert shop.messages(dataset) == 4
        keys = keys_of(dataset)
        assert keys == sorted(set(keys))
    assert [server.address for server in TapServer.objects.all()] == [pair.replica.address]


def test_a_tap_that_does_not_know_of_the_move_takes_nothing_back(pair: Pair) -> None:
    shop = pair.shop
    trips = shop.dataset("trips")
    first = shop.tap()
    shop.step_until(first, lambda: shop.is_captured(trips))
    pair.wait_for_replica()
    pair.lead_to(pair.replica)
    second = shop.tap("host:2:b")
    shop.step_until(second, lambda: second.position != "")
    TapServer.objects.create(address=pair.primary.address, leased_by="host:1:a")
    first._end_session()  # it opens another, with what it knows
    first._told_at = float("inf")
    assert first.step() > 0
    assert "was just changed" in TapServer.objects.get(address=pair.primary.address).error
    pair.replica.execute("STOP SLAVE", *use("INSERT INTO trips VALUES (1, 1)"))
    pair.take(second, pair.replica)
    assert shop.messages(trips) == 1
    assert shop.capture(trips).captured_table.startswith(pair.replica.address)
    assert AuditEntry.objects.filter(action="move capture").count() == 1


def test_the_process_takes_the_change_of_the_connection_up_by_itself(pair: Pair, settings: Any, tmp_path: Path) -> None:
    shop, log = pair.shop, tmp_path / "log.txt"
    trips = shop.dataset("trips")
    with tap_process(settings, log):
        wait_for(lambda: shop.is_captured(trips), log)
        shop.execute(f"INSERT INTO trips SELECT seq, 0 FROM seq_1_to_{ROWS}")
        pair.wait_for_replica()
        pair.primary.kill()
        pair.promote()
        pair.replica.execute(*use("UPDATE trips SET n = 1 WHERE id <= 100"))
        pair.lead_to(pair.replica)
        wait_for(lambda: shop.capture(trips).captured_table.startswith(shop.server), log)
        pair.replica.execute(*use("DELETE FROM trips WHERE id > 20000"))
        wait_for(lambda: shop.messages(trips) == ROWS + 100 + (ROWS - 20_000), log)
        wait_for(lambda: shop.row.captured == 1, log)
    assert shop.rows(trips) == pair.stored_rows(pair.replica, "trips")
    assert [server.address for server in TapServer.objects.all()] == [shop.server]
    assert "Traceback" not in log.read_text()


def test_another_server_behind_the_same_address_is_known_as_such(pair: Pair) -> None:
    """A name, or an address that moves, of which the connection knows nothing."""
    shop = pair.shop
    trips, riders = shop.dataset("trips"), shop.dataset("riders")
    first = shop.tap()
    shop.step_until(first, lambda: shop.is_captured(riders))
    shop.execute("INSERT INTO trips VALUES (1, 1)")
    shop.execute("INSERT INTO trips VALUES (2, 1)")
    pair.take(first, pair.primary)
    first._end_session()
    pair.primary.stop()
    other = pair.start("other", 1)
    for statement in ("CREATE TABLE trips (id int PRIMARY KEY, n int)", "INSERT INTO trips VALUES (9, 9)"):
        other.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}", *at_another_time(statement))
    other.execute(*at_another_time(*[f"INSERT INTO trips VALUES ({number}, 0)" for number in range(10, 20)]))
    other.stop()
    other.address = pair.primary.address
    other.start()
    shop.step_until(first, lambda: shop.capture(trips).is_stopped)
    assert "was committed at" in shop.capture(trips).stopped_why
    assert shop.messages(trips) == 2
    other.stop()
