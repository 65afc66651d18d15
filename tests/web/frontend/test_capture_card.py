"""The ingestion tab of a captured dataset says how its capture goes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client

from ingestion.captures.records import capture_of
from ingestion.domain.lag import LagCounts
from ingestion.models import Capture, CaptureHour, TapServer
from ingestion.schemas import registry
from lakehub.catalog.models import Dataset
from tests import factories as given
from tests.factories import HOUR, NOW
from tests.unit.ingestion.heatpipe.messages import subject_schema

pytestmark = pytest.mark.django_db
ADDRESS = "db.example.org:3306"


@pytest.fixture
def dataset() -> Dataset:
    dataset = given.dataset("trips")
    connection = given.connection("tapped", f"mysql://reader:hunter2@{ADDRESS}/ops", plugin="mysql")
    capture_of(given.feed(dataset, connection=connection))
    return dataset


def card(browser: Client) -> str:
    text = browser.get("/datasets/trips/ingestion").content.decode()
    assert "hunter2" not in text
    return text.partition('id="cap"')[2].partition("</section>")[0]


def capture(**fields: Any) -> None:
    Capture.objects.update(**fields)


def test_a_capture_is_told_from_its_beginning_to_its_end(dataset: Dataset, page: Client) -> None:
    assert "Begins" in card(page)
    server = TapServer.objects.create(address=ADDRESS, seen_at=NOW)
    capture(captured_load=1, captured_from="0-1-17", captured_table=f"{ADDRESS}/ops.trips")
    text = card(page)
    assert "Captured" in text
    assert all(fact in text for fact in (ADDRESS, f"trips.{dataset.pk}", "0-1-17", "none yet"))
    registry.register(
        f"trips.{dataset.pk}",
        json.dumps(subject_schema().avro),
        team=dataset.team,
        actor="tap",
        now=NOW,
        is_captured=True,
    )
    assert f'<a href="/schemas/trips.{dataset.pk}">version 1</a>' in card(page)
    TapServer.objects.filter(pk=server.pk).update(error="`log_bin` is OFF <script>")
    assert "Not tapped" in card(page)
    assert "OFF &lt;script&gt;" in card(page)
    capture(stopped_load=1, stopped_why="It was truncated.")
    assert "Stopped" in card(page)
    assert "It was truncated." in card(page)
    TapServer.objects.update(error="")
    capture(load=2, captured_load=2, incomplete_copies=[given.copy_of(dataset).pk])
    assert "Incomplete" in card(page)


def test_a_capture_that_waits_to_go_on_at_another_server_says_for_what(dataset: Dataset, page: Client) -> None:
    capture(captured_load=1, captured_table="former.example.org:3306/ops.trips")
    TapServer.objects.create(address="former.example.org:3306", seen_at=NOW)
    assert all(fact in card(page) for fact in ("Moves", f"former.example.org:3306, goes on at {ADDRESS}"))
    TapServer.objects.create(address=ADDRESS, error="It does not have the transaction 0-1-17 yet.")
    assert all(fact in card(page) for fact in ("Not tapped", "0-1-17 yet"))


def test_how_long_changes_took_is_drawn_and_told(dataset: Dataset, page: Client) -> None:
    """By the hour; an hour that does not add up is named as such, and one that was not counted is not."""
    assert 'id="lag-1"' not in page.get("/datasets/trips/ingestion").content.decode()
    start = NOW.replace(minute=0, second=0, microsecond=0)
    for number, logged in enumerate((None, 10, 10)):
        lags = LagCounts.of_commit([int(NOW.timestamp()) - 2 - 60 * number] * 21, 10, NOW).to_json()
        hour = start - number * HOUR
        CaptureHour.objects.create(copy=given.copy_of(dataset), start=hour, lags=lags, read=10, logged=logged)
    text = page.get("/datasets/trips/ingestion").content.decode().partition('id="lag-1"')[2].partition("</section>")[0]
    areas = re.findall(r'class="s".*?class="bandfill" d="([^"]*)"', text, re.DOTALL)
    assert [each.count("M") for each in areas] == [3, 2], "how long changes took, and messages that were counted"
    assert "All 20 messages logged in the last 7 days are in commits" in text
    assert ('<td class="num">30</td>' in text, "2 min" in text) == (True, True)
    assert ("Messages logged in each hour" in text, "Red:" in text, 'class="marked"' in text) == (True, False, False)
    CaptureHour.objects.filter(start=start - HOUR).update(source=10)
    sourced = "are in commits; 10 were also counted at the source."
    assert sourced in page.get("/datasets/trips/ingestion").content.decode()
    CaptureHour.objects.filter(start=start - HOUR).update(logged=11, read=11)
    lacks = "In 1 hour of 7 days (13:00) the changelog does not match the source."
    assert lacks in page.get("/datasets/trips/ingestion").content.decode()
    CaptureHour.objects.filter(start=start - 2 * HOUR).update(read=9)
    CaptureHour.objects.filter(start=start - HOUR).update(read=12)
    same = "In 2 hours of 7 days (13:00, 12:00) the changelog does not match the source, or what the commits have read."
    assert same in page.get("/datasets/trips/ingestion").content.decode()
    CaptureHour.objects.filter(start=start - HOUR).update(read=11)
    both = "In 2 hours of 7 days (13:00, 12:00) the changelog does not match the source, or what the commits have read."
    assert both in page.get("/datasets/trips/ingestion").content.decode()
    marked = re.findall(
        r'bandfill" d="[^"]*"/><path class="marked" d="([^"]*)"', page.get("/datasets/trips/ingestion").content.decode()
    )
    assert ([each.count("M") for each in marked], len({*marked})) == ([2, 2], 2), "both hours, in two widths"
    CaptureHour.objects.update(source=None)
    read = "In 1 hour of 7 days (12:00) the changelog does not match what the commits have read."
    assert read in page.get("/datasets/trips/ingestion").content.decode()


def test_a_dataset_that_is_read_by_its_cursor_has_no_such_card(page: Client) -> None:
    given.feed(given.dataset("by-cursor"))
    assert 'id="cap"' not in page.get("/datasets/by-cursor/ingestion").content.decode()


def test_a_topic_is_told_with_its_cluster_and_where_it_was_begun(dataset: Dataset, page: Client) -> None:
    begun = ",".join(f"{partition}:1000" for partition in range(300))
    capture(captured_load=1, captured_from=begun, captured_table="kafka:a:9092,b:9092/shop.orders")
    TapServer.objects.create(
        address="kafka:a:9092,b:9092", seen_at=NOW, error="The registry of schemas at b was not reached."
    )
    text = card(page)
    assert all(fact in text for fact in ("kafka:a:9092,b:9092", "shop.orders", "0:1000,1:1000", "was not reached"))
    assert "299:1000" not in text
