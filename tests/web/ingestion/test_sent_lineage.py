"""The lineage of runs of pipelines is sent as OpenLineage, in order, and nothing of it is lost while its receiver is down."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from ingestion import clock_set_back, tasks
from ingestion.models import JobKind, JobRun, JobState, LineageReceiver, Pipeline
from ingestion.runs import feed_schedule, job_runs, run_worker
from ingestion.runs.leases import lease_end
from ingestion.runs.sent_lineage import sending
from ingestion.runs.sent_lineage.owing import MAX_AGE
from ingestion.runs.sent_lineage.sending import MAX_RUNS, owing_runs, send_owed_lineage
from ingestion.wakeups import WAKEUPS
from lakehub.catalog.lineage import TableName, edges, posted
from lakehub.catalog.lineage.events import snapshot_of_events
from lakehub.catalog.lineage.lake_tables import table_in_lake
from lakehub.catalog.lineage.posted_events import parse_posted_event
from lakehub.catalog.lineage.resolver import Resolver
from lakehub.catalog.models import Dataset, DatasetCopy, LineageEdge, LineageLink
from lakehub.http.outgoing import client as http_client
from tests import factories as given
from tests.factories import HOUR, MINUTE, NOW
from tests.openlineage_spec import problems_of
from tests.polling import scaled
from tests.web.ingestion.conftest import FakeLauncher, worker_at
from tests.web.ingestion.test_pipelines import inputs as inputs
from tests.web.ingestion.test_pipelines import register
from tests.webhook_receiver import HALF_A_HEADER, Receiver, dripping_server, web_server

pytestmark = pytest.mark.django_db
WRITTEN = {"inserts": 12, "updates": 30, "deletes": 7}


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    """In this network, as the operator has said."""
    settings.LAKEHUB_ALLOW_PRIVATE_WEBHOOKS = False
    with web_server() as server:
        settings.LAKEHUB_OPENLINEAGE_URL = f"http://127.0.0.1:{server.port}/api/v1/lineage"
        yield server


@pytest.fixture
def copy(inputs: dict[str, Dataset]) -> DatasetCopy:
    return given.copy_of(register())


def owed(copy: DatasetCopy, minutes: int = 0, state: JobState = JobState.SUCCEEDED, **fields: Any) -> JobRun:
    """That ended so long after NOW."""
    at = NOW + minutes * MINUTE
    times = {"started_at": at - MINUTE, "ended_at": at, "report": {"status": "succeeded", "written": WRITTEN}}
    return given.run(copy, state=state, owes_lineage=True, **{**times, **fields})


def send(now: datetime = NOW + HOUR) -> int:
    return send_owed_lineage(now=now)


def be_due() -> None:
    """The pause after a failure is over."""
    LineageReceiver.objects.update(next_try_at=Now() - timedelta(seconds=1))


def events_of(receiver: Receiver) -> list[tuple[str, str]]:
    return [(event["run"]["runId"], event["eventType"]) for event in receiver.posted()]


def both(run: JobRun, end: str = "COMPLETE") -> list[tuple[str, str]]:
    return [(str(run.key), "START"), (str(run.key), end)]


def test_nothing_is_owed_unless_the_operator_has_set_a_receiver(copy: DatasetCopy, settings: Settings) -> None:
    feed_schedule.request_due_runs(now=NOW)
    assert not JobRun.objects.get().owes_lineage
    owed(copy)
    assert send() == 0
    settings.LAKEHUB_OPENLINEAGE_URL = "https://marquez.example.org/api/v1/lineage"
    other = given.dataset("other")
    given.feed(other)
    for dataset_copy, kind in ((given.with_table(copy), "cluster"), (given.copy_of(other), "bootstrap")):
        assert not job_runs.request_run(dataset_copy, kind, asked_by="ana", now=NOW).owes_lineage


def test_a_run_is_told_once_it_has_ended(copy: DatasetCopy, receiver: Receiver) -> None:
    (run,) = feed_schedule.request_due_runs(now=NOW)
    assert (send(NOW), receiver.got) == (0, [])
    run_worker.run_next(worker_at(NOW, FakeLauncher()))
    assert send() == 1
    assert events_of(receiver) == both(run)
    assert (send(), len(receiver.got)) == (0, 2)


def test_events_are_as_the_specification_says_and_carry_the_key(
    copy: DatasetCopy, receiver: Receiver, settings: Settings
) -> None:
    settings.LAKEHUB_OPENLINEAGE_KEY, settings.LAKEHUB_OPENLINEAGE_NAMESPACE = "s3cret", "lake-of-ops"
    owed(copy)
    send()
    for (headers, _), event in zip(receiver.got, receiver.posted(), strict=True):
        assert problems_of(event) == []
        assert (headers["Authorization"], headers["Content-Type"]) == ("Bearer s3cret", "application/json")
        assert (event["job"]["namespace"], event["job"]["name"]) == ("lake-of-ops", "flights-by-day.dc1")
    (output,) = receiver.posted()[1]["outputs"]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 42
    assert output["facets"]["columnLineage"]["fields"]["delay"]["inputFields"][0]["field"] == "delay"


def test_what_is_sent_means_the_same_tables_when_it_is_read_here(copy: DatasetCopy, receiver: Receiver) -> None:
    owed(copy)
    send()
    LineageEdge.objects.all().delete()
    snapshot = snapshot_of_events(receiver.posted(), now=NOW + HOUR)
    edges.replace_lineage(snapshot, source="file", now=NOW)
    assert {str(edge) for edge in LineageEdge.objects.all()} == {
        "flights → flights-by-day",
        "airlines → flights-by-day",
    }


def test_lakehub_may_be_the_receiver_of_its_own_events(copy: DatasetCopy, receiver: Receiver) -> None:
    owed(copy)
    send()
    known = list(LineageEdge.objects.values())
    team = copy.dataset.team
    for body in receiver.posted():
        event = parse_posted_event(body, now=NOW + HOUR)
        assert event is not None
        outcome = posted.take_event(event, team, now=NOW + HOUR)
    assert outcome == posted.PostOutcome(posted.PostResult.COMPLETED)
    assert LineageLink.objects.filter(team=team).count() == 2
    assert list(LineageEdge.objects.values()) == known


@pytest.mark.parametrize(
    ("uri", "namespace", "name"),
    [
        ("file:///lake/dc%201/flights/", "file", "/lake/dc 1/flights"),
        ("s3a://lake/dc1/flights", "s3://lake", "dc1/flights"),
        ("gs://lake/flights", "gs://lake", "flights"),
        ("hdfs://name.example.org:8020/lake/flights", "hdfs://name.example.org:8020", "/lake/flights"),
    ],
)
def test_a_table_of_any_lake_is_found_by_the_name_that_is_sent(uri: str, namespace: str, name: str) -> None:
    dataset = given.dataset("flights")
    dataset.copies.update(uri=uri)
    assert table_in_lake(uri) == TableName(namespace, name)
    resolver = Resolver()
    assert resolver.dataset(table_in_lake(uri)) == dataset
    assert resolver.dataset(TableName(namespace, f"{name}-2")) is None


def test_while_the_receiver_is_down_nothing_is_lost_and_all_comes_in_order(
    copy: DatasetCopy, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    second, first = owed(copy, 2), owed(copy, 1)
    receiver.status = 503
    assert send() == 0
    state = LineageReceiver.objects.get()
    assert (state.failures, state.leased_until) == (1, None)
    assert "127.0.0.1 answered 503" in state.last_error
    assert "Lineage cannot be sent, and is tried again in 60 s" in caplog.text
    receiver.status = 200
    receiver.got.clear()
    assert (send(), receiver.got) == (0, []), "it is left alone for a minute"
    third = owed(copy, 3)
    be_due()
    assert send() == 3
    assert events_of(receiver) == [*both(first), *both(second), *both(third)]
    assert LineageReceiver.objects.get().last_error == ""
    assert not owing_runs().exists()


@contextmanager
def dripping_receiver(settings: Settings, begin: bytes) -> Iterator[None]:
    with dripping_server(begin) as port:
        settings.LAKEHUB_OPENLINEAGE_URL = f"http://127.0.0.1:{port}/api/v1/lineage"
        yield


def test_a_receiver_that_never_ends_its_answers_has_the_events_all_the_same(
    copy: DatasetCopy, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said 200. The first event would be sent again and again, and hold up the others until they are too old."""
    monkeypatch.setattr(http_client, "TIMEOUT", scaled(2))
    owed(copy, 1)
    owed(copy, 2)
    with dripping_receiver(settings, b"HTTP/1.1 200 OK\r\n\r\n"):
        assert send() == 2
    assert not owing_runs().exists()
    assert LineageReceiver.objects.get().failures == 0


