"""A table of cells from the look at its connection to its events: what is refused is told with what to do, and one tap takes it beside other tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from ingestion.captures.changelog import configured_changelog
from ingestion.captures.records import topic_of
from ingestion.heatpipe.decoder import Decoder
from ingestion.models import SchemaVersion
from ingestion.schemas import registry
from ingestion.schemas.captured_versions import subject_schema_of
from lakehub.accounts.models import Role
from lakehub.catalog import connections
from lakehub.catalog.models import Connection, Dataset
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from lakehub.kernel.errors import Refused
from lakehub.kernel.partitions import Grain
from tests import factories as given
from tests.factories import NOW
from tests.services.captured_shop import CapturedShop, captured_shop
from tests.services.cell_table import CellTable

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shop(mariadb_url: str, tmp_path: Path, settings: Any) -> Iterator[CapturedShop]:
    settings.LAKEHUB_CHANGELOG_URL = (tmp_path / "log").as_uri()
    with captured_shop(mariadb_url, "lakehub_cells_onboarded", tmp_path) as captured:
        yield captured


def connect(shop: CapturedShop) -> Connection:
    team = given.team("shop").name
    return connections.add_connection(
        name="cells", plugin="schemaless", url=shop.url, team=team, actor="ana", now=NOW, by_operator=True
    )


def onboard(table: str, **fields: Any) -> Dataset:
    given.data_center("dc1")
    application = OnboardingRequest(
        team="shop", tier=2, connection="cells", table=table, data_centers=["dc1"],
        **{"grain": Grain.NONE, "name": "trips", "primary_key": ["row_key"], "record_key": ["row_key"], **fields},
    )  # fmt: skip
    return onboard_dataset(application, actor="ana", now=NOW).dataset


def events_of(dataset: Dataset) -> list[tuple[str, Any, dict[str, Any]]]:
    topic = topic_of(dataset)
    decoder = Decoder(topic, ("row_key",), int, lambda number: subject_schema_of(registry.find_by_id(number)))
    messages = configured_changelog().reader().read(topic, {})
    decoded = [decoder.decode(message.value or b"", (message.offset,)) for message in messages]
    return [(each.source_column, each.event.reference_key, dict(each.event.values)) for each in decoded]


def test_a_table_of_cells_is_onboarded_and_captured_by_the_tap_of_its_server(shop: CapturedShop) -> None:
    table = CellTable(shop.source, "trips", key="binary(16)", body="json")
    table.add(bytes(16), "base", 1, {"city": "Ulm", "fare": 1, "stops": [1]})
    table.add(bytes(16), "status", 1, {"ended": False})
    riders = shop.dataset("riders")
    connection = connect(shop)
    assert connection.storage.tables(10) == ["trips"]
    dataset = onboard("trips")
    assert {each["name"]: each["type"] for each in dataset.columns} == {
        "row_key": "string", "status__ref_key": "integer", "status__ended": "boolean",
        "base__ref_key": "integer", "base__city": "string", "base__fare": "integer", "base__stops": "string",
    }  # fmt: skip
    assert dataset.feed.options == {"index": "memory"}

    tap = shop.tap()
    shop.step_until(tap, lambda: shop.is_captured(dataset) and shop.is_captured(riders))
    table.add(bytes(16), "base", 2, {"city": "Bonn", "fare": 1.5})
    shop.execute("INSERT INTO riders VALUES (1, 1)")
    shop.take(tap)
    nil = "00000000-0000-0000-0000-000000000000"
    assert events_of(dataset) == [
        (
            "base",
            2,
            {"row_key": nil, "base__ref_key": 2, "base__city": "Bonn", "base__fare": 1.5, "base__stops": None},
        )
    ]
    assert shop.rows(riders) == {(1,): {"id": 1, "n": 1}}
    versions = SchemaVersion.objects.filter(subject__name=topic_of(dataset))
    assert versions.filter(registered_by="tap").count() == 3  # of the key, of a sample, and with a wider type


REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("id int PRIMARY KEY, n int", "trips", {}, "not known to hold cells"),
    ("row_key int, column_name varchar(9), ref_key int, body json", "trips", {}, r"ADD UNIQUE KEY \(`row_key`, `column_name`, `ref_key`\)"),
    ("row_key int, column_name varchar(9), ref_key int, body text, UNIQUE (ref_key, column_name, row_key)", "trips", {}, "ADD UNIQUE KEY"),
    ("row_key int, column_name varchar(9), ref_key int, body text, PRIMARY KEY (row_key, column_name, ref_key)", "trips", {}, "None of 1 cells .* has a JSON object"),
    ("row_key int, column_name varchar(9), ref_key int, body json, PRIMARY KEY (row_key, column_name, ref_key)", "trips?bodi=x", {}, "Did you mean `body`"),
    ("row_key int, column_name varchar(9), ref_key int, body json, PRIMARY KEY (row_key, column_name, ref_key)", "trips", {"primary_key": ["a__n"], "record_key": ["a__n"]}, "named by `row_key`"),
    ("row_key int, column_name varchar(9), ref_key int, body json, PRIMARY KEY (row_key, column_name, ref_key)", "trips", {"partition_column": "a__n", "grain": Grain.DAY}, "leave the partition out"),
    ("row_key int, column_name varchar(9), ref_key int, body json, PRIMARY KEY (row_key, column_name, ref_key)", "trips", {"ingested": False}, "rows in the lake only"),
]  # fmt: skip


@pytest.mark.parametrize(("definition", "table", "fields", "reason"), REFUSED)
def test_what_cannot_be_captured_is_refused_with_what_to_do(
    shop: CapturedShop, definition: str, table: str, fields: dict[str, Any], reason: str
) -> None:
    shop.execute(f"CREATE TABLE trips ({definition})")
    if "row_key" in definition:
        body = '{"n": "2026-11-01"}' if "json" in definition else "not JSON"
        shop.execute(f"INSERT INTO trips (row_key, column_name, ref_key, body) VALUES (1, 'a', 1, '{body}')")
    connect(shop)
    with pytest.raises(Refused, match=reason):
        onboard(table, **fields)


def test_the_columns_of_the_cells_may_have_other_names(shop: CapturedShop) -> None:
    shop.execute(
        "CREATE TABLE odd (k int, name varchar(9), v int, doc text, PRIMARY KEY (k, name, v))",
        "INSERT INTO odd VALUES (7, 'base', 1, '{\"n\": 1}'), (7, 'raw', 1, '{\"Odd-Name\": 1}')",
    )
    assert connect(shop).storage.tables(10) == []
    dataset = onboard(
        "odd?row_key=k&column=name&ref_key=v&body=doc&delete=gone&text=raw", primary_key=["k"], record_key=["k"]
    )
    assert {each["name"] for each in dataset.columns} == {"k", "base__ref_key", "base__n", "raw__ref_key", "raw"}
    tap = shop.tap()
    shop.step_until(tap, lambda: shop.is_captured(dataset))
    assert shop.capture(dataset).captured_table == f"{shop.server}/lakehub_cells_onboarded.odd"


def test_the_page_shows_the_rows_that_a_sample_makes_and_onboards_the_table(shop: CapturedShop) -> None:
    table = CellTable(shop.source, "trips", key="binary(16)")
    table.add(bytes(16), "base", 1, {"city": "<b>Ulm</b>"})
    table.add(bytes(16), "status", 3, {"word": "begun"})
    table.add(bytes(16), "base", 2, "{broken")
    table.add(bytes(16), "large", 1, {"text": "x" * 70_000})
    connect(shop)
    given.data_center("dc1")
    person = given.user("ana")
    given.member(person, given.team("shop"), Role.OWNER)
    page = Client()
    page.force_login(person)
    assert "trips" in page.get("/onboarding?connection=cells").content.decode()
    text = page.get("/onboarding?connection=cells&table=trips%3Ftext%3Draw").content.decode()
    assert all(
        f"<td>{value}</td>" in text
        for value in ("00000000-0000-0000-0000-000000000000", "&lt;b&gt;Ulm&lt;/b&gt;", "begun", "3")
    )
    assert 'value="trips"' in text
    assert "large__text" not in text
    fields = {
        "connection": "cells",
        "table": "trips?text=raw",
        "name": "trips",
        "team": "shop",
        "tier": "2",
        "kind": "append-plus-update",
        "grain": "none",
        "primary_key": "row_key",
        "partition_tz": "UTC",
        "ingested": "on",
        "data_centers": "dc1",
    }
    answer = page.post("/onboarding", fields)
    assert answer.status_code == 302, answer.content.decode()
    feed = Dataset.objects.get(name="trips").feed
    assert (feed.object, feed.options) == ("trips?text=raw", {"index": "memory"})
