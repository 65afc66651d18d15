"""The options of a feed on the pages: set at onboarding and in the settings, shown with their effective values."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from lakehub.accounts.models import AuditEntry
from lakehub.catalog.models import Dataset, Feed, FeedKind
from tests import factories as make

SETTINGS, INGESTION = "/datasets/flights/settings", "/datasets/flights/ingestion"
ONBOARDING = {
    "connection": "ops_db", "table": "airlines", "name": "carriers", "team": "flight-ops", "tier": "3",
    "kind": "append-plus-update", "data_centers": ["dc1"], "primary_key": "carrier", "reference_key": "updated_at",
    "grain": "none", "partition_tz": "UTC", "ingested": "on",
}  # fmt: skip
REFUSED = [
    ("feed-overlap_s", "NaN", "overlap_s is &#x27;NaN&#x27;: give a number from 0 to 31622400. Leave it out for 120."),
    ("feed-overlap_s", "inf", "overlap_s is &#x27;inf&#x27;: give a number"),
    ("feed-overlap_s", "-1", "overlap_s is -1: give a number"),
    ("feed-deadline_s", "1e99", "deadline_s is 1e+99: give a number"),
    ("feed-deadline_s", "1e999", "deadline_s is inf: give a number"),
    ("feed-deadline_s", "29", "deadline_s is 29: give a number from 30"),
    ("feed-deadline_s", "100,000", "deadline_s is 100000: give a number from 30 to 86400"),
    ("feed-rows_per_s", "0.5", "rows_per_s is 0.5: give 0, or a number from 100"),
    ("feed-commit_rows", "9,999", "commit_rows is 9999: give a number from 10000 to 1000000000, without decimals"),
    ("feed-overlap_s", "1,5", "overlap_s is &#x27;1,5&#x27;: give a number"),
    ("feed-overlap_s", "1,0000", "overlap_s is &#x27;1,0000&#x27;: give a number"),
    ("feed-chunk_rows", "1.5", "chunk_rows is 1.5: give a number from 1000 to 1000000, without decimals"),
    ("feed-chunk_rows", "²", "chunk_rows is &#x27;²&#x27;: give a number"),
    ("feed-inputs_back_s", "<img src=x onerror=alert(1)>", "inputs_back_s is &#x27;&lt;img src=x"),
    ("feed-index", "recrd_index", "there is no such index. Did you mean record_index?"),
    ("feed-index", "<b>x</b>", "index is &#x27;&lt;b&gt;x&lt;/b&gt;&#x27;: there is no such index."),
]


@pytest.fixture
def loaded(page: Client, flights: Dataset) -> Dataset:
    """The dataset is loaded from a connection."""
    make.feed_of_kind(flights, FeedKind.CONNECTION)
    Dataset.objects.filter(pk=flights.pk).update(ingested=True)
    flights.refresh_from_db()
    return flights


@pytest.fixture
def form(page: Client, loaded: Dataset) -> dict[str, str]:
    html = page.get(SETTINGS).content.decode()
    fields = dict(re.findall(r'<input[^>]* name="([\w-]+)"[^>]* value="([^"]*)"', html))
    return {**fields, "tier": "1", "description": ""}


@pytest.fixture
def source(page: Client, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "ops.db") as database:
        database.execute("CREATE TABLE airlines (carrier TEXT NOT NULL PRIMARY KEY, updated_at TEXT)")
        database.execute("INSERT INTO airlines VALUES ('UA', '2026-11-16')")
    make.connection("ops_db", f"sqlite:///{tmp_path / 'ops.db'}")


def text_of(answer: Any) -> str:
    """Without tags; what was escaped stays so."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", answer.content.decode()))


def test_the_settings_set_every_option_and_say_so(page: Client, form: dict[str, str], loaded: Dataset) -> None:
    typed = {
        "feed-index": "record_index", "feed-overlap_s": "0", "feed-chunk_rows": "5,000", "feed-deadline_s": "90.5",
        "feed-inputs_back_s": "86400", "feed-commit_rows": "10,000", "feed-commit_mib": "64", "feed-commit_s": "7.5",
        "feed-rows_per_s": "500", "feed-max_file_mib": "8", "feed-readers": "4",
    }  # fmt: skip
    assert "Saved: the feed." in text_of(page.post(SETTINGS, {**form, **typed}, follow=True))
    options = Feed.objects.get(dataset=loaded).options
    assert options == {
        "index": "record_index", "overlap_s": 0, "chunk_rows": 5000, "commit_rows": 10_000, "commit_mib": 64, "commit_s": 7.5,
        "rows_per_s": 500, "max_file_mib": 8, "readers": 4,
        "deadline_s": 90.5, "inputs_back_s": 86400,
    }  # fmt: skip
    detail = AuditEntry.objects.order_by("-pk")[0].detail
    assert (detail["was"], detail["becomes"]) == ({"feed_options": {}}, {"feed_options": options})
    html = page.get(SETTINGS).content.decode()
    assert "<option selected>record_index</option>" in html
    assert 'name="feed-chunk_rows" value="5000" placeholder="20,000"' in html


