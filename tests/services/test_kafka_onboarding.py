"""A connection to a real Kafka, and a topic of it, are looked at before anybody waits for the tap."""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fastavro
import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from ingestion.captures.reach import captured_upto
from ingestion.captures.records import topic_of
from ingestion.tapping import server_tap
from ingestion.tapping.topics import session as topics_session
from lakehub.accounts.models import Role
from lakehub.catalog import connections
from lakehub.catalog.connections import check_connection
from lakehub.catalog.datasets.changes import refresh_columns
from lakehub.catalog.models import Connection, Dataset
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from lakehub.kernel.errors import Refused
from lakehub.kernel.partitions import Grain
from tests import factories as given
from tests.factories import NOW
from tests.services.foreign_topics import ForeignTopics, foreign_topics

pytestmark = pytest.mark.django_db(transaction=True)
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "fare", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    ],
}


@pytest.fixture
def topics(kafka_url: str, tmp_path: Path, settings: Any) -> Iterator[ForeignTopics]:
    settings.LAKEHUB_CHANGELOG_URL = (tmp_path / "log").as_uri()
    with foreign_topics(kafka_url) as made:
        yield made


@dataclass
class Registry:
    """Of Confluent's paths the one that readers ask; `is_down`: it answers nothing of use."""

    schemas: dict[int, str] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    is_down: bool = False
    port: int = 0

    def answer(self, path: str, authorization: str | None) -> tuple[int, bytes]:
        self.asked.append((path, authorization))
        number = int(path.rpartition("/")[2])
        if self.is_down:
            return 503, b"hunter2"
        schema = self.schemas.get(number)
        return (404, b'{"error_code": 40403}') if schema is None else (200, json.dumps({"schema": schema}).encode())


@pytest.fixture
def registry() -> Iterator[Registry]:
    state = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = state.answer(self.path, self.headers.get("Authorization"))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.port = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield state
    server.shutdown()
    server.server_close()


def connect(topics: ForeignTopics, query: str = "") -> Connection:
    url = f"{topics.url}/{topics.prefix}*{query}"
    return connections.add_connection(
        name="bus", plugin="kafka", url=url, team=given.team("shop").name, actor="ana", now=NOW
    )


def onboard(topics: ForeignTopics, topic: str, *, table: str = "", **fields: Any) -> Dataset:
    given.data_center("dc1")
    application = OnboardingRequest(
        team="shop", tier=2, connection="bus", table=table or topics.name(topic), data_centers=["dc1"], grain=Grain.NONE,
        **{"name": topic, "primary_key": ["id"], "record_key": ["id"], **fields},
    )  # fmt: skip
    return onboard_dataset(application, actor="ana", now=NOW).dataset


