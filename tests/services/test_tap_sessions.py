"""A server of MariaDB that is tapped for our datasets: captures begin, stop and go on, and nothing is lost on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from ingestion.capture.tap.position import TapPosition
from ingestion.captures import states
from ingestion.captures.records import begin_load, topic_of
from ingestion.models import Finding, SchemaVersion, TapServer
from ingestion.schemas import registry
from ingestion.tapping import tap_leases
from ingestion.tapping.server_tap import LeaseLost
from lakehub.catalog.metadata import ColumnType
from lakehub.catalog.metadata.roles import role_warning
from lakehub.catalog.models import Connection
from lakehub.catalog.storages import STORAGES
from tests import factories as make
from tests.polling import wait_until
from tests.services.captured_shop import CapturedShop, captured_shop

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shop(mariadb_url: str, tmp_path: Path, settings: Any) -> Iterator[CapturedShop]:
    settings.LAKEHUB_CHANGELOG_URL = (tmp_path / "log").as_uri()
    with captured_shop(mariadb_url, "lakehub_captured", tmp_path) as captured:
        yield captured


@pytest.fixture
def changed_shop(changed_mariadb_url: str, tmp_path: Path, settings: Any) -> Iterator[CapturedShop]:
    """At a server whose files and settings may be changed."""
    settings.LAKEHUB_CHANGELOG_URL = (tmp_path / "log").as_uri()
    with captured_shop(changed_mariadb_url, "lakehub_captured", tmp_path) as captured:
        yield captured


def test_what_changes_after_a_capture_has_begun_is_in_the_changelog(shop: CapturedShop) -> None:
    trips, riders = shop.dataset("trips"), shop.dataset("riders")
    tap = shop.tap()
    tap.step()
    assert shop.capture(trips).is_captured
    assert shop.capture(trips).captured_table == f"{shop.server}/lakehub_captured.trips"
    assert SchemaVersion.objects.filter(registered_by="tap", subject__team=trips.team).count() == 2
    shop.execute("INSERT INTO trips VALUES (1, 1)", "INSERT INTO riders VALUES (7, 0)", "UPDATE trips SET n = 2")
    shop.take(tap)
    assert shop.rows(trips) == {(1,): {"id": 1, "n": 2}}
    assert shop.rows(riders) == {(7,): {"id": 7, "n": 0}}
    assert Finding.objects.count() == 0


def test_a_capture_begins_only_once_the_changelog_has_the_place(
    shop: CapturedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips = shop.dataset("trips")
    tap = shop.tap()
    with monkeypatch.context() as broken:
        broken.setattr("ingestion.changelog.segments.log.SegmentsWriter.commit", fails)
        tap.step()
    assert not shop.capture(trips).is_captured
    assert "the disk is full" in shop.row.error


def fails(*_: Any) -> None:
    raise OSError("the disk is full")


def test_a_dataset_that_comes_while_others_are_captured_costs_them_no_change(shop: CapturedShop) -> None:
    trips = shop.dataset("trips")
    tap = shop.tap()
    tap.step()
    shop.execute("INSERT INTO trips SELECT seq, 0 FROM seq_1_to_100")
    tap.step()
    riders = shop.dataset("riders")
    shop.follow_plan(tap)
    shop.step_until(tap, lambda: shop.capture(riders).is_captured)
    shop.execute("INSERT INTO riders VALUES (1, 0)", "INSERT INTO trips VALUES (101, 0)")
    shop.take(tap)
    assert shop.rows(trips).keys() == {(number,) for number in range(1, 102)}
    assert (shop.messages(trips), shop.messages(riders)) == (101, 1)


def test_a_session_that_begins_again_begins_where_the_last_was(shop: CapturedShop) -> None:
    """Also where what it knew of its captures is older than that they are captured."""
    trips = shop.dataset("trips")
    tap = shop.tap()
    tap.step()
    tap._end_session()
    shop.execute("INSERT INTO trips VALUES (1, 0)")
    shop.take(tap)
    assert shop.messages(trips) == 1


def test_a_table_that_is_truncated_stops_alone_and_begins_again_with_the_next_load(shop: CapturedShop) -> None:
    trips, riders = shop.dataset("trips"), shop.dataset("riders")
    tap = shop.tap()
    tap.step()
    shop.execute("TRUNCATE trips", "INSERT INTO trips VALUES (1, 0)", "INSERT INTO riders VALUES (1, 0)")
    shop.take(tap)
    assert (shop.messages(trips), shop.messages(riders)) == (0, 1)
    finding = Finding.objects.get(kind="capture_stopped", cleared_at=None)
    assert finding.copy.dataset == trips
    assert "was truncated" in finding.detail["message"]
    assert "Load the dataset again" in finding.detail["message"]
    assert (shop.capture(trips).is_stopped, shop.capture(riders).is_captured) == (True, True)
    begin_load(shop.capture(trips), uuid4())
    shop.follow_plan(tap)
    shop.step_until(tap, lambda: shop.capture(trips).is_captured)
    shop.execute("INSERT INTO trips VALUES (2, 0)")
    shop.take(tap)
    assert shop.rows(trips) == {(2,): {"id": 2, "n": 0}}
    assert Finding.objects.filter(cleared_at=None).exists()  # the copy has what the table has not
    states.note_loaded(finding.copy, 2, now=datetime.now(UTC))
    assert not Finding.objects.filter(cleared_at=None).exists()


def test_an_alter_of_a_table_without_writes_makes_a_version(shop: CapturedShop) -> None:
    shop.dataset("trips")
    tap = shop.tap()
    tap.step()
    shop.execute("ALTER TABLE trips ADD COLUMN city varchar(20)")
    shop.step_until(tap, lambda: SchemaVersion.objects.count() == 2)
    assert '"city"' in SchemaVersion.objects.get(version=2).text


def test_a_capture_begins_where_its_server_is_however_far_behind_its_tap_is(shop: CapturedShop) -> None:
    """What came before is the load's: rows of a table that was altered since, and its rows that were removed, are no reason to stop."""
    trips = shop.dataset("trips")
    tap = shop.tap()
    tap.step()
    tap._end_session()
    shop.execute("CREATE TABLE riders (id int, n int)", "INSERT INTO riders VALUES (1, 0)", "TRUNCATE riders")
    shop.execute("INSERT INTO riders VALUES (2, 0)", "ALTER TABLE riders MODIFY id bigint PRIMARY KEY")
    shop.execute("INSERT INTO riders VALUES (3, 0)", "INSERT INTO trips VALUES (1, 0)")
    riders = shop.dataset("riders", definition="")
    riders.record_key = ["id"]
    riders.save()
    begun = shop.source.sequence()
    shop.follow_plan(tap)
    shop.take(tap)
    assert (shop.messages(trips), shop.messages(riders)) == (1, 0)
    assert shop.is_captured(riders)
    assert begun <= TapPosition(shop.capture(riders).captured_from).sequence <= shop.source.sequence()
    tap._end_session()
    shop.execute("INSERT INTO riders VALUES (4, 0)", "INSERT INTO trips VALUES (2, 0)")
    shop.take(tap)
    assert (shop.messages(trips), shop.messages(riders)) == (2, 1)


