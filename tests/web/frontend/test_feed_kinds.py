"""Pages of a dataset whose rows come from a connection, a changelog or a pipeline."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from incidents.models import Incident
from ingestion.models import JobRun
from lakehub.catalog.models import Dataset, FeedKind, LineageEdge
from tests import factories as make
from tests.web.frontend.test_every_page import PAGES, address

WITHOUT_CONNECTION = [FeedKind.CHANGELOG, FeedKind.PIPELINE]
ADDRESSES = {
    FeedKind.CONNECTION: "ops.flights-changes",
    FeedKind.CHANGELOG: "changelog flights-changes",
    FeedKind.PIPELINE: "pipeline flights-changes",
}


def words(browser: Client, where: str) -> str:
    answer = browser.get(where)
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", answer.content.decode()))


@pytest.mark.parametrize("kind", WITHOUT_CONNECTION)
def test_every_page_shows(page: Client, flights: Dataset, kind: FeedKind) -> None:
    make.feed_of_kind(flights, kind)
    for template in PAGES:
        shown = words(page, address(template))
        assert "None" not in shown.replace("None.", "").replace("None yet", ""), template


@pytest.mark.parametrize(("kind", "source"), ADDRESSES.items())
def test_the_source_is_named(page: Client, flights: Dataset, kind: FeedKind, source: str) -> None:
    make.feed_of_kind(flights, kind)
    LineageEdge.objects.filter(downstream=flights).delete()
    for tab in ("", "/lineage", "/settings", "/ingestion"):
        assert f"Source{source}" in words(page, f"/datasets/flights{tab}"), tab
    make.edge(flights, make.dataset("delays"))
    assert f"{source}source" in words(page, "/datasets/flights/lineage")
    LineageEdge.objects.filter(upstream=flights).delete()
    assert f"flights comes from {source}." in words(page, "/datasets/flights/lineage")


@pytest.mark.parametrize(("kind", "source"), ADDRESSES.items())
def test_the_list_is_filtered_by_it(page: Client, flights: Dataset, kind: FeedKind, source: str) -> None:
    make.feed_of_kind(flights, kind)
    name = source.split(".")[0].split(" ")[0]
    listed = page.get(f"/datasets?source={name}", headers={"X-Fragment": "list"}).content.decode()
    assert "/datasets/flights" in listed
    others = page.get("/datasets?source=elsewhere", headers={"X-Fragment": "list"}).content.decode()
    assert "/datasets/flights" not in others


@pytest.mark.parametrize(("kind", "source"), ADDRESSES.items())
def test_settings_say_what_is_checked_and_loaded(page: Client, flights: Dataset, kind: FeedKind, source: str) -> None:
    make.feed_of_kind(flights, kind)
    connected = kind == FeedKind.CONNECTION
    settings = words(page, "/datasets/flights/settings")
    assert ("checked against the real rows" in settings) == connected
    Incident.objects.filter(dataset=flights).update(backfill_run=None)
    JobRun.objects.filter(copy__dataset=flights).delete()
    ingestion = words(page, "/datasets/flights/ingestion")
    assert ("The bootstrap is planned within seconds of onboarding." in ingestion) == connected
    assert (f"Its rows come from {source}, which needs no bootstrap." in ingestion) != connected
    page.post("/datasets/flights/offboard")
    restoring = words(page, "/datasets/flights/settings")
    assert ("or bootstrapped if its copies were dropped since" in restoring) == connected


@pytest.mark.parametrize("kind", WITHOUT_CONNECTION)
def test_settings_are_saved(page: Client, flights: Dataset, kind: FeedKind) -> None:
    make.feed_of_kind(flights, kind)
    html = page.get("/datasets/flights/settings").content.decode()
    form = dict(re.findall(r'<input[^>]* name="([\w-]+)"[^>]* value="([^"]*)"', html))
    page.post("/datasets/flights/settings", {**form, "tier": "1", "description": "", "paused": "on", "every": "10m"})
    flights.feed.refresh_from_db()
    assert flights.feed.paused