def test_a_connection_lists_its_topics_and_one_that_does_not_answer_is_told(topics: ForeignTopics) -> None:
    topics.make("orders")
    team = given.team("shop").name
    test = check_connection(plugin="kafka", url=f"{topics.url}/{topics.prefix}*", team=team, actor="ana", now=NOW)
    assert topics.name("orders") in test.sentence
    with pytest.raises(Refused) as refused:
        url = "kafka://reader:hunter2@127.0.0.1:1?security=sasl_plaintext&timeout=2"
        check_connection(plugin="kafka", url=url, team=team, actor="ana", now=NOW)
    assert "did not answer a request for its" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_topic_is_onboarded_by_the_columns_of_its_messages(topics: ForeignTopics) -> None:
    topics.make("orders", partitions=2)
    connect(topics)
    with pytest.raises(Refused, match="has no message that can be read, so its columns are not known"):
        onboard(topics, "orders")
    with pytest.raises(Refused, match=f"Did you mean `{topics.name('orders')}`"):
        onboard(topics, "order")
    topics.send(
        "orders",
        ("a", {"id": 1, "n": 1}),
        ("a", {"id": 1, "n": 1.5}),
        ("b", {"id": 2, "tags": ["x"]}),
        ("c", b"no JSON"),
    )
    with pytest.raises(Refused, match="There is no column `number`"):
        onboard(topics, "orders", record_key=["number"])
    with pytest.raises(Refused, match="has a null in 3 of 3 rows"):
        onboard(topics, "orders", primary_key=["id", "tags"], record_key=["n", "tags"])
    dataset = onboard(topics, "orders", feed_options={"topic_key": "value", "topic_begin": "latest"})
    assert {column["name"]: column["type"] for column in dataset.columns} == {
        "message_key": "string", "id": "integer", "n": "float", "tags": "string",
    }  # fmt: skip
    with pytest.raises(Refused, match="is a topic, which no test can read where it lies"):
        onboard(topics, "watched", table=topics.name("orders"), ingested=False)
    topics.send("orders", ("f", {"id": 3, "more": True, "n": 2}))
    columns = refresh_columns(dataset, actor="ana", now=NOW).columns
    assert [(column["name"], column["type"]) for column in columns][2:] == [
        ("n", "float"),
        ("tags", "string"),
        ("more", "boolean"),
    ]
    assert dataset.feed.options == {"index": "memory", "topic_key": "value", "topic_begin": "latest"}


def test_the_page_shows_messages_as_rows(topics: ForeignTopics) -> None:
    topics.make("orders")
    topics.send("orders", ("a", {"id": 1, "city": "<b>Ulm</b>", "updated_at": "2026-11-17"}), ("b", b"no JSON"))
    connect(topics)
    person = given.user("ana")
    given.member(person, given.team("shop"), Role.OWNER)
    page = Client()
    page.force_login(person)
    text = page.get(f"/onboarding?connection=bus&table={topics.name('orders')}").content.decode()
    rows = re.findall(r"<td>(.*?)</td>", text.partition('id="rows"')[2])
    assert rows[:4] == ["a", "1", "&lt;b&gt;Ulm&lt;/b&gt;", "2026-11-17"]
    assert not re.search('name="(reference_key|cursor_column|columns_hashed)"', text)


def avro(number: int, content: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(ORDER), content)
    return b"\x00" + number.to_bytes(4) + out.getvalue()


def test_avro_is_read_by_the_schemas_of_a_registry_that_logs_in(topics: ForeignTopics, registry: Registry) -> None:
    registry.schemas[7] = json.dumps(ORDER)
    topics.make("orders")
    topics.send("orders", (None, avro(7, {"id": 1, "fare": Decimal("1.50")})))
    query = f"?registry=http%3A%2F%2Fme:s%40cret%40127.0.0.1:{registry.port}/base/"
    orders = topics.dataset("orders", query=query)
    tap = topics.tap()
    topics.take(tap, orders, 1)
    assert topics.rows(orders) == {(1,): {"id": 1, "fare": Decimal("1.50")}}
    assert registry.asked[0] == ("/base/schemas/ids/7", "Basic bWU6c0BjcmV0")
    topics.send("orders", (None, avro(8, {"id": 2, "fare": Decimal(2)})))
    topics.take(tap, orders, 2)
    assert "The registry has no schema 8." in topics.errors(orders)[0].reason

    registry.is_down, registry.schemas[9] = True, json.dumps(ORDER)
    topics.send("orders", (None, avro(9, {"id": 3, "fare": Decimal(3)})))
    topics.step_until(tap, lambda: "answered 503" in topics.row.error)
    assert "hunter2" not in topics.row.error
    assert "cret" not in topics.row.error
    registry.is_down = False
    topics.take(tap, orders, 3)
    assert topics.rows(orders).keys() == {(1,), (3,)}