@pytest.mark.parametrize("is_opened_again", [False, True])
def test_another_key_is_noticed_where_no_row_was_seen_since_the_load_began(
    shop: CapturedShop, is_opened_again: bool
) -> None:
    """What the tap saw of the table when it began is what the load reads."""
    trips = shop.dataset("trips", definition="id varchar(20) PRIMARY KEY, n int NOT NULL")
    shop.execute("INSERT INTO trips VALUES (1, 1)")
    trips.record_key = ["id"]
    trips.save()
    tap = shop.tap()
    tap.step()
    if is_opened_again:
        tap._end_session()
        tap.step()
    shop.execute("ALTER TABLE trips DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)", "INSERT INTO trips VALUES (1, 2)")
    shop.step_until(tap, lambda: shop.capture(trips).is_stopped)
    assert "several rows may have one record key, `id`" in shop.capture(trips).stopped_why


@pytest.mark.parametrize(
    ("definition", "more", "words"),
    [
        ("id int PRIMARY KEY, n int, FOREIGN KEY (n) REFERENCES p (id) ON DELETE SET NULL", "", "ON DELETE SET NULL"),
        ("id int PRIMARY KEY", "ALTER TABLE t ADD SYSTEM VERSIONING", "WITH SYSTEM VERSIONING"),
        ("id int PRIMARY KEY", "ALTER TABLE t ENGINE=Aria", "the engine Aria"),
        ("id int PRIMARY KEY", "ALTER TABLE t ENGINE=MEMORY", "the engine MEMORY"),
        ("id int", "", "no primary key"),
        ("id int PRIMARY KEY", "RENAME TABLE t TO u", "no table `lakehub_captured.t`"),
    ],
)
def test_a_table_that_cannot_be_captured_stops_alone_before_it_begins(
    shop: CapturedShop, definition: str, more: str, words: str
) -> None:
    """Asked with the rights of reading only, which hide the foreign keys of information_schema."""
    reader = a_reader(shop)
    shop.execute("CREATE TABLE p (id int PRIMARY KEY)")
    unfit = shop.dataset("t", definition=definition, url=reader)
    plain = shop.dataset("trips", url=reader)
    if more:
        shop.execute(more)
    unfit.record_key = ["id"] if "primary" not in words else []
    unfit.save()
    shop.tap().step()
    assert shop.capture(plain).is_captured
    assert shop.capture(unfit).is_stopped
    assert not shop.capture(unfit).is_captured
    assert words in shop.capture(unfit).stopped_why
    assert Finding.objects.get(kind="capture_stopped").copy.dataset == unfit