def test_one_that_never_comes_to_its_status_or_headers_is_as_one_that_is_down(
    copy: DatasetCopy, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "TIMEOUT", 0.2)
    owed(copy)
    for failures, begin in enumerate([HALF_A_HEADER, b"HTTP/1.1 2"], start=1):
        with dripping_receiver(settings, begin):
            assert send() == 0
        assert LineageReceiver.objects.filter(failures=failures, next_try_at__gt=Now(), leased_until=None).exists()
        assert "127.0.0.1 was not reached: it took longer than 0.2 s" in LineageReceiver.objects.get().last_error
        be_due()
    assert owing_runs().exists()


def test_what_it_refuses_for_good_with_words_that_never_end_is_given_up(
    copy: DatasetCopy, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "TIMEOUT", scaled(0.5))
    owed(copy)
    with dripping_receiver(settings, b"HTTP/1.1 422 Unprocessable Content\r\n\r\n"):
        assert send() == 0
    assert not owing_runs().exists()


def test_one_that_is_told_half_is_told_again_as_a_whole(
    copy: DatasetCopy, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = owed(copy)
    post = sending.post

    def end_fails(url: Any, body: bytes, *rest: Any, **named: Any) -> Any:
        receiver.status = 503 if b'"COMPLETE"' in body else 200
        return post(url, body, *rest, **named)

    monkeypatch.setattr(sending, "post", end_fails)
    assert send() == 0
    monkeypatch.undo()
    receiver.status = 200
    be_due()
    assert send() == 1
    assert events_of(receiver) == [*both(run), *both(run)]


@pytest.mark.parametrize("status", [401, 403, 404, 307, 429, 500])
def test_what_the_operator_may_mend_is_kept(copy: DatasetCopy, receiver: Receiver, status: int) -> None:
    owed(copy)
    receiver.status = status
    receiver.headers = {"Location": f"http://127.0.0.1:{receiver.port}/elsewhere"}
    assert (send(), len(receiver.got)) == (0, 1)
    assert owing_runs().exists()


def test_how_long_the_receiver_asks_to_wait_is_heard(copy: DatasetCopy, receiver: Receiver) -> None:
    owed(copy)
    receiver.status, receiver.headers = 429, {"Retry-After": "7200"}
    send()
    assert LineageReceiver.objects.filter(next_try_at__gt=lease_end(HOUR)).exists()


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_is_refused_for_good_keeps_nothing_behind_it_waiting(
    copy: DatasetCopy, receiver: Receiver, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    run = owed(copy)
    receiver.status = status
    assert send() == 0
    assert f"The lineage of run {run.pk} of {copy} is refused, and given up" in caplog.text
    receiver.status = 200
    assert not owing_runs().exists()
    owed(copy, 5)
    assert send() == 1


def test_what_cannot_be_told_keeps_nothing_behind_it_waiting(
    copy: DatasetCopy, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    run = owed(copy, report={"written": "nonsense"})
    good = owed(copy, 5)
    assert send() == 1
    assert events_of(receiver) == both(good)
    assert f"The lineage of run {run.pk} of {copy} cannot be made" in caplog.text


def test_what_is_older_than_a_week_is_given_up(
    copy: DatasetCopy, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    owed(copy)
    young = owed(copy, 60)
    assert send(NOW + MAX_AGE + MINUTE) == 1
    assert events_of(receiver) == both(young)
    assert "The lineage of 1 runs was not sent within 7 days" in caplog.text


def test_one_process_sends_at_a_time(copy: DatasetCopy, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    owed(copy)
    post, of_others = sending.post, list[int]()

    def meanwhile(*arguments: Any, **named: Any) -> Any:
        of_others.append(send())
        return post(*arguments, **named)

    monkeypatch.setattr(sending, "post", meanwhile)
    assert (send(), of_others, len(receiver.got)) == (1, [0, 0], 2)
    monkeypatch.undo()
    owed(copy, 1)
    LineageReceiver.objects.update(leased_until=lease_end(-MINUTE))
    assert send() == 1, "the other has died"


def test_one_call_sends_so_many_and_takes_so_long_at_most(
    copy: DatasetCopy, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for minutes in range(4):
        owed(copy, minutes)
    seconds = iter([0.0, 1.0, 40.0])
    assert send_owed_lineage(now=NOW + HOUR, monotonic=lambda: next(seconds)) == 1
    monkeypatch.setattr(sending, "MAX_RUNS", 2)
    assert send() == 2
    assert owing_runs().count() == 1
    assert MAX_RUNS >= 2


def test_how_a_run_ended_is_told_without_words_that_may_hold_values(copy: DatasetCopy, receiver: Receiver) -> None:
    owed(copy, 1, JobState.FAILED, error="ArithmeticError: '4711 Jane Doe' is no number", report={"status": "failed"})
    refusal = {"audit": "delays are sane", "observed": "4711"}
    owed(copy, 2, JobState.FAILED, error="4711", report={"status": "refused", "output": {"refused": {"audits": [refusal]}}})  # fmt: skip
    owed(copy, 3, JobState.CANCELLED, error="4711", report={})
    assert send() == 3
    ends = [event for event in receiver.posted() if event["eventType"] != "START"]
    assert [event["eventType"] for event in ends] == ["FAIL", "FAIL", "ABORT"]
    failed, refused = (event["run"]["facets"]["errorMessage"]["message"] for event in ends[:2])
    assert failed.startswith("The run has failed with ArithmeticError: ")
    assert failed.endswith("/datasets/flights-by-day/pipeline")
    assert refused.startswith("Its rows do not pass the audits `delays are sane`: ")
    assert b"4711" not in b"".join(body for _, body in receiver.got)
    assert [problems_of(event) for event in ends] == [[], [], []]


def test_a_run_that_never_began_or_is_no_pipelines_any_more_owes_nothing(copy: DatasetCopy, receiver: Receiver) -> None:
    owed(copy, 1, JobState.CANCELLED, started_at=None, report={})
    assert send() == 0
    assert not owing_runs().exists()
    owed(copy, 2)
    Pipeline.objects.all().delete()
    assert (send(), receiver.got, owing_runs().exists()) == (0, [], False)


def test_an_event_that_is_too_large_goes_without_its_columns(
    copy: DatasetCopy, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "MAX_BYTES", 3_000)
    owed(copy)
    assert send() == 1
    assert "columnLineage" not in receiver.posted()[1]["outputs"][0]["facets"]


def test_a_receiver_that_is_not_there_is_told_in_the_log_and_no_run_fails(
    copy: DatasetCopy, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.LAKEHUB_OPENLINEAGE_URL = "http://127.0.0.1:9/api/v1/lineage"
    run = owed(copy)
    with caplog.at_level(logging.WARNING):
        assert send() == 0
    assert "127.0.0.1 was not reached" in caplog.text
    assert JobRun.objects.get(pk=run.pk).state == JobState.SUCCEEDED


def test_the_task_is_woken_only_where_something_is_owed(
    copy: DatasetCopy, receiver: Receiver, settings: Settings
) -> None:
    (wakeup,) = (each for each in WAKEUPS if each.task == "ingestion.tasks.send_lineage")
    assert wakeup.next_due is not None
    assert wakeup.next_due(NOW) is None
    owed(copy)
    assert wakeup.next_due(NOW) == NOW
    tasks.send_lineage()
    settings.LAKEHUB_OPENLINEAGE_URL = ""
    owed(copy, 1, kind=JobKind.BACKFILL)
    assert wakeup.next_due(NOW) is None


def test_after_the_clock_was_set_back_the_receiver_is_asked_soon() -> None:
    LineageReceiver.objects.create(pk=1, leased_until=lease_end(24 * HOUR), next_try_at=lease_end(24 * HOUR))
    clock_set_back.put_right(now=NOW, back=HOUR)
    assert not LineageReceiver.objects.filter(leased_until__gt=lease_end(2 * MINUTE)).exists()
    assert LineageReceiver.objects.get().next_try_at is None