def test_each_field_says_what_may_be_typed(page: Client, loaded: Dataset) -> None:
    text = text_of(page.get(SETTINGS))
    assert "a job commits and reads on. From 10,000 to 1,000,000,000." in text
    assert "in memory a job commits and reads on. From 8 to 1,048,576." in text
    assert "has read and reads on. From 5 to 31,622,400." in text
    assert "0 is as fast as it can. 0, or from 100 to 1,000,000,000." in text


def test_an_empty_field_is_the_default_again(page: Client, loaded: Dataset, form: dict[str, str]) -> None:
    Feed.objects.filter(dataset=loaded).update(options={"overlap_s": 5, "deadline_s": 1e-7 + 30})
    page.post(SETTINGS, {**form, "feed-overlap_s": ""}, follow=True)
    assert Feed.objects.get(dataset=loaded).options == {}


def test_an_option_that_was_set_is_no_change(page: Client, loaded: Dataset) -> None:
    Feed.objects.filter(dataset=loaded).update(options={"overlap_s": 1e-7, "inputs_back_s": 2.0, "chunk_rows": 7})
    html = page.get(SETTINGS).content.decode()
    fields = dict(re.findall(r'<input[^>]* name="([\w-]+)"[^>]* value="([^"]*)"', html))
    assert "Nothing differs" in text_of(page.post(SETTINGS, {**fields, "tier": "1", "description": ""}, follow=True))


@pytest.mark.parametrize(("field", "value", "message"), REFUSED)
def test_the_settings_explain_each_mistake_at_its_field(
    page: Client, form: dict[str, str], loaded: Dataset, field: str, value: str, message: str
) -> None:
    answer = page.post(SETTINGS, {**form, field: value})
    assert answer.status_code == 422
    assert message in text_of(answer)
    assert re.search(rf'name="{field}"[^>]* aria-invalid="true"', answer.content.decode())
    assert Feed.objects.get(dataset=loaded).options == {}


@pytest.mark.parametrize(("field", "value", "message"), REFUSED)
def test_onboarding_explains_each_mistake_at_its_field(
    page: Client, source: None, field: str, value: str, message: str
) -> None:
    answer = page.post("/onboarding", {**ONBOARDING, field: value})
    assert answer.status_code == 422
    assert message in text_of(answer)
    assert re.search(rf'name="{field}"[^>]* aria-invalid="true"', answer.content.decode())
    assert not Dataset.objects.filter(name="carriers").exists()


def test_onboarding_sets_them(page: Client, source: None) -> None:
    page.post("/onboarding", {**ONBOARDING, "feed-index": "record_index", "feed-overlap_s": "60"}, follow=True)
    assert Feed.objects.get(dataset__name="carriers").options == {"index": "record_index", "overlap_s": 60}


def test_a_captured_dataset_keeps_a_history_and_shows_where(
    page: Client, form: dict[str, str], loaded: Dataset
) -> None:
    Feed.objects.update(connection=make.connection("tapped", "mysql://reader@db/ops", plugin="mysql"))
    assert "Historyoff default" in text_of(page.get(INGESTION))
    assert 'id="hist"' not in page.get("/datasets/flights/data").content.decode()
    answer = page.post(SETTINGS, {**form, "feed-history": "on", "feed-history_days": "30"}, follow=True)
    assert "Saved: the feed." in text_of(answer)
    assert Feed.objects.get(dataset=loaded).options == {"history": True, "history_days": 30}
    assert "<option selected>on</option>" in page.get(SETTINGS).content.decode()
    data = text_of(page.get("/datasets/flights/data"))
    assert "begins with the next changes" in data
    assert "/_history/flights" in data
    refused = page.post(SETTINGS, {**form, "feed-history": "<b>"})
    assert "history is &#x27;&lt;b&gt;&#x27;: give true or false." in text_of(refused)


def test_what_is_only_monitored_takes_none(page: Client, source: None, flights: Dataset) -> None:
    watched = {name: value for name, value in ONBOARDING.items() if name != "ingested"}
    answer = page.post("/onboarding", {**watched, "feed-overlap_s": "60"})
    assert "carriers is only monitored: no job loads it, so its feed takes no options." in text_of(answer)
    Dataset.objects.filter(pk=flights.pk).update(ingested=False)
    assert "feed-overlap_s" not in page.get(SETTINGS).content.decode()
    assert "Feed options" not in text_of(page.get(INGESTION))


def test_everybody_reads_the_effective_values(page: Client, guest: Client, loaded: Dataset) -> None:
    Feed.objects.filter(dataset=loaded).update(options={"overlap_s": 60})
    for address in (INGESTION, SETTINGS):
        text = text_of(guest.get(address))
        assert "Overlap, seconds60Rows read at a time20,000 default" in text
        assert "Job deadline, seconds3,600 default" in text


def test_a_viewer_changes_none(guest: Client, form: dict[str, str], loaded: Dataset) -> None:
    assert guest.post(SETTINGS, {**form, "feed-overlap_s": "60"}).status_code == 403
    assert Feed.objects.get(dataset=loaded).options == {}