def a_reader(shop: CapturedShop) -> str:
    """The URL of an account that has what the tap needs, and no more."""
    account = "'lakehub_tap'@'127.0.0.1'"
    grants = "SELECT, REPLICATION SLAVE, BINLOG MONITOR"
    shop.execute(f"CREATE OR REPLACE USER {account} IDENTIFIED BY 's3cret'", f"GRANT {grants} ON *.* TO {account}")
    url = sa.make_url(shop.url).set(username="lakehub_tap", password="s3cret")
    return url.render_as_string(hide_password=False)


def test_a_foreign_key_that_comes_later_stops_the_table(shop: CapturedShop) -> None:
    shop.execute("CREATE TABLE p (id int PRIMARY KEY)")
    trips = shop.dataset("trips")
    tap = shop.tap()
    tap.step()
    shop.execute("ALTER TABLE trips ADD FOREIGN KEY (n) REFERENCES p (id) ON DELETE CASCADE")
    shop.step_until(tap, lambda: shop.capture(trips).is_stopped)
    assert "ON DELETE CASCADE" in shop.capture(trips).stopped_why


def test_a_foreign_key_is_seen_however_the_server_writes_definitions(changed_shop: CapturedShop) -> None:
    shop = changed_shop
    before = shop.source.select("SELECT @@GLOBAL.sql_mode")[0][0]
    shop.execute("CREATE TABLE p (id int PRIMARY KEY)")
    definition = "id int PRIMARY KEY, n int, FOREIGN KEY (n) REFERENCES p (id) ON UPDATE CASCADE"
    trips = shop.dataset("trips", definition=definition)
    shop.execute("SET GLOBAL sql_mode = 'ANSI', GLOBAL sql_quote_show_create = 0")
    try:
        shop.tap().step()
    finally:
        shop.execute(f"SET GLOBAL sql_mode = '{before}', GLOBAL sql_quote_show_create = 1")
    assert "ON UPDATE CASCADE" in shop.capture(trips).stopped_why


def test_of_two_datasets_of_a_table_the_one_that_is_stopped_stays_so(shop: CapturedShop) -> None:
    trips, same = shop.dataset("trips"), shop.dataset("same", definition="")
    same.feed.object = "trips"
    same.feed.save()
    tap = shop.tap()
    tap.step()
    assert shop.is_captured(same)
    states.note_stopped(shop.capture(same).topic, 1, "Load it again.")
    tap._end_session()
    shop.execute("INSERT INTO trips VALUES (1, 0)")
    shop.take(tap)
    assert (shop.messages(trips), shop.messages(same)) == (1, 0)


