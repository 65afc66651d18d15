"""The client asks the real API for runs and backfills, and looks at them, as Airflow's operator and sensor do."""

from __future__ import annotations

from email.message import Message
from io import BytesIO
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request

import pytest
from django.test import Client as Browser

from ingestion.models import Backfill, BackfillState, BlockedInput, ChunkState, JobKind, JobRun, JobState
from lakehub import clock
from lakehub.accounts.models import Role
from lakehub.accounts.tokens.api_tokens import issue_token
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub_client.client import Client, LakehubError
from lakehub_client.runs import RequestedRun, ask_for_backfill, ask_for_run, look_at
from tests import factories as given
from tests.factories import NOW
from tests.web.ingestion.test_pipelines import inputs as inputs
from tests.web.ingestion.test_pipelines import register

pytestmark = pytest.mark.django_db
TABLE = "flights-by-day"
MARCH = {"first": "2013-03-01", "last": "2013-03-25"}


class DjangoOpener:
    """Stands in for the network: hands a request of urllib's to Django."""

    def open(self, request: Request, timeout: float) -> BytesIO:
        body = {"data": request.data, "content_type": "application/json"} if request.data is not None else {}
        answer = Browser().generic(
            request.get_method(),
            request.full_url.removeprefix("http://lakehub.test"),
            HTTP_AUTHORIZATION=request.get_header("Authorization"),
            **body,  # type: ignore[arg-type]  # bytes, as they are sent
        )
        if answer.status_code >= 400:
            raise HTTPError(request.full_url, answer.status_code, "", Message(), BytesIO(answer.content))
        return BytesIO(answer.content)


@pytest.fixture
def client(inputs: dict[str, Dataset]) -> Client:
    """Of somebody who may ask for runs."""
    register()
    bob = given.user("bob")
    given.member(bob, given.team(), Role.OWNER)
    scopes = ["ingestion:read", "ingestion:run"]
    _, token = issue_token(
        name="airflow", consumer="etl", team=given.team(), created_by=bob, scopes=scopes, now=clock.now()
    )
    made = Client("http://lakehub.test", token)
    made._opener = DjangoOpener()  # type: ignore[assignment]  # the part of it that is used
    return made


@pytest.fixture
def copy(client: Client) -> DatasetCopy:
    """With its table, and nothing that waits."""
    copy = given.copy_of(Dataset.objects.get(name=TABLE))
    given.run(copy, JobKind.BOOTSTRAP, ended_at=NOW)
    return given.with_table(copy)


def becomes(run: JobRun, state: JobState, **fields: Any) -> None:
    JobRun.objects.filter(pk=run.pk).update(state=state, **fields)


def test_a_run_is_asked_for_and_looked_at_until_it_has_ended(client: Client, copy: DatasetCopy) -> None:
    requested = ask_for_run(client, TABLE)
    run = JobRun.objects.get(kind=JobKind.INCREMENTAL)
    assert (requested, run.asked_by, run.copy) == (RequestedRun(TABLE, run.pk), "bob", copy)
    assert requested is not None
    assert RequestedRun(**requested.as_fields()) == requested
    outcome = look_at(client, requested)
    assert (outcome.is_over, outcome.error, outcome.note) == (False, "", "queued")
    becomes(run, JobState.SUCCEEDED, ended_at=NOW)
    assert look_at(client, requested).is_over
    assert look_at(client, requested).error == ""


@pytest.mark.parametrize(
    ("state", "error", "text"),
    [
        (JobState.FAILED, "No space left on device", "has failed: No space left on device"),
        (JobState.CANCELLED, "", "was cancelled."),
    ],
)
def test_how_a_run_has_ended_is_told(client: Client, copy: DatasetCopy, state: JobState, error: str, text: str) -> None:
    run = given.run(copy, state=state, error=error)
    outcome = look_at(client, RequestedRun(TABLE, run.pk))
    assert (outcome.is_over, outcome.error) == (True, f"Run {run.pk} of {TABLE} {text}")


def test_what_a_run_waits_for_and_why_it_is_tried_again_is_told(client: Client, copy: DatasetCopy) -> None:
    run = given.run(copy, state=JobState.WAITING, attempt=2, error="No space left on device")
    BlockedInput.objects.create(run=run, copy=copy, start=NOW, end=NOW, verdict="fail", reason="sustained")
    outcome = look_at(client, RequestedRun(TABLE, run.pk))
    assert not outcome.is_over
    assert outcome.note == f"waiting, waits for {TABLE}: sustained, is tried again after: No space left on device"


