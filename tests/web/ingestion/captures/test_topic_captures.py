"""Captures of topics of Kafka: which cluster has them, how they are read, and when a topic is read again."""

from __future__ import annotations

from typing import Any

import pytest

from ingestion.capture.tap.captured_table import CaptureSpec
from ingestion.captures.beginning import why_load_waits
from ingestion.captures.checks.single import capture_findings
from ingestion.captures.records import capture_of, topic_of
from ingestion.captures.servers import captures_by_server, server_of
from ingestion.models import Capture, JobRun
from lakehub.catalog import connection_guard, connections
from lakehub.catalog.datasets.feed_options import effective_options_of, option_problems
from lakehub.catalog.models import Connection, Dataset
from lakehub.catalog.storages import STORAGES, Location
from lakehub.catalog.storages.kafka import KafkaStorage
from lakehub.kernel.errors import Refused
from lakehub.source_databases.urls import UnusableUrl
from tests import factories as given
from tests.factories import NOW

pytestmark = pytest.mark.django_db
URL = "kafka://reader:hunter2@B:9092,a/shop.*"
SERVER = "kafka:a:9092,b:9092"


@pytest.fixture
def orders() -> Dataset:
    dataset = given.dataset("orders", record_key=["id"], copies=("dc1", "dc2"))
    options = {"topic_begin": "latest", "chunk_rows": 5000}
    capture_of(
        given.feed(
            dataset, connection=given.connection("bus", URL, plugin="kafka"), object="shop.orders", options=options
        )
    )
    return dataset


def test_a_topic_is_captured_from_its_cluster_as_the_feed_says(orders: Dataset) -> None:
    ((server, (planned,)),) = captures_by_server().items()
    assert server == SERVER == server_of(URL)
    assert planned.spec == CaptureSpec(topic_of(orders), "", "shop.orders", 1, ("id",))
    assert planned.options == {"topic_begin": "latest"}
    assert "hunter2" not in repr(planned)
    with pytest.raises(UnusableUrl, match="Broker 1"):
        server_of("kafka://hunter2:x")


def test_the_options_say_how_a_topic_is_read(orders: Dataset) -> None:
    assert option_problems({"topic_begin": "0:5", "topic_key": "message"}) == {}
    problems = option_problems({"topic_begin": "now", "topic_key": 7})
    assert "Write earliest, latest, a time such as" in problems["topic_begin"]
    assert "`message` from the message's key. Leave it out for value." in problems["topic_key"]
    shown = effective_options_of(orders)
    assert (shown["topic_begin"], "topic_key" in shown) == ("latest", False)


def ask(dataset: Dataset, where: str, **params: Any) -> JobRun:
    return JobRun.objects.create(copy=given.copy_of(dataset, where), kind="bootstrap", due_at=NOW, params=params)


def waits(run: JobRun) -> bool:
    return why_load_waits(run, has_table=True, now=NOW) is not None


def taken_on() -> None:
    Capture.objects.update(captured_load=Capture.objects.get().load)


def test_a_replacement_reads_the_topic_again_once_for_all_who_have_asked(orders: Dataset) -> None:
    first = ask(orders, "dc1")
    assert waits(first)
    taken_on()
    assert not waits(first)
    again, other = ask(orders, "dc1", replace=True), ask(orders, "dc2", replace=True)
    assert waits(again)
    assert waits(other)
    taken_on()
    assert not waits(other)
    assert not waits(again)
    assert Capture.objects.get().load == 2
    later = ask(orders, "dc2", replace=True)
    assert waits(later)
    taken_on()
    assert not waits(later)
    assert not waits(again)
    assert Capture.objects.get().load == 3


def connect(url: str, *, by_operator: bool = False) -> Connection:
    team = given.team("shop").name
    return connections.add_connection(
        name="bus", plugin="kafka", url=url, team=team, actor="ana", now=NOW, by_operator=by_operator
    )


@pytest.fixture
def advertised(monkeypatch: pytest.MonkeyPatch, settings: Any) -> list[str]:
    """By a cluster that is reached."""
    hosts = ["kafka-1.example.org"]
    monkeypatch.setattr(KafkaStorage, "advertised_hosts", lambda storage: hosts)
    monkeypatch.setattr(KafkaStorage, "tables", lambda storage, limit: ["orders"])
    settings.LAKEHUB_SOURCE_HOSTS = ["*.example.org"]
    return hosts


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("kafka://127.0.0.1:9092", "127.0.0.1"),
        ("kafka://a.example.org,10.0.0.7:9092", "10.0.0.7"),
        ("kafka://a.example.org?registry=http://169.254.169.254", "169.254.169.254"),
    ],
)
def test_hosts_that_the_operator_has_not_named_are_refused(advertised: list[str], url: str, host: str) -> None:
    with pytest.raises(Refused, match=f"{host} is not a host"):
        connect(url)
    assert connect(url, by_operator=True).plugin == "kafka"


def test_hosts_that_brokers_advertise_are_looked_at_too(advertised: list[str]) -> None:
    advertised.append("169.254.169.254")
    with pytest.raises(Refused, match=r"169\.254\.169\.254 is not a host"):
        connect("kafka://kafka.example.org")
    advertised.pop()
    assert connect("kafka://kafka.example.org").plugin == "kafka"


def test_a_certificate_is_looked_at_as_those_of_other_servers() -> None:
    location: Location = STORAGES.get("kafka")("kafka://a:1?security=ssl&ca=/etc/hosts").location()
    with pytest.raises(Refused, match="/etc/hosts is not a certificate that may be read"):
        connection_guard.refuse_guarded_location(location, by_operator=False, lake_uris=[])


@pytest.mark.parametrize(
    ("prefix", "topic", "is_own"),
    [
        ("lake", "lake.orders-2E5", True),
        ("lake", "lake.lakehub-positions", True),
        ("lake", "orders-2E5", False),
        ("", "orders-2E5", True),
        ("", "orders-2E5-2Eerrors", True),
        ("", "lakehub-positions", True),
        ("", "orders.5", False),
    ],
)
def test_topics_of_our_own_changelog_are_no_source(settings: Any, prefix: str, topic: str, is_own: bool) -> None:
    settings.LAKEHUB_CHANGELOG, settings.LAKEHUB_CHANGELOG_URL = "kafka", f"kafka://x,a:9092/{prefix}"
    assert bool(capture_findings(URL, topic).of_table) == is_own
    assert capture_findings("kafka://c:9092", topic).of_table == ()
    assert capture_findings(URL).of_table == ()