def test_a_server_that_lacks_a_right_is_told_and_tapped_once_it_is_granted(shop: CapturedShop) -> None:
    reader = a_reader(shop)
    shop.execute("REVOKE REPLICATION SLAVE ON *.* FROM 'lakehub_tap'@'127.0.0.1'")
    trips = shop.dataset("trips", url=reader)
    tap = shop.tap()
    assert tap.step() > 0
    assert "GRANT REPLICATION SLAVE ON *.*" in shop.row.error
    assert "GRANT REPLICATION SLAVE" in Finding.objects.get(cleared_at=None).detail["message"]
    assert not shop.capture(trips).is_captured
    shop.execute("GRANT REPLICATION SLAVE ON *.* TO 'lakehub_tap'@'127.0.0.1'")
    shop.step_until(tap, lambda: shop.row.error == "" and shop.capture(trips).is_captured)
    assert not Finding.objects.filter(cleared_at=None).exists()


def test_a_password_that_is_wrong_is_told_and_in_no_word_of_it(
    shop: CapturedShop, caplog: pytest.LogCaptureFixture
) -> None:
    a_reader(shop)
    wrong = shop.url.replace("lakehub:lakehub@", "lakehub_tap:hunter2@")
    shop.dataset("trips", url=wrong)
    shop.tap().step()
    assert "Access denied" in shop.row.error
    assert "hunter2" not in f"{shop.row.error} {caplog.text}"


