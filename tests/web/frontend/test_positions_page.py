"""The page of positions: where the tap and the copies stand, and a form for those who may set it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from ingestion.captures.records import capture_of, topic_of
from ingestion.changelog import CHANGELOGS, ChangelogConfig, Outgoing
from ingestion.models import Capture, JobRun, TapServer
from lakehub.catalog.models import DatasetCopy
from tests import factories as given
from tests.factories import HOUR, NOW
from tests.web.ingestion import hudi_timeline

pytestmark = pytest.mark.django_db
PAGE, SET = "/datasets/trips/positions", "/datasets/trips/positions/set"


@pytest.fixture
def copy(settings: Any, tmp_path: Path) -> DatasetCopy:
    """Of five messages it has read three, and was loaded at the second."""
    settings.LAKEHUB_CHANGELOG, settings.LAKEHUB_CHANGELOG_URL = "segments", (tmp_path / "log").as_uri()
    dataset = given.dataset("trips")
    copy = given.with_table(given.copy_of(dataset))
    DatasetCopy.objects.filter(pk=copy.pk).update(uri=(tmp_path / "trips").as_uri())
    copy.refresh_from_db()
    connection = given.connection("tapped", "mysql://reader:hunter2@db/ops", plugin="mysql")
    topic = capture_of(given.feed(dataset, connection=connection)).topic
    Capture.objects.update(captured_load=1, captured_table="db:3306/ops.trips")
    config = ChangelogConfig(settings.LAKEHUB_CHANGELOG_URL, 86_400, lambda: NOW - HOUR)
    CHANGELOGS.get("segments")(config).writer("tap").commit([Outgoing(topic, b"k", b"event")] * 5, {})
    checkpoint = {"log": {topic: {"0": 3}}, "load": 1, "loaded_from": {topic: {"0": 1}}}
    hudi_timeline.commit(copy, "20261116100000000", {}, run=hudi_timeline.told_by(""), checkpoint=checkpoint)
    place = {"file": "binlog.000007", "offset": 4000, "begun": "0-1-18", "taken": {topic: 1500}}
    TapServer.objects.create(address="db:3306", position="0-1-17", place=place, seen_at=NOW, event_at=NOW)
    return copy


def test_it_shows_where_everything_stands(page: Client, copy: DatasetCopy) -> None:
    text = page.get(PAGE).content.decode()
    assert all(fact in text for fact in ("0-1-17", "binlog.000007", "4,000", "0-1-18", "1,500 rows of", "2 messages"))
    assert all(fact in text for fact in (topic_of(copy.dataset), "Set the position…"))
    assert "hunter2" not in text
    card = page.get("/datasets/trips/ingestion").content.decode().partition('id="cap"')[2].partition("</section>")[0]
    assert f'href="{PAGE}"' in card
    assert "binlog.000007" in card


def test_a_guest_sees_it_and_may_not_set_it(guest: Client, copy: DatasetCopy) -> None:
    assert "Set the position…" not in guest.get(PAGE).content.decode()
    assert guest.post(SET, {"to": "earliest", "why": "x"}).status_code == 403


@pytest.mark.parametrize(
    ("form", "offset", "words"),
    [
        ({"to": "earliest"}, 1, "about 2 messages are read again"),
        ({"to": "offsets", "offset-0": "2"}, 2, "about 1 messages are read again"),
        ({"to": "time", "time": "2026-11-01T00:00"}, 1, "about 2 messages"),
        ({"to": "offsets", "offset-0": "5", "may_skip": "1"}, 5, "about 2 changes are left out"),
    ],
)
def test_it_sets_the_position(page: Client, copy: DatasetCopy, form: dict[str, str], offset: int, words: str) -> None:
    answer = page.post(SET, {"data_center": "dc1", "why": "Again", **form}, follow=True)
    assert words in answer.content.decode()
    assert JobRun.objects.get(copy=copy, kind="set_position").params["offsets"] == {
        topic_of(copy.dataset): {"0": offset}
    }


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"to": "offsets", "offset-0": "5"}, "About 2 changes would be left out"),
        ({"to": "offsets"}, "one of the three"),
        ({"to": "offsets", "offset-0": "soon"}, "is not the number of a message"),
        ({"to": "offsets", "offset-9": "1"}, "has no partition"),
        ({"to": "time"}, "Give the time"),
        ({"to": "earliest", "why": ""}, "Say why"),
    ],
)
def test_what_makes_no_sense_is_said_on_the_page(
    page: Client, copy: DatasetCopy, form: dict[str, str], words: str
) -> None:
    answer = page.post(SET, {"data_center": "dc1", "why": "Again", **form}, follow=True)
    assert words in answer.content.decode()
    assert not JobRun.objects.filter(kind="set_position").exists()


def test_a_dataset_that_is_not_captured_says_so(page: Client) -> None:
    assert "is not captured" in page.get("/datasets/flights/positions").content.decode()
