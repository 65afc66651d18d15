"""Raw chunks of loads: who may read them again, where they lie, and for how long."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from ingestion.captures.records import capture_of
from ingestion.models import Capture, JobRun, JobState
from ingestion.runs import job_runs
from ingestion.runs.job_specs import job_spec_of, raw_chunks_uri
from ingestion.runs.run_worker import Worker, run_next
from ingestion.runs.source_use import raw_chunks
from ingestion.spark.contract.spec import RawSpec
from lakehub.accounts.models import AuditEntry
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Refused
from tests import factories as given
from tests.factories import NOW
from tests.web.ingestion.conftest import FakeLauncher

pytestmark = pytest.mark.django_db
WEEK = timedelta(days=7)


@pytest.fixture
def captured(copy: DatasetCopy, tmp_path: Path) -> DatasetCopy:
    """flights, captured from ops.flights, in a lake of its own."""
    feed = copy.dataset.feed
    feed.connection = given.connection("tapped", "mysql://reader:hunter2@db.example.org:3306/ops", plugin="mysql")
    feed.object = "flights"
    feed.save()
    capture_of(feed)
    copy.data_center.lake_uri = (tmp_path / "lake").as_uri()
    copy.data_center.save()
    copy.uri = (tmp_path / "lake" / "flights").as_uri()
    copy.save()
    return given.copy_of(copy.dataset)


def ask(copy: DatasetCopy, kind: str = "bootstrap", **params: Any) -> JobRun:
    return job_runs.request_run(copy, kind, params, asked_by="ana", now=NOW)


def raw_of(run: JobRun) -> RawSpec | None:
    return job_spec_of(run, staging="file:///staging", ahead=timedelta(), now=NOW)[0].raw


def test_a_load_is_told_where_its_chunks_land(captured: DatasetCopy, settings: Any) -> None:
    uri = f"{captured.data_center.lake_uri}/.lakehub/raw/flights"
    assert raw_of(ask(captured)) == RawSpec(uri)
    assert raw_of(ask(captured, replace=True, from_chunks=True)) == RawSpec(uri, is_read=True)
    assert raw_of(ask(captured, "drop")) == RawSpec(uri)
    settings.LAKEHUB_RAW_DAYS = 0
    assert raw_of(JobRun.objects.earliest("pk")) == RawSpec(uri, is_kept=False)
    given.with_table(captured)
    assert raw_of(ask(captured, "incremental")) is None


def test_chunks_are_read_again_where_that_is_asked_for(captured: DatasetCopy) -> None:
    call_command("ingest", "bootstrap", "flights", "--replace", "--from-chunks")
    run = JobRun.objects.get()
    assert run.params == {"replace": True, "from_chunks": True}
    assert AuditEntry.objects.get(action="bootstrap").detail["from_chunks"] is True
    with pytest.raises(Refused, match="ask for `replace`, too"):
        ask(captured, from_chunks=True)
    with pytest.raises(Refused, match="`from_chunks` is 'yes': give true or false"):
        ask(captured, replace=True, from_chunks="yes")


def test_only_tables_that_are_captured_from_a_mariadb_have_chunks(copy: DatasetCopy) -> None:
    with pytest.raises(Refused, match="Dataset `flights` cannot be loaded from chunks"):
        ask(copy, replace=True, from_chunks=True)
    assert raw_of(ask(copy)) is None


def test_chunks_of_a_capture_that_was_stopped_are_not_read_again(
    captured: DatasetCopy, worker: Worker, launcher: FakeLauncher
) -> None:
    """And no other load of the dataset begins for them."""
    Capture.objects.update(captured_load=1, captured_from="0-1-7", stopped_load=1, stopped_why="It was truncated.")
    run = ask(captured, replace=True, from_chunks=True)
    run_next(worker)
    run.refresh_from_db()
    assert run.error.startswith("It was truncated. What changed since is nowhere")
    assert (Capture.objects.get().load, launcher.asked) == (1, [])


def landed(copy: DatasetCopy, load: str, *, at: datetime) -> Path:
    folder = Path(raw_chunks_uri(copy).removeprefix("file://")) / load
    folder.mkdir(parents=True)
    for name in ("beginning.json", "00000000.avro"):
        (folder / name).write_text("{}")
        os.utime(folder / name, (at.timestamp(), at.timestamp()))
    return folder


def test_chunks_are_kept_for_days_and_no_longer_than_the_dataset(captured: DatasetCopy) -> None:
    old, new = landed(captured, "old", at=NOW - 2 * WEEK), landed(captured, "new", at=NOW - WEEK / 2)
    run = ask(captured)
    raw_chunks.delete_old(wall=NOW, retention=WEEK)
    assert old.exists(), "a load may go on with them"
    JobRun.objects.filter(pk=run.pk).update(state=JobState.SUCCEEDED)
    raw_chunks.delete_old(wall=NOW, retention=WEEK)
    assert (old.exists(), new.exists()) == (False, True)
    captured.dataset.offboarded_at = NOW
    captured.dataset.save()
    raw_chunks.delete_old(wall=NOW, retention=WEEK)
    assert not new.parent.exists()


def test_chunks_of_a_copy_that_was_removed_go(captured: DatasetCopy) -> None:
    chunks = landed(captured, "new", at=NOW)
    DatasetCopy.with_removed.filter(pk=captured.pk).update(removed_at=NOW)
    raw_chunks.delete_old(wall=NOW, retention=WEEK)
    assert not chunks.exists()