def test_a_run_that_has_not_begun_is_not_asked_for_twice(client: Client, copy: DatasetCopy) -> None:
    first = ask_for_run(client, TABLE)
    assert first == ask_for_run(client, TABLE, data_center="dc1")
    assert JobRun.objects.filter(kind=JobKind.INCREMENTAL).count() == 1


def test_one_at_work_may_have_read_before_so_another_is_asked_for_after_it(client: Client, copy: DatasetCopy) -> None:
    run = given.run(copy, state=JobState.RUNNING)
    assert ask_for_run(client, TABLE) is None
    becomes(run, JobState.SUCCEEDED, ended_at=NOW)
    after = ask_for_run(client, TABLE)
    assert after is not None
    assert after.number > run.pk


def test_a_backfill_is_asked_for_and_says_how_far_it_is(client: Client, copy: DatasetCopy) -> None:
    requested = ask_for_backfill(client, TABLE, **MARCH, chunk_size=5)
    backfill = Backfill.objects.get()
    assert requested == RequestedRun(TABLE, backfill.pk, is_backfill=True)
    assert (backfill.first, backfill.last, backfill.asked_by, backfill.chunks.count()) == ("2013-03-01", "2013-03-25", "bob", 5)  # fmt: skip
    backfill.chunks.filter(number__lte=2).update(state=ChunkState.SUCCEEDED)
    backfill.chunks.filter(number=3).update(state=ChunkState.FAILED)
    assert requested is not None
    assert look_at(client, requested).note == "running, 2 of 5 chunks are done, 1 failed"
    Backfill.objects.update(state=BackfillState.FAILED, ended_at=NOW, error="1 chunk was given up")
    outcome = look_at(client, requested)
    assert (outcome.is_over, outcome.error) == (True, f"Backfill {backfill.pk} of {TABLE} has failed: 1 chunk was given up")  # fmt: skip


def test_the_same_backfill_is_not_begun_twice_where_its_answer_was_lost(client: Client, copy: DatasetCopy) -> None:
    days = ["2013-03-02", "2013-03-01"]
    first = ask_for_backfill(client, TABLE, partitions=days)
    assert ask_for_backfill(client, TABLE, partitions=days) == first
    assert ask_for_backfill(client, TABLE, partitions=[*days, "2013-03-09"]) is None
    assert ask_for_backfill(client, TABLE, **MARCH) is None
    Backfill.objects.get().chunks.update(state=ChunkState.RUNNING)
    assert ask_for_backfill(client, TABLE, partitions=days) is None, "it may have read before"
    assert Backfill.objects.count() == 1
    Backfill.objects.all().delete()
    march = ask_for_backfill(client, TABLE, **MARCH)
    assert ask_for_backfill(client, TABLE, **MARCH) == march
    Backfill.objects.get().chunks.filter(number=1).update(state=ChunkState.RUNNING)
    assert ask_for_backfill(client, TABLE, **MARCH) is None


@pytest.mark.parametrize(
    ("open_now", "asked"),
    [
        ({"partitions": ["2013-03-01", "2013-03-02", "2013-03-09"]}, {"partitions": ["2013-03-01", "2013-03-05", "2013-03-09"]}),
        ({"partitions": ["2013-03-01", "2013-03-25"]}, MARCH),
    ],
)  # fmt: skip
def test_a_backfill_of_other_partitions_between_the_same_ends_is_none_of_these(
    client: Client, copy: DatasetCopy, open_now: dict[str, Any], asked: dict[str, Any]
) -> None:
    assert ask_for_backfill(client, TABLE, **open_now) is not None
    assert ask_for_backfill(client, TABLE, **asked) is None


def test_what_makes_no_sense_says_what(client: Client, copy: DatasetCopy) -> None:
    for ask, status, text in (
        (lambda: ask_for_run(client, "fligths-by-day"), 404, "Did you mean `flights-by-day`"),
        (lambda: ask_for_run(client, "../teams"), 404, "nothing at this address"),
        (lambda: ask_for_backfill(client, "airlines", **MARCH), 422, "is not made by a pipeline"),
        (lambda: ask_for_backfill(client, TABLE, first="2013-03-01"), 422, "`last` is missing"),
        (lambda: look_at(client, RequestedRun(TABLE, 999)), 404, "has no run 999"),
        (lambda: look_at(client, RequestedRun(TABLE, 999, is_backfill=True)), 404, "has no backfill 999"),
    ):
        with pytest.raises(LakehubError, match=text) as refused:
            ask()
        assert (refused.value.status, refused.value.is_transient) == (status, False)
