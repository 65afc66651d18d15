"""The page of loads: where raw chunks lie, loading a table again, and reading some rows again."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from ingestion.captures.records import capture_of
from ingestion.models import JobKind, JobRun, JobState
from ingestion.runs.job_specs import raw_chunks_uri
from ingestion.runs.source_use import kept_loads
from ingestion.spark.tables.timeline import open_storage
from lakehub.accounts.models import AuditEntry, Role
from lakehub.catalog.models import Dataset
from tests import factories as given
from tests.factories import DAY, NOW

pytestmark = pytest.mark.django_db
PAGE, AGAIN, ROWS = "/datasets/trips/loads", "/datasets/trips/loads/again", "/datasets/trips/loads/rows"
RAW = "/api/v1/datasets/trips/raw-chunks"


@pytest.fixture
def trips(tmp_path: Path) -> Dataset:
    """Captured and loaded, with a key of two columns, in a lake of its own."""
    dataset = given.dataset("trips", record_key=["carrier", "number"])
    capture_of(
        given.feed(dataset, connection=given.connection("tapped", "mysql://r:hunter2@db:3306/ops", plugin="mysql"))
    )
    copy = given.copy_of(dataset)
    copy.data_center.lake_uri, copy.uri = (tmp_path / "lake").as_uri(), (tmp_path / "lake" / "trips").as_uri()
    copy.data_center.save()
    copy.save()
    given.with_table(copy)
    return dataset


@pytest.fixture
def landed(trips: Dataset, tmp_path: Path) -> JobRun:
    """A whole load of two days ago by a run, and what another has left."""
    run = given.run(given.copy_of(trips), JobKind.BOOTSTRAP, JobState.SUCCEEDED)
    raw = tmp_path / "lake" / ".lakehub" / "raw" / "trips"
    for name, files in {str(run.key): ("beginning.json", "end.json"), "former <i>": ("beginning.json",)}.items():
        (raw / name).mkdir(parents=True)
        for file in files:
            (raw / name / file).write_text(json.dumps({"rows": 1200, "chunks": 1}))
            os.utime(raw / name / file, (NOW.timestamp() - 2 * DAY.total_seconds(),) * 2)
    return run


@pytest.fixture(autouse=True)
def _wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are as old as the instance's clock has it."""
    monkeypatch.setattr("lakehub.clock.ahead", lambda: 0 * DAY)
    monkeypatch.setattr("lakehub.clock.now", lambda: NOW)


def test_it_shows_where_raw_chunks_lie_and_until_when(page: Client, landed: JobRun, tmp_path: Path) -> None:
    text = page.get(PAGE).content.decode()
    folder = (tmp_path / "lake" / ".lakehub" / "raw" / "trips").as_uri()
    assert all(fact in text for fact in (f"{folder}/{landed.key}", "1,200 rows", f"run {landed.pk}", "A part of the"))
    assert ("hunter2" in text, "<i>" in text) == (False, False)
    (place,) = page.get(RAW).json()
    assert (place["data_center"], place["uri"], place["problem"]) == ("dc1", folder, "")
    whole = next(load for load in place["loads"] if load["is_whole"])
    assert (whole["uri"], whole["run"], whole["rows"]) == (f"{folder}/{landed.key}", landed.pk, 1200)
    times = [datetime.fromisoformat(whole[name]) for name in ("written_at", "kept_until")]
    assert times == [NOW - 2 * DAY, NOW + 5 * DAY]
    assert [load["rows"] for load in place["loads"] if not load["is_whole"]] == [None]


def test_a_folder_that_cannot_be_read_says_so(page: Client, landed: JobRun, tmp_path: Path) -> None:
    (tmp_path / "lake" / ".lakehub" / "raw" / "trips" / str(landed.key) / "end.json").write_text("{")
    text = page.get(PAGE).content.decode()
    assert "The folder cannot be read." in text
    assert CHUNKS.findall(text) == [(" disabled", "Their folder cannot be read.")]
    assert page.get(RAW).json()[0]["problem"].startswith("JSONDecodeError")


@pytest.mark.parametrize(
    ("origin", "params"), [("source", {"replace": True}), ("chunks", {"replace": True, "from_chunks": True})]
)
def test_the_table_is_loaded_again(page: Client, landed: JobRun, origin: str, params: dict[str, bool]) -> None:
    assert 'value="chunks"' in page.get(PAGE).content.decode()
    answer = page.post(AGAIN, {"data_center": "dc1", "origin": origin}, follow=True)
    run = JobRun.objects.exclude(pk=landed.pk).get(copy=landed.copy, kind=JobKind.BOOTSTRAP)
    assert (run.params, run.asked_by) == (params, "ines")
    assert f"Run {run.pk} is queued" in answer.content.decode()
    assert AuditEntry.objects.get(action="bootstrap").detail == {**params, "run": run.pk}


