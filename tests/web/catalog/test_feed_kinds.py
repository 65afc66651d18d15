"""A feed is of a connection, a changelog or a pipeline: what the catalog does where there is no table to read."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError
from django.test import Client

from lakehub.accounts.models import Role
from lakehub.catalog.datasets import changes
from lakehub.catalog.lineage import TableName, missing_tables
from lakehub.catalog.lineage.resolver import Resolver
from lakehub.catalog.models import Dataset, Feed, FeedKind
from lakehub.kernel.errors import Refused
from tests import factories as make
from tests.factories import NOW

pytestmark = pytest.mark.django_db
WITHOUT_CONNECTION = [FeedKind.CHANGELOG, FeedKind.PIPELINE]


@pytest.fixture
def flights() -> Dataset:
    make.feed(dataset := make.dataset("flights"))
    return dataset


@pytest.mark.parametrize("kind", FeedKind)
@pytest.mark.parametrize("connected", [True, False])
def test_a_connection_is_set_exactly_for_the_kind_connection(kind: FeedKind, connected: bool) -> None:
    feed = Feed(
        dataset=make.dataset(), kind=kind, connection=make.connection() if connected else None, object="flights"
    )
    if connected == (kind == FeedKind.CONNECTION):
        feed.save()
        return
    with pytest.raises(IntegrityError, match="feed_of_kind_connection_has_one"):
        feed.save()


@pytest.mark.parametrize("connected", [True, False])
def test_a_kind_that_is_none_is_not_stored(connected: bool) -> None:
    connection = make.connection() if connected else None
    with pytest.raises(IntegrityError, match="feed_of_kind_connection_has_one"):
        Feed.objects.create(dataset=make.dataset(), kind="foo", connection=connection, object="flights")


@pytest.mark.parametrize(
    ("kind", "source_name", "address"),
    [
        (FeedKind.CONNECTION, "ops", "ops.flights-changes"),
        (FeedKind.CHANGELOG, "changelog", "changelog flights-changes"),
        (FeedKind.PIPELINE, "pipeline", "pipeline flights-changes"),
    ],
)
def test_its_address_is_what_people_read(flights: Dataset, kind: FeedKind, source_name: str, address: str) -> None:
    feed = make.feed_of_kind(flights, kind)
    assert (feed.source_name, feed.address, str(feed)) == (source_name, address, f"{address} → flights")


@pytest.mark.parametrize("kind", FeedKind)
@pytest.mark.parametrize("ingested", [True, False])
def test_rows_are_loaded_from_a_connection_only_where_there_is_one(
    flights: Dataset, kind: FeedKind, ingested: bool
) -> None:
    Dataset.objects.update(ingested=ingested)
    make.feed_of_kind(flights, kind)
    assert flights.is_loaded_from_connection == (ingested and kind == FeedKind.CONNECTION)


@pytest.mark.parametrize("kind", WITHOUT_CONNECTION)
def test_columns_are_not_read_again_without_a_table(flights: Dataset, kind: FeedKind) -> None:
    make.feed_of_kind(flights, kind)
    with pytest.raises(Refused, match=f"`flights` comes from {kind} flights-changes, which is not a table"):
        changes.refresh_columns(flights, actor="ana", now=NOW)


@pytest.mark.parametrize("kind", WITHOUT_CONNECTION)
def test_the_look_for_missing_tables_leaves_it_alone(
    flights: Dataset, kind: FeedKind, caplog: pytest.LogCaptureFixture
) -> None:
    make.feed_of_kind(flights, kind)
    assert missing_tables.check_tables(offboard_after=None, now=NOW) == missing_tables.TableCheckReport()
    assert caplog.records == []


@pytest.mark.parametrize("kind", WITHOUT_CONNECTION)
def test_settings_change_and_a_key_is_checked_by_its_names_alone(flights: Dataset, kind: FeedKind) -> None:
    make.feed_of_kind(flights, kind)
    Dataset.objects.update(columns=[{"name": name, "type": "bigint", "nullable": False} for name in ("id", "leg")])
    flights.refresh_from_db()
    changes.update_dataset(flights, {"primary_key": ["id", "leg"], "paused": True}, actor="ana", now=NOW)
    assert (flights.primary_key, flights.feed.paused) == (["id", "leg"], True)
    with pytest.raises(Refused, match="There is no column `lge`"):
        changes.update_dataset(flights, {"primary_key": ["lge"]}, actor="ana", now=NOW)


@pytest.mark.parametrize("kind", FeedKind)
def test_lineage_finds_by_table_what_a_connection_feeds(flights: Dataset, kind: FeedKind) -> None:
    make.feed_of_kind(flights, kind)
    fed = Resolver().dataset(TableName("ops", "flights-changes"))
    make.connection()
    assert fed == (flights if kind == FeedKind.CONNECTION else None)
    assert Resolver().dataset(TableName("lakehub", "flights")) == flights


@pytest.mark.parametrize("kind", FeedKind)
def test_the_console_shows_it_and_pauses_it(flights: Dataset, kind: FeedKind) -> None:
    make.feed_of_kind(flights, kind)
    console = make.staff("view_dataset", "change_dataset", "view_feed")
    shown = console.get(f"/console/catalog/dataset/{flights.pk}/change/").content.decode()
    assert kind.label in shown
    assert "flights-changes" in shown
    console.post("/console/catalog/dataset/", {"action": "pause", "_selected_action": flights.pk})
    flights.feed.refresh_from_db()
    assert flights.feed.paused


@pytest.mark.parametrize("kind", FeedKind)
def test_the_api_answers(flights: Dataset, kind: FeedKind, client: Client) -> None:
    make.feed_of_kind(flights, kind)
    make.member(person := make.user(), flights.team, Role.ADMIN)
    client.force_login(person)
    address = "/api/v1/datasets/flights"

    def status_of(answer: Any) -> int:
        return int(answer.status_code)

    assert [listed["name"] for listed in client.get("/api/v1/datasets").json()["results"]] == ["flights"]
    assert status_of(client.get(address)) == 200
    assert status_of(client.patch(address, {"paused": True}, content_type="application/json")) == 200
    assert status_of(client.delete(address)) == 204
    assert status_of(client.post(f"{address}/restore")) == 200
    flights.feed.refresh_from_db()
    assert flights.feed.paused
