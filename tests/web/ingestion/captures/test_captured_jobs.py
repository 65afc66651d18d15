"""The jobs of a captured dataset: a load waits for the tap, all others read the topic of the changelog."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from ingestion.captures import states
from ingestion.captures.records import capture_of, topic_of
from ingestion.domain.following import FollowSums
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.models import Capture, Finding, JobRun, JobState, TapServer
from ingestion.runs import job_runs
from ingestion.runs.copy_lag import lag_of_copy
from ingestion.runs.job_specs import job_spec_of
from ingestion.runs.run_worker import Worker, run_next
from ingestion.schemas import registry
from ingestion.spark.contract.report import SUCCEEDED, JobReport
from ingestion.spark.contract.secret_refs import resolved_options
from ingestion.spark.contract.spec import JobSpec
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Refused
from tests import factories as given
from tests.factories import NOW
from tests.unit.ingestion.heatpipe.messages import subject_schema
from tests.web.ingestion.conftest import FakeLauncher

pytestmark = pytest.mark.django_db
URL = "mysql://reader:hunter2@db.example.org:3306/ops"


@pytest.fixture
def copy(copy: DatasetCopy) -> DatasetCopy:
    """flights, captured from ops.flights."""
    feed = copy.dataset.feed
    feed.connection = given.connection("tapped", URL, plugin="mysql")
    feed.object = "flights"
    feed.save()
    capture_of(feed)
    return given.copy_of(copy.dataset)


def capture() -> Capture:
    return Capture.objects.get()


def ask(copy: DatasetCopy, **params: Any) -> JobRun:
    return job_runs.request_run(copy, "bootstrap", params, asked_by="ana", now=NOW)


def followed(copy: DatasetCopy) -> None:
    """Its changelog was read to the end now."""
    sums = FollowSums(looks=1, looked_at=NOW).to_json()
    JobRun.objects.create(copy=copy, kind="follow", due_at=NOW, state=JobState.RUNNING, progress=sums)


def taken_on() -> None:
    Capture.objects.update(captured_load=capture().load, captured_from="0-1-7")


def test_a_load_waits_until_the_tap_captures_what_changes(
    copy: DatasetCopy, worker: Worker, launcher: FakeLauncher
) -> None:
    """It says for what, the attempt does not count, and it begins when the tap has."""
    run = ask(copy)
    run_next(worker)
    run.refresh_from_db()
    assert (run.state, run.attempt, launcher.asked) == (JobState.QUEUED, 0, [])
    assert "`manage.py tap`" in run.error
    assert "hunter2" not in run.error
    TapServer.objects.create(address="db.example.org:3306", error="`log_bin` is OFF")
    JobRun.objects.update(due_at=NOW)
    run_next(worker)
    run.refresh_from_db()
    assert "`log_bin` is OFF" in run.error
    taken_on()
    JobRun.objects.update(due_at=NOW)
    run_next(worker)
    assert [spec.kind for spec, _ in launcher.asked] == ["bootstrap"]


def test_a_table_that_cannot_be_captured_fails_its_load_with_the_reason(copy: DatasetCopy, worker: Worker) -> None:
    """The next load tries again: the table may have been mended."""
    run = ask(copy)
    Capture.objects.update(captured_load=1, stopped_load=1, stopped_why="it has no primary key")
    run_next(worker)
    run.refresh_from_db()
    assert capture().load == 2  # the stop was of the load before
    Capture.objects.update(captured_load=2, stopped_load=2)
    JobRun.objects.update(due_at=NOW)
    run_next(worker)
    run.refresh_from_db()
    assert (run.error, capture().load) == ("it has no primary key", 2)


def test_a_reload_of_a_table_that_is_captured_needs_no_other_load(
    copy: DatasetCopy, worker: Worker, launcher: FakeLauncher
) -> None:
    """Another would end what other copies read meanwhile."""
    taken_on()
    ask(copy, replace=True)
    run_next(worker)
    assert (capture().load, len(launcher.asked)) == (1, 1)


def test_copies_that_are_loaded_again_after_a_stop_wait_for_one_load(
    copy: DatasetCopy, worker: Worker, launcher: FakeLauncher
) -> None:
    other = given.copy(copy.dataset, "dc2")
    taken_on()
    states.note_stopped(capture().topic, 1, "it was truncated")
    ask(copy, replace=True)
    ask(other, replace=True)
    for _ in range(4):
        run_next(worker)
        JobRun.objects.update(due_at=NOW)
    assert (capture().load, capture().is_captured, launcher.asked) == (2, False, [])
    taken_on()
    run_next(worker)
    run_next(worker)
    assert (len(launcher.asked), capture().load) == (2, 2)


def test_a_copy_with_a_table_is_not_loaded_after_a_stop_without_being_replaced(
    copy: DatasetCopy, worker: Worker
) -> None:
    """Nothing would be read again, and changes would be missing for ever."""
    JobRun.objects.create(copy=copy, kind="bootstrap", due_at=NOW, state=JobState.SUCCEEDED, started_at=NOW)
    taken_on()
    states.note_stopped(capture().topic, 1, "It was truncated.")
    run = ask(copy)
    run_next(worker)
    run.refresh_from_db()
    assert run.error == "It was truncated. Bootstrap the copy with `replace`: it lacks changes."
    assert capture().load == 1


def test_a_stop_of_an_earlier_load_is_a_gap_of_every_copy_that_there_is(copy: DatasetCopy) -> None:
    """And of a dataset that was left for a while."""
    other = given.copy(copy.dataset, "dc2")
    Capture.objects.update(load=3, captured_load=2)
    states.note_stopped(capture().topic, 2, "it was truncated")
    assert (capture().is_stopped, capture().incomplete_copies) == (False, [copy.pk, other.pk])
    Capture.objects.update(captured_load=3, incomplete_copies=[])
    copy.dataset.offboarded_at = NOW
    copy.dataset.save()
    assert states.stop_left() == 1
    assert (capture().is_stopped, capture().incomplete_copies) == (True, [copy.pk, other.pk])


def spec_of(run: JobRun, **fields: Any) -> tuple[JobSpec, dict[str, str]]:
    return job_spec_of(run, staging="file:///staging", ahead=timedelta(), now=NOW, **fields)


def test_a_job_is_told_of_the_topic_and_of_the_schemas_that_its_messages_may_have(copy: DatasetCopy) -> None:
    topic = topic_of(copy.dataset)
    registry.register(
        topic, json.dumps(subject_schema().avro), team=copy.dataset.team, actor="tap", now=NOW, is_captured=True
    )
    other = registry.register("other", json.dumps(subject_schema().avro), team=copy.dataset.team, actor="tap", now=NOW)
    spec, secrets = spec_of(JobRun(copy=copy, kind="incremental", due_at=NOW))
    assert spec.source is not None
    read = EventTopic.from_options(resolved_options(spec.source, secrets))
    assert (read.topic, [schema.version for schema in read.schemas]) == (topic, [1])
    assert (read.known.newest, read.known.at) == (other.pk, NOW)
    assert spec.table.reference_key is None
    assert spec.table.tombstone_uri.endswith("/_tombstones/flights")
    assert "hunter2" not in spec.to_json()


def test_the_address_of_the_changelog_is_a_secret(copy: DatasetCopy, settings: Any) -> None:
    settings.LAKEHUB_CHANGELOG_URL = "kafka://app:s3cret@broker:9092"
    spec, secrets = spec_of(JobRun(copy=copy, kind="incremental", due_at=NOW))
    assert "s3cret" not in spec.to_json()
    assert spec.source is not None
    assert resolved_options(spec.source, secrets)["changelog_url"] == "kafka://app:s3cret@broker:9092"


def test_a_look_asks_the_database_nothing(copy: DatasetCopy, django_assert_num_queries: Any) -> None:
    run = JobRun(copy=copy, kind="follow", due_at=NOW)
    spec_of(run)
    with django_assert_num_queries(0):
        spec, _ = spec_of(run)
    assert spec.source is not None
    assert spec.source.options["schemas"] == "[]"


def test_what_the_tap_has_not_taken_is_not_known_to_be_here(copy: DatasetCopy) -> None:
    """A look that has read all of the changelog says nothing of a source that nobody captures."""
    JobRun.objects.create(copy=copy, kind="bootstrap", due_at=NOW, state=JobState.SUCCEEDED, started_at=NOW)
    followed(copy)
    assert lag_of_copy(copy, now=NOW) is None
    Capture.objects.update(captured_load=1, captured_table="db.example.org:3306/ops.flights")
    server = TapServer.objects.create(address="db.example.org:3306")
    assert lag_of_copy(copy, now=NOW) is None
    TapServer.objects.update(caught_up_at=NOW - timedelta(seconds=40))
    assert lag_of_copy(copy, now=NOW) == timedelta(seconds=40)
    TapServer.objects.update(caught_up_at=NOW - timedelta(days=1))
    assert lag_of_copy(copy, now=NOW) is None
    TapServer.objects.filter(pk=server.pk).update(caught_up_at=NOW + timedelta(seconds=5))
    assert lag_of_copy(copy, now=NOW) == timedelta()
    Capture.objects.update(stopped_load=1)
    assert lag_of_copy(copy, now=NOW) is None


def test_no_partition_of_a_captured_dataset_is_read_again(copy: DatasetCopy) -> None:
    with pytest.raises(Refused, match="bootstrap it with `replace`"):
        job_runs.request_run(copy, "backfill", {"partitions": ["2026-11-16"]}, asked_by="ana", now=NOW)


def test_a_capture_that_goes_on_is_no_news_for_a_copy_that_lacks_what_came_between(
    copy: DatasetCopy, worker: Worker, launcher: FakeLauncher
) -> None:
    """The finding stays until the copy was loaded whole, and how far it is behind is not known."""
    other = given.copy(copy.dataset, "dc2")
    taken_on()
    states.note_stopped(capture().topic, 1, "it was truncated")
    states.tell_stops({copy.dataset_id: "it was truncated"}, now=NOW)
    run = ask(copy, replace=True)
    run_next(worker)
    taken_on()
    states.tell_stops({copy.dataset_id: ""}, now=NOW)
    assert set(Finding.objects.values_list("copy", "cleared_at")) == {(copy.pk, None), (other.pk, None)}
    launcher.answer = lambda spec: JobReport(run_id=spec.run_id, status=SUCCEEDED, checkpoint={"load": 1})
    JobRun.objects.update(due_at=NOW)
    run_next(worker)  # it has begun before the capture was stopped
    assert capture().incomplete_copies == [copy.pk, other.pk]
    run = ask(copy, replace=True)
    launcher.answer = lambda spec: JobReport(run_id=spec.run_id, status=SUCCEEDED, checkpoint={"load": 2})
    JobRun.objects.update(due_at=NOW)
    TapServer.objects.create(address="db.example.org:3306", caught_up_at=NOW)
    Capture.objects.update(captured_table="db.example.org:3306/ops.flights")
    run_next(worker)
    run.refresh_from_db()
    followed(copy)
    assert run.state == JobState.SUCCEEDED
    assert [*Finding.objects.filter(cleared_at=None).values_list("copy", flat=True)] == [other.pk]
    assert capture().incomplete_copies == [other.pk]
    assert lag_of_copy(copy, now=NOW) == timedelta()


def test_while_its_connection_leads_to_another_server_a_load_waits_or_begins_anew_where_that_is_asked_for(
    copy: DatasetCopy, worker: Worker, launcher: FakeLauncher
) -> None:
    """Rows of a replica that is behind would lack what the changelog had before."""
    taken_on()
    Capture.objects.update(captured_table="former.example.org:3306/ops.flights")
    run = ask(copy)
    run_next(worker)
    run.refresh_from_db()
    assert (launcher.asked, capture().load) == ([], 1)
    assert "The load begins when the tap of db.example.org:3306 captures the changes" in run.error
    run.delete()
    again = ask(copy, replace=True)
    run_next(worker)
    assert (launcher.asked, capture().load, capture().load_run) == ([], 2, again.key)
    assert (
        Finding.objects.get(kind="capture_stopped").copy == copy
    )  # and each other copy has it, until it is loaded too
    taken_on()
    Capture.objects.update(captured_table="db.example.org:3306/ops.flights")
    JobRun.objects.update(due_at=NOW)
    run_next(worker)
    assert (len(launcher.asked), capture().load) == (1, 2)


def test_a_load_that_replaces_begins_anew_where_the_server_cannot_be_tapped(
    copy: DatasetCopy, worker: Worker, launcher: FakeLauncher
) -> None:
    """As it does not know what was captured last: nothing would be captured after the load either."""
    taken_on()
    Capture.objects.update(captured_table="db.example.org:3306/ops.flights")
    states.tell_stops({copy.dataset_id: "The server does not know the transaction 0-1-7"}, now=NOW)
    ask(copy, replace=True)
    run_next(worker)
    assert (launcher.asked, capture().load, capture().incomplete_copies) == ([], 2, [copy.pk])
