"""Columns that nobody is to see, of tables of a real server: the load and the log hide them alike, and nothing shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from ingestion.capture.tap.hidden_columns import HiddenColumns
from ingestion.captures.beginning import why_load_waits
from ingestion.captures.checks.single import capture_findings
from ingestion.captures.hidden_columns import hidden_columns_of
from ingestion.captures.records import begin_load, topic_of
from ingestion.domain.merging.stored_metadata import METADATA_COLUMN
from ingestion.models import Capture, Finding, JobRun
from ingestion.sources import SourceConfig, SourceError
from ingestion.sources.mysql.source import MysqlSource
from lakehub.catalog.datasets.changes import update_dataset
from lakehub.catalog.models import Dataset, Feed
from lakehub.kernel.errors import Refused
from tests import factories as make
from tests.services.captured_shop import CapturedShop, captured_shop
from tests.services.tapped_server import TappedServer, tapped_server
from tests.services.test_mysql_source import config
from tests.services.test_tap import EVERY_TYPE, ROWS

DATABASE = "lakehub_hidden"
SECRETS = ("hidden@example.org", "Geheim", "0731-5550", "77123456")
KEY = "key of the hashes"


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, DATABASE, tmp_path / "log") as tapped:
        yield tapped


@pytest.fixture
def shop(mariadb_url: str, tmp_path: Path, settings: Any) -> Iterator[CapturedShop]:
    settings.LAKEHUB_CHANGELOG_URL = (tmp_path / "log").as_uri()
    with captured_shop(mariadb_url, f"{DATABASE}_shop", tmp_path) as captured:
        yield captured


def source(server: TappedServer, table: str, hidden: HiddenColumns, *key: str) -> MysqlSource:
    options = {**hidden.as_options(), "hash_key": KEY}
    given: SourceConfig = config(server, table, options=options)
    return MysqlSource(SourceConfig(given.url, f"{DATABASE}.{table}", options=given.options, key_columns=key))


def loaded(server: TappedServer, table: str, hidden: HiddenColumns, *key: str) -> dict[Any, dict[str, Any]]:
    """The rows of a load, by their key."""
    rows = dict[Any, dict[str, Any]]()
    for batch in source(server, table, hidden, *key).snapshot().batches:
        names = [name for name in batch.columns if name != METADATA_COLUMN]
        for values in zip(*(batch.columns[name] for name in names), strict=True):
            row = dict(zip(names, values, strict=True))
            rows[tuple(row[name] for name in key)] = row
    return rows


def test_every_type_is_hashed_alike_by_the_load_and_by_the_log(server: TappedServer) -> None:
    server.execute(
        "SET SESSION time_zone = '+00:00'", EVERY_TYPE.format(t="t"), f"INSERT INTO t VALUES {', '.join(ROWS)}"
    )
    with server.engine.connect() as connection:
        names = [str(row[0]) for row in connection.exec_driver_sql(f"DESCRIBE {DATABASE}.t")]
    hidden = HiddenColumns(hashed=frozenset(names) - {"id", "k"}, key=KEY)
    server.take("t", record_key=("id", "k"), hidden=hidden)
    captured = server.replayed("t", key=("id", "k"))
    assert captured == loaded(server, "t", hidden, "id", "k")
    digests = {value for row in captured.values() for name, value in row.items() if name in hidden.hashed}
    assert all(value is None or len(value) == 64 for value in digests)
    assert len(digests) > len(names)


def test_what_is_hidden_is_in_no_message_and_no_row_of_a_load(server: TappedServer) -> None:
    """Also of rows that cannot be encoded, and of columns whose names no lake has."""
    email, place, phone, pin = SECRETS
    server.execute(
        "CREATE TABLE t (id int PRIMARY KEY, email varchar(40), `a ``b` varchar(40), `größe ✓` point, phone varchar(40), pin int, "
        "host varchar(40) AS (substring_index(email, '@', -1)) STORED, bad varchar(40) CHARACTER SET latin1, note varchar(9))",
        f"INSERT INTO t (id, email, `a ``b`, phone, pin, note) VALUES (1, '{email}', '{place}', '{phone}', {pin}, 'é'), (2, NULL, NULL, NULL, NULL, NULL)",
        "UPDATE t SET email = concat(email, '.uk'), pin = pin + 1 WHERE id = 1",
        "DELETE FROM t WHERE id = 2",
    )
    hidden = HiddenColumns(
        frozenset(["a `b", "größe ✓", "host"]), frozenset(["email", "pin"]), frozenset(["phone"]), key=KEY
    )
    server.take("t", hidden=hidden)
    assert not server.stopped
    messages = [*server.messages("t"), *server.messages("t.errors")]
    assert len(messages) == 4
    rows = loaded(server, "t", hidden, "id")
    everything = b"".join(messages) + json.dumps([*rows.values()]).encode()
    assert not [secret for secret in SECRETS if secret.encode() in everything]
    digest = {name: hidden.digest(value) for name, value in (("email", f"{email}.uk"), ("pin", int(pin) + 1))}
    assert rows == {(1,): {"id": 1, **digest, "phone": None, "bad": None, "note": "é"}}
    assert server.replayed("t") == rows


def test_a_hidden_column_that_was_renamed_is_seen_by_nobody(server: TappedServer) -> None:
    server.execute("CREATE TABLE t (id int PRIMARY KEY, email varchar(40))")
    hidden = HiddenColumns(masked=frozenset(["email"]))
    server.take("t", hidden=hidden)
    server.execute("ALTER TABLE t RENAME COLUMN email TO mail", f"INSERT INTO t VALUES (1, '{SECRETS[0]}')")
    server.take("t", hidden=hidden)
    assert "has changed its column `email`, which nobody is to see" in server.stopped["t"]
    assert server.messages("t") == []
    with pytest.raises(SourceError, match=r"does not have `email` \(masked\) any more"):
        loaded(server, "t", hidden, "id")


def hide(dataset: Dataset, **columns: list[str]) -> Dataset:
    changed = update_dataset(dataset, dict(columns), actor="ana", now=make.NOW)
    return Dataset.objects.get(pk=changed.pk)


@pytest.mark.django_db(transaction=True)
def test_a_change_ends_the_capture_until_all_rows_have_them_so(shop: CapturedShop) -> None:
    """Nothing that is to be hidden from now on is captured before, and no load begins with what the tap does not know."""
    trips = shop.dataset("trips", definition="id int PRIMARY KEY, email varchar(40), n int")
    tap = shop.tap()
    tap.step()
    shop.execute("INSERT INTO trips VALUES (1, 'a@b.c', 1)")
    shop.take(tap)
    trips = hide(trips, columns_hashed=["email"], columns_masked=["n"])
    run = JobRun.objects.create(copy=make.copy_of(trips), kind="bootstrap", due_at=make.NOW, params={"replace": True})
    assert "`email` is hashed, and was not hidden" in str(why_load_waits(run, has_table=True, now=make.NOW))
    shop.execute(f"INSERT INTO trips VALUES (2, '{SECRETS[0]}', 2)")
    shop.follow_plan(tap)
    shop.step_until(tap, lambda: shop.capture(trips).is_stopped)
    assert "`n` is masked, and was not hidden" in Finding.objects.get(cleared_at=None).detail["message"]
    shop.take(tap)
    assert shop.rows(trips).keys() == {(1,)}
    assert why_load_waits(run, has_table=True, now=make.NOW) is not None  # which has begun another load
    shop.follow_plan(tap)
    shop.step_until(tap, lambda: shop.capture(trips).is_captured)
    assert why_load_waits(run, has_table=True, now=make.NOW) is None
    shop.execute(f"INSERT INTO trips VALUES (3, '{SECRETS[0]}', 3)")
    shop.take(tap)
    key = hidden_columns_of(Feed.objects.get(dataset=trips))
    assert shop.rows(trips)[3,] == {"id": 3, "email": key.digest(SECRETS[0]), "n": None}


@pytest.mark.django_db(transaction=True)
def test_another_key_of_the_hashes_ends_the_capture(shop: CapturedShop) -> None:
    trips = shop.dataset("trips", definition="id int PRIMARY KEY, email varchar(40)")
    trips = hide(trips, columns_hashed=["email"])
    tap = shop.tap()
    tap.step()
    assert shop.is_captured(trips)
    of_another_key = {**shop.capture(trips).captured_columns, "key": "0" * 16}
    Capture.objects.update(
        captured_columns=of_another_key
    )  # as if the instance had been set up anew around its database
    tap._end_session()
    shop.follow_plan(tap)
    shop.step_until(tap, lambda: shop.capture(trips).is_stopped)
    assert "hashed with another key" in shop.capture(trips).stopped_why
    begin_load(shop.capture(trips), uuid4())
    shop.follow_plan(tap)
    shop.step_until(tap, lambda: shop.capture(trips).is_captured)


@pytest.mark.django_db(transaction=True)
def test_a_column_that_shows_another_is_refused_with_it(shop: CapturedShop) -> None:
    """The server says what a generated column is made from, whatever the names."""
    definition = (
        "id int PRIMARY KEY, `e``m` varchar(40), host varchar(40) AS (concat(`e``m`, '`id`')) VIRTUAL, n int AS (id + 1) STORED, "
        "d varchar(40) DEFAULT (left(`e``m`, 3)), s varchar(9) DEFAULT '`id`', u bigint DEFAULT uuid_short(), r double AS (pi())"
    )
    trips = shop.dataset("trips", definition=definition)
    findings = capture_findings(shop.url, "trips")
    assert findings.generated == {"host": ("e`m",), "n": ("id",), "d": ("e`m",)}
    with pytest.raises(Refused, match="`host` is generated from `e`m`, which is left out"):
        hide(trips, columns_left_out=["e`m"])
    hide(trips, columns_left_out=["e`m", "host", "d"])
    assert topic_of(trips)


def test_a_load_does_not_read_a_column_that_shows_a_hidden_one(server: TappedServer) -> None:
    server.execute("CREATE TABLE trips (id int PRIMARY KEY, phone varchar(40), last varchar(4) AS (right(phone, 4)))")
    server.execute(f"INSERT INTO trips (id, phone) VALUES (1, '{SECRETS[2]}')")
    with pytest.raises(SourceError, match="`last` is generated from `phone`"):
        loaded(server, "trips", HiddenColumns(hashed=frozenset(["phone"]), key=KEY), "id")
    hidden = HiddenColumns(hashed=frozenset(["phone", "last"]), key=KEY)
    assert loaded(server, "trips", hidden, "id")[1,]["last"] == hidden.digest(SECRETS[2][-4:])


@pytest.mark.django_db(transaction=True)
def test_a_column_that_comes_later_and_shows_a_hidden_one_ends_the_capture_before_its_first_value(
    shop: CapturedShop,
) -> None:
    trips = shop.dataset("trips", definition="id int PRIMARY KEY, phone varchar(40)")
    trips = hide(trips, columns_hashed=["phone"])
    tap = shop.tap()
    tap.step()
    shop.execute("ALTER TABLE trips ADD n int AS (id + 1) STORED", "INSERT INTO trips (id, phone) VALUES (1, '5')")
    shop.take(tap)
    shop.execute(
        "ALTER TABLE trips ADD last varchar(4) AS (right(phone, 4)) VIRTUAL",
        f"INSERT INTO trips (id, phone) VALUES (2, '{SECRETS[2]}')",
        "ALTER TABLE trips ADD w int",
    )
    shop.step_until(tap, lambda: shop.capture(trips).is_stopped)
    shop.take(tap)
    assert shop.rows(trips).keys() == {(1,)}
    assert "`last` is generated from `phone`, which is to be hashed" in shop.capture(trips).stopped_why
    begin_load(shop.capture(trips), uuid4())
    shop.follow_plan(tap)
    shop.step_until(tap, lambda: shop.capture(trips).is_stopped)
    assert "`last` is generated from" in shop.capture(trips).stopped_why
    shop.execute("ALTER TABLE trips DROP last")
    begin_load(shop.capture(trips), uuid4())
    shop.follow_plan(tap)
    shop.step_until(tap, lambda: shop.capture(trips).is_captured)


@pytest.mark.django_db(transaction=True)
def test_a_column_that_showed_a_hidden_one_while_no_tap_ran_is_captured_by_none(shop: CapturedShop) -> None:
    trips = shop.dataset("trips", definition="id int PRIMARY KEY, phone varchar(40)")
    trips = hide(trips, columns_masked=["phone"])
    tap = shop.tap()
    tap.step()
    tap._end_session()
    shop.execute(
        "ALTER TABLE trips ADD last varchar(4) DEFAULT (right(phone, 4))",
        f"INSERT INTO trips (id, phone) VALUES (1, '{SECRETS[2]}')",
        "ALTER TABLE trips DROP last",
    )
    shop.take(tap)
    assert shop.rows(trips) == {}
    assert "`last` is generated from `phone`, which is to be masked" in shop.capture(trips).stopped_why