def test_an_account_that_does_not_get_through_keeps_no_dataset_of_another_waiting(
    shop: CapturedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = a_reader(shop)
    riders, trips = shop.dataset("riders", url=reader), shop.dataset("trips")
    tap = shop.tap()
    tap.step()
    assert shop.is_captured(riders)
    shop.execute("ALTER USER 'lakehub_tap'@'127.0.0.1' IDENTIFIED BY 'rotated'")
    planes = make.dataset("planes", by_day=False)
    make.feed(planes, connection=Connection.objects.get(name=f"shop-{len(reader)}"), object="planes", cursor_column="")
    shop.execute("CREATE TABLE planes (id int PRIMARY KEY)")
    shop.follow_plan(tap)
    shop.execute(
        "INSERT INTO riders VALUES (1, 0)",
        "ALTER TABLE riders ADD c int",
        "INSERT INTO riders VALUES (3, 0, 0)",
        "INSERT INTO trips VALUES (2, 0)",
    )
    shop.take(tap)
    assert (shop.rows(riders).keys(), shop.rows(trips).keys()) == ({(1,), (3,)}, {(2,)})
    tap._tell()
    assert "cannot connect to this server with the account of one connection" in " ".join(shop.row.warnings)
    assert "s3cret" not in str(shop.row.warnings)
    assert not shop.is_captured(planes)
    shop.execute("ALTER USER 'lakehub_tap'@'127.0.0.1' IDENTIFIED BY 's3cret'")
    monkeypatch.setattr("ingestion.tapping.session.LISTEN_S", 0.0)
    shop.step_until(tap, lambda: shop.is_captured(planes) and shop.row.warnings == [])


def test_the_warning_of_an_account_ends_once_it_gets_through(
    shop: CapturedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    riders = shop.dataset("riders", url=a_reader(shop))
    shop.dataset("trips")
    tap = shop.tap()
    tap.step()
    assert shop.is_captured(riders)
    shop.execute("ALTER USER 'lakehub_tap'@'127.0.0.1' IDENTIFIED BY 'rotated'")
    tap._end_session()
    monkeypatch.setattr("ingestion.tapping.session.LISTEN_S", 0.0)

    def is_warned() -> bool:
        tap._told_at = float("-inf")
        return shop.row.warnings != []

    shop.step_until(tap, is_warned)
    shop.execute("ALTER USER 'lakehub_tap'@'127.0.0.1' IDENTIFIED BY 's3cret'")
    shop.step_until(tap, lambda: not is_warned())


def test_a_purge_of_what_was_not_read_stops_the_datasets_of_the_server_and_no_later_one(
    changed_shop: CapturedShop,
) -> None:
    shop = changed_shop
    trips = shop.dataset("trips")
    tap = shop.tap()
    tap.step()
    tap._end_session()
    shop.execute("INSERT INTO trips VALUES (1, 0)")
    purge(shop)
    riders = shop.dataset("riders")
    shop.follow_plan(tap)
    shop.step_until(tap, lambda: shop.capture(trips).is_stopped)
    assert "removed changes from its binlog before they were captured" in shop.capture(trips).stopped_why
    assert shop.capture(riders).is_captured
    shop.execute("INSERT INTO riders VALUES (1, 0)")
    shop.take(tap)
    assert shop.messages(riders) == 1


def purge(shop: CapturedShop) -> None:
    """All files but the newest; a server keeps what a replica may be reading, also one that has just gone."""
    shop.execute("FLUSH BINARY LOGS")

    def is_purged() -> bool:
        for replica in shop.source.select(
            "SELECT id FROM information_schema.processlist WHERE command = 'Binlog Dump'"
        ):
            with suppress(sa.exc.SQLAlchemyError):
                shop.execute(f"KILL {replica[0]}")
        files = shop.source.select("SHOW BINARY LOGS")
        shop.execute(f"PURGE BINARY LOGS TO '{files[-1][0]}'")
        return len(files) == 1

    wait_until(is_purged)


def test_who_is_behind_is_warned_before_the_server_removes_what_was_not_read(changed_shop: CapturedShop) -> None:
    shop = changed_shop
    shop.dataset("trips")
    tap = shop.tap()
    tap.step()
    tap._end_session()
    purge(shop)
    an_hour_ago = (
        "SET timestamp = UNIX_TIMESTAMP() - 3600"  # who takes what is recent, and sees nothing come, is not behind
    )
    shop.execute(an_hour_ago, "INSERT INTO trips SELECT seq, 0 FROM seq_1_to_50000", "COMMIT", "FLUSH BINARY LOGS")
    shop.step_until(tap, lambda: "oldest file of the binlog" in str(shop.row.warnings))
    shop.execute("INSERT INTO trips VALUES (0, 0)")
    shop.take(tap)
    tap._told_at = float("-inf")
    tap.step()
    assert "oldest file" not in str(shop.row.warnings)


def test_a_connection_that_leads_elsewhere_stops_what_was_captured(shop: CapturedShop) -> None:
    trips = shop.dataset("trips")
    tap = shop.tap()
    tap.step()
    shop.execute(
        "CREATE DATABASE IF NOT EXISTS lakehub_elsewhere",
        "CREATE OR REPLACE TABLE lakehub_elsewhere.trips (id int PRIMARY KEY)",
    )
    for connection in Connection.objects.filter(plugin="mysql"):
        connection.url = shop.url.replace("lakehub_captured", "lakehub_elsewhere")
        connection.save()
    shop.follow_plan(tap)
    shop.step_until(tap, lambda: shop.capture(trips).is_stopped)
    shop.execute("DROP DATABASE lakehub_elsewhere")
    assert "its feed reads" in shop.capture(trips).stopped_why
    assert "lakehub_elsewhere.trips now" in shop.capture(trips).stopped_why


def test_a_dataset_that_was_off_boarded_and_restored_is_not_captured_until_it_is_loaded_again(
    shop: CapturedShop,
) -> None:
    trips = shop.dataset("trips")
    shop.dataset("riders")
    tap = shop.tap()
    tap.step()
    trips.offboarded_at = make.NOW
    trips.save()
    assert states.stop_left() == 1
    shop.follow_plan(tap)
    shop.execute("INSERT INTO trips VALUES (1, 0)")
    shop.take(tap)
    trips.offboarded_at = None
    trips.save()
    shop.follow_plan(tap)
    shop.execute("INSERT INTO trips VALUES (2, 0)")
    shop.take(tap)
    assert shop.messages(trips) == 0
    assert "not captured for a while" in Finding.objects.get(cleared_at=None).detail["message"]


def test_a_changelog_that_is_empty_stops_what_was_captured(shop: CapturedShop, settings: Any, tmp_path: Path) -> None:
    trips = shop.dataset("trips")
    first = shop.tap()
    first.step()
    first.close()
    settings.LAKEHUB_CHANGELOG_URL = (tmp_path / "another").as_uri()
    shop.tap().step()
    assert "has no place of the tap" in shop.capture(trips).stopped_why


def test_who_was_succeeded_writes_nothing_more(shop: CapturedShop) -> None:
    trips = shop.dataset("trips")
    first = shop.tap()
    first.step()
    TapServer.objects.update(leased_until=make.NOW)
    second = shop.tap("host:2:b")
    second.step()
    shop.execute("INSERT INTO trips VALUES (1, 0)")
    with pytest.raises(LeaseLost):
        shop.step_until(first, lambda: False)
    shop.take(second)
    assert shop.messages(trips) == 1
    assert shop.row.leased_by == "host:2:b"
    first.close()
    assert shop.row.leased_by == "host:2:b"


def test_a_server_that_is_told_of_has_what_people_need_to_know(changed_shop: CapturedShop) -> None:
    shop = changed_shop
    shop.dataset("trips")
    tap = shop.tap()
    tap.step()
    shop.execute("INSERT INTO trips VALUES (1, 0)")
    written = shop.source.sequence()
    (file, offset, *_) = shop.source.select("SHOW MASTER STATUS")[0]
    shop.take(tap)
    TapServer.objects.update(seen_at=None)
    tap._told_at = float("-inf")
    tap.step()
    row = shop.row
    (_, offset_now, *_) = shop.source.select("SHOW MASTER STATUS")[0]
    assert written <= TapPosition(row.position).sequence <= shop.source.sequence()
    assert offset <= row.place["offset"] <= offset_now
    assert row.place | {"offset": 0} == {"file": file, "offset": 0, "begun": "", "taken": {}}
    assert (row.error, row.captured) == ("", 1)
    assert None not in (row.seen_at, row.event_at, row.caught_up_at)
    assert tap_leases.free_servers([shop.server]) == []
    tap.close()
    assert tap_leases.free_servers([shop.server]) == [shop.server]


def test_people_are_told_of_a_session_that_writes_statements(shop: CapturedShop) -> None:
    trips = shop.dataset("trips")
    shop.execute("CREATE TABLE others (id int)")
    tap = shop.tap()
    tap.step()
    before = shop.source.sequence()
    shop.execute("SET SESSION binlog_format = STATEMENT", "INSERT INTO others VALUES (1)")
    written = range(before + 1, shop.source.sequence() + 1)
    shop.take(tap)
    tap._told_at = float("-inf")
    tap.step()
    (warning,) = [text for text in shop.row.warnings if "binlog_format" in text]
    assert any(re.search(rf"\b0-\d+-{sequence}\b", warning) for sequence in written)
    assert shop.is_captured(trips)


def test_another_owner_of_the_dataset_changes_nothing(shop: CapturedShop) -> None:
    trips = shop.dataset("trips")
    tap = shop.tap()
    tap.step()
    trips.team = make.team("shop-floor")
    trips.save()
    tap._end_session()
    shop.execute("ALTER TABLE trips ADD COLUMN city varchar(20)", "INSERT INTO trips VALUES (1, 0, 'Ulm')")
    shop.follow_plan(tap)
    shop.take(tap)
    assert shop.rows(trips) == {(1,): {"id": 1, "n": 0, "city": "Ulm"}}


def test_a_subject_that_another_team_has_taken_is_not_written_to(shop: CapturedShop) -> None:
    trips, riders = shop.dataset("trips"), shop.dataset("riders")
    registry.register(
        topic_of(trips), '"string"', team=make.team("others"), actor="eve", now=make.NOW, is_captured=True
    )
    shop.tap().step()
    assert "somebody else has registered it" in shop.capture(trips).stopped_why
    assert shop.is_captured(riders)


def test_the_storage_of_captured_tables_is_that_of_any_database(shop: CapturedShop) -> None:
    shop.execute("CREATE TABLE planes (tailnum varchar(10), seats int, speed double)")
    storage = STORAGES.get("mysql")(a_reader(shop))
    types = {column.name: column.type for column in storage.describe("planes").columns}
    assert list(storage.tables(10)) == ["planes"]
    assert types == {"tailnum": ColumnType.STRING, "seats": ColumnType.INTEGER, "speed": ColumnType.FLOAT}
    assert storage.describe("lakehub_captured.planes") == storage.describe("planes")


def test_the_account_that_the_tap_needs_is_no_warning_and_one_that_writes_is(shop: CapturedShop) -> None:
    url = a_reader(shop)
    role = STORAGES.get("mysql")(url).role()
    assert role is not None
    assert role_warning(role) == ""
    shop.execute("GRANT INSERT ON lakehub_captured.* TO 'lakehub_tap'@'127.0.0.1'")
    role = STORAGES.get("mysql")(url).role()
    assert role is not None
    assert "INSERT on lakehub_captured" in role_warning(role)