CHUNKS = re.compile(r'value="chunks"( disabled)?>.*?class="why">(.*?)</span>')


def test_chunks_that_are_not_kept_are_shown_with_the_reason_and_not_loaded(page: Client, trips: Dataset) -> None:
    text = page.get(PAGE).content.decode()
    assert CHUNKS.findall(text) == [(" disabled", "No raw chunks of a whole load are kept in dc1.")]
    text = page.post(AGAIN, {"data_center": "dc1", "origin": "chunks"}, follow=True).content.decode()
    assert "No raw chunks of a whole load of trips are kept in dc1." in text
    assert not JobRun.objects.filter(copy__dataset=trips, kind=JobKind.BOOTSTRAP).exists()


def test_each_copy_offers_the_chunks_of_its_own_and_no_other_folder_is_read(
    page: Client, landed: JobRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = given.copy(landed.copy.dataset, "dc2")
    read = list[str]()

    def open_counted(uri: str) -> tuple[Any, str]:
        read.append(uri)
        return open_storage(uri)

    monkeypatch.setattr(kept_loads, "open_storage", open_counted)
    texts = {name: page.get(PAGE, {"copy": name}).content.decode() for name in ("dc1", "dc2")}
    assert read == [raw_chunks_uri(landed.copy), raw_chunks_uri(copy)]
    assert CHUNKS.findall(texts["dc1"])[0][0] == ""
    assert CHUNKS.findall(texts["dc2"]) == [(" disabled", "No raw chunks of a whole load are kept in dc2.")]
    for name, text in texts.items():
        assert re.findall(r'name="data_center" value="(.*?)"', text) == [name, name]
        assert ("<select" in text, f'?copy={name}" aria-current="true"' in text) == (False, True)
    read.clear()
    answer = page.post(AGAIN, {"data_center": "dc2", "origin": "chunks"}, follow=True).content.decode()
    assert "No raw chunks of a whole load of trips are kept in dc2." in answer
    assert not JobRun.objects.filter(copy=copy).exists()
    assert len(read) == 1
    assert page.get(PAGE, {"copy": "dc3"}).status_code == 404


def test_some_rows_are_read_again_by_keys_that_were_pasted(page: Client, trips: Dataset) -> None:
    page.post(ROWS, {"data_center": "dc1", "keys": "UA, 17\r\n\r\nLH\t1,5\n"})
    assert JobRun.objects.get(copy__dataset=trips, kind=JobKind.BACKFILL).params == {
        "keys": [["UA", "17"], ["LH", "1,5"]]
    }
    Dataset.objects.filter(pk=trips.pk).update(record_key=["note"])
    page.post(ROWS, {"data_center": "dc1", "keys": "a, b\tc"})
    assert JobRun.objects.filter(kind=JobKind.BACKFILL).latest("pk").params == {"keys": [["a, b\tc"]]}


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        (" \n", "No record key was given"),
        ("UA,17\nLH", "Line 2 has 1 values, and the record key has 2"),
        ("UA,17,3", "Line 1 has 3 values"),
        ("UA,17\n" * 10_001, "10,001 keys are given: a backfill reads 10,000 at most"),
    ],
)
def test_keys_that_make_no_sense_are_refused(page: Client, trips: Dataset, keys: str, why: str) -> None:
    assert why in page.post(ROWS, {"data_center": "dc1", "keys": keys}, follow=True).content.decode()
    assert not JobRun.objects.filter(copy__dataset=trips, kind=JobKind.BACKFILL).exists()


def test_a_viewer_sees_it_and_loads_nothing(client: Client, trips: Dataset, landed: JobRun) -> None:
    given.member(person := given.user("looks"), trips.team, Role.VIEWER)
    client.force_login(person)
    text = client.get(PAGE).content.decode()
    assert ("1,200 rows" in text, AGAIN in text, ROWS in text) == (True, False, False)
    assert client.post(AGAIN, {"data_center": "dc1"}).status_code == 403
    assert client.post(ROWS, {"data_center": "dc1", "keys": "UA,17"}).status_code == 403
    assert not JobRun.objects.filter(copy__dataset=trips, state=JobState.QUEUED).exists()


def test_a_table_that_is_read_by_its_cursor_has_no_chunks_and_no_single_rows(page: Client) -> None:
    text = page.get("/datasets/flights/loads").content.decode()
    assert ("/datasets/flights/loads/again" in text, "loads/rows" in text) == (True, False)
    assert CHUNKS.findall(text) == [(" disabled", "Only tables that are captured from a database keep raw chunks.")]
    answer = page.post("/datasets/flights/loads/again", {"data_center": "dc1", "origin": "chunks"}, follow=True)
    assert "No raw chunks of a whole load" in answer.content.decode()
    assert page.get("/api/v1/datasets/flights/raw-chunks").json() == []
