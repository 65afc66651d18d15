"""Which datasets are captured, from which server, to which topic."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from ingestion.capture.tap.captured_table import CaptureSpec
from ingestion.captures.changelog import configured_changelog
from ingestion.captures.records import begin_load, capture_of, topic_of
from ingestion.captures.servers import captures_by_server, server_of
from ingestion.models import Capture
from lakehub.catalog.models import Dataset
from tests import factories as make

pytestmark = pytest.mark.django_db
SERVER = "db.example.org:3307"


def captured(name: str, *, table: str = "", plugin: str = "mysql", url: str = "", **fields: Any) -> Dataset:
    url = url or "mysql://reader:hunter2@DB.example.org:3307/ops"
    dataset = make.dataset(name, **fields)
    make.feed(dataset, connection=make.connection(f"of-{name}", url, plugin=plugin), object=table or name)
    return dataset


def specs_of_server(server: str) -> list[CaptureSpec]:
    return [planned.spec for planned in captures_by_server().get(server, [])]


def test_what_is_captured_is_known_by_server() -> None:
    trips = captured("trips", record_key=["id", "city"])
    riders = captured("riders", table="people.riders", url="mysql://other@db.example.org:3307/ops")
    elsewhere = captured("fares", url="mariadb://reader@[::1]/ops")
    by_server = captures_by_server()
    assert [planned.spec for planned in by_server[SERVER]] == [
        CaptureSpec(topic_of(trips), "ops", "trips", 1, ("id", "city")),
        CaptureSpec(topic_of(riders), "people", "riders", 1, ("id",)),
    ]
    assert [planned.spec.topic for planned in by_server["[::1]:3306"]] == [topic_of(elsewhere)]
    assert specs_of_server("unknown:3306") == []
    assert "hunter2" not in repr(by_server)


def test_a_dataset_that_is_read_by_its_cursor_or_left_is_not_captured() -> None:
    captured("by-cursor", plugin="sql", url="mysql+pymysql://reader@db/ops")
    captured("monitored", ingested=False)
    captured("left", offboarded_at=make.NOW)
    captured("broken", url="mysql://reader@db/ops?unix_socket=/run/x")
    assert captures_by_server() == {}


def test_a_pause_ends_no_capture() -> None:
    dataset = captured("trips")
    dataset.feed.paused = True
    dataset.feed.save()
    assert [spec.table for spec in specs_of_server(SERVER)] == ["trips"]


def test_a_hundred_captures_cost_three_queries(django_assert_num_queries: Any) -> None:
    connection = make.connection("shop", "mysql://reader@db/ops", plugin="mysql")
    for number in range(100):
        capture_of(make.feed(make.dataset(f"table{number}"), connection=connection))
    with django_assert_num_queries(3):
        assert len(specs_of_server("db:3306")) == 100


def test_a_topic_is_that_of_one_dataset_and_asks_no_database(django_assert_num_queries: Any) -> None:
    dataset = captured("a" * 60)
    with django_assert_num_queries(0):
        assert topic_of(dataset) == f"{'a' * 60}.{dataset.pk}"
    assert capture_of(dataset.feed).topic == topic_of(dataset)
    assert capture_of(dataset.feed).pk == capture_of(dataset.feed).pk


def test_a_load_that_begins_is_captured_anew_also_where_it_was_stopped() -> None:
    capture = capture_of(captured("trips").feed)
    assert not capture.is_captured
    Capture.objects.update(captured_load=1, stopped_load=1, stopped_why="truncated")
    capture.refresh_from_db()
    assert (capture.is_stopped, capture.is_captured) == (True, False)
    run = uuid4()
    assert [begin_load(capture, run), begin_load(capture, run)] == [2, 2]  # however often it is tried
    assert (capture.is_stopped, capture.is_captured) == (False, False)
    assert [spec.load for spec in specs_of_server(SERVER)] == [2]


def test_the_server_of_a_connection_is_its_host_and_port() -> None:
    assert server_of("mysql://a:b@DB.example.org/ops") == "db.example.org:3306"


def test_the_changelog_is_that_of_the_settings(settings: Any, tmp_path: Any) -> None:
    settings.LAKEHUB_CHANGELOG_URL = (tmp_path / "log").as_uri()
    configured_changelog().writer("tap:test").commit([], {"gtid": "0-1-1"})
    assert configured_changelog().writer("tap:test").position() == {"gtid": "0-1-1"}