def test_a_registry_that_is_down_keeps_only_the_topics_waiting_that_need_it(
    topics: ForeignTopics, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_tap, "TELL_EVERY_S", 0.5)
    for name in ("orders", "riders", "cities"):
        topics.make(name)
    registry.schemas[7] = json.dumps(ORDER)
    topics.send("orders", (None, avro(7, {"id": 1, "fare": Decimal("1.50")})))
    for name in ("riders", "cities"):
        topics.send(name, (None, {"id": 1}))
    query = f"?registry=http%3A%2F%2F127.0.0.1:{registry.port}/base"
    orders, riders = topics.dataset("orders", query=query), topics.dataset("riders", query=query)
    cities = topics.dataset("cities")
    everyone = (orders, riders, cities)
    tap = topics.tap()
    for dataset in everyone:
        topics.take(tap, dataset, 1)
    topics.step_until(tap, lambda: all(taken_upto(each) for each in everyone))

    registry.is_down = True
    registry.schemas[9] = json.dumps(ORDER)
    topics.send("orders", (None, {"id": 2}), (None, avro(9, {"id": 3, "fare": Decimal(3)})))
    for name in ("riders", "cities"):
        topics.send(name, (None, {"id": 2}))
    for dataset in (riders, cities):
        topics.take(tap, dataset, 2)
    topics.step_until(tap, lambda: any("answered 503" in warning for warning in topics.row.warnings))
    since = topics.row.caught_up_at
    topics.step_until(tap, lambda: topics.row.caught_up_at != since)
    assert (topics.row.error, topics.messages(orders)) == ("", 1)
    assert [taken_upto(each) is None for each in everyone] == [True, False, False]

    tap._end_session()
    tap.step()
    assert tap._session is not None
    assert tap._session.place == {"behind": [topic_of(orders)]}  # another process knows it before it has read anything
    registry.is_down = False
    topics.take(tap, orders, 3)
    topics.step_until(tap, lambda: all(taken_upto(each) for each in everyone))
    assert [topics.messages(each) for each in everyone] == [3, 2, 2]
    assert topics.row.place == {}


def taken_upto(dataset: Dataset) -> datetime | None:
    return captured_upto(dataset.copies.get(), datetime.now(UTC))


def test_a_topic_whose_registry_is_down_begins_when_it_is_back(
    topics: ForeignTopics, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_tap, "TELL_EVERY_S", 0.5)
    monkeypatch.setattr(topics_session, "OPEN_AGAIN_S", 1.0)
    registry.schemas[7], registry.is_down = json.dumps(ORDER), True
    for name, value in (("orders", avro(7, {"id": 1, "fare": Decimal("1.50")})), ("riders", {"id": 1})):
        topics.make(name)
        topics.send(name, (None, value))
    query = f"?registry=http%3A%2F%2F127.0.0.1:{registry.port}/base"
    orders, riders = topics.dataset("orders", query=query), topics.dataset("riders", query=query)
    tap = topics.tap()
    topics.take(tap, riders, 1)
    topics.step_until(tap, lambda: any("answered 503" in warning for warning in topics.row.warnings))
    assert not topics.capture(orders).is_captured
    registry.is_down = False
    topics.take(tap, orders, 1)
    assert topics.rows(orders) == {(1,): {"id": 1, "fare": Decimal("1.50")}}


def test_the_command_shows_topics_and_what_is_in_one(topics: ForeignTopics, capsys: pytest.CaptureFixture[str]) -> None:
    topics.make("orders", partitions=2)
    topics.send("orders", ("a", {"id": 1}), partition=1)
    connect(topics)
    call_command("topics", "bus")
    assert f"{topics.name('orders')}: 2 partitions, 1 messages at most" in capsys.readouterr().out
    call_command("topics", "bus", topics.name("orders"))
    shown = capsys.readouterr().out
    assert "partition 1: offsets 0 to 1" in shown
    assert "column id: integer" in shown
    assert """b'a': b'{"id": 1}'""" in shown
    with pytest.raises(CommandError, match="There is no topic `none`"):
        call_command("topics", "bus", "none")
