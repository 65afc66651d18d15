"""A run that failed is a to-do on the first page, in a sentence of ours, with a way to try it again."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from ingestion.models import JobKind, JobRun, JobState
from lakehub.accounts.models import AuditEntry
from lakehub.catalog.models import Dataset
from tests import factories as make

REFUSED = "SourceError: The source postgresql://db cannot be read: connection failed: Connection refused."


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


@pytest.fixture
def failed(flights: Dataset) -> JobRun:
    copy = make.copy_of(flights, "dc1")
    return make.run(
        copy,
        JobKind.BOOTSTRAP,
        JobState.FAILED,
        attempt=5,
        error=REFUSED,
        params={"replace": True},
        asked_by="schedule",
    )


def test_it_is_the_first_thing_to_decide_where_nothing_else_is_wrong(page: Client, failed: JobRun) -> None:
    html = page.get("/").content.decode()
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))
    assert "The first load into dc1 failed 5 times: nothing answers at the source’s address." in text
    assert "SourceError" not in text
    assert f'action="/datasets/flights/runs/{failed.pk}/retry"' in html


def test_one_failed_run_alone_is_told(client: Client) -> None:
    """A dataset that could not be loaded at all has no test yet: nothing else would say so."""
    dataset = make.dataset("orders", team=make.team("shop"))
    make.run(make.copy_of(dataset), JobKind.BOOTSTRAP, JobState.FAILED, attempt=5, error=REFUSED)
    person = make.user("sam")
    make.member(person, make.team("shop"))
    client.force_login(person)
    assert "1 thing needs a decision" in text_of(client.get("/"))


def test_trying_again_is_a_new_run_with_the_same_parameters(page: Client, failed: JobRun) -> None:
    answer = page.post(f"/datasets/flights/runs/{failed.pk}/retry", {"next": "/"})
    assert answer.headers["Location"] == "/"
    retried = JobRun.objects.latest("pk")
    assert (retried.kind, retried.params, retried.copy, retried.state) == (
        JobKind.BOOTSTRAP, {"replace": True}, failed.copy, JobState.QUEUED,
    )  # fmt: skip
    assert AuditEntry.objects.latest("pk").actor == "ines"
    assert "The first load into dc1 failed" not in text_of(page.get("/"))


def test_two_who_try_again_make_one_run(page: Client, failed: JobRun) -> None:
    page.post(f"/datasets/flights/runs/{failed.pk}/retry")
    before = JobRun.objects.count()
    answer = page.post(f"/datasets/flights/runs/{failed.pk}/retry", follow=True)
    assert "was tried again already" in text_of(answer)
    assert JobRun.objects.count() == before


def test_what_was_followed_by_a_run_that_counts_is_done_with(page: Client, failed: JobRun) -> None:
    make.run(failed.copy, JobKind.BOOTSTRAP, JobState.CANCELLED)
    assert "The first load into dc1 failed" in text_of(page.get("/"))
    make.run(failed.copy, JobKind.BOOTSTRAP, JobState.SUCCEEDED)
    assert "The first load into dc1 failed" not in text_of(page.get("/"))


def test_what_is_tried_again_by_itself_is_in_hand(page: Client, flights: Dataset) -> None:
    make.run(make.copy_of(flights, "dc1"), JobKind.BACKFILL, JobState.QUEUED, attempt=2, error="DeadlinePassed: late")
    html = page.get("/").content.decode()
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))
    assert "The repair in dc1 failed 2 times: it took longer than it may." in text
    assert "Attempt 3 of 5 will start automatically." in text
    assert "/retry" not in html


def test_who_may_not_try_again_sees_it_without_the_button(guest: Client, failed: JobRun) -> None:
    html = guest.get("/").content.decode()
    assert "The first load into dc1 failed" in html
    assert "/retry" not in html
    assert "/retry" not in guest.get("/datasets/flights/ingestion").content.decode()
    assert guest.post(f"/datasets/flights/runs/{failed.pk}/retry").status_code == 403


def test_to_delete_again_takes_who_may_remove(flights: Dataset, client: Client) -> None:
    run = make.run(make.copy_of(flights, "dc1"), JobKind.DROP, JobState.FAILED, attempt=5, error="boom")
    person = make.user("otto")
    make.member(person, flights.team)
    client.force_login(person)
    assert "/retry" not in client.get("/").content.decode()
    assert client.post(f"/datasets/flights/runs/{run.pk}/retry").status_code == 403


def test_the_ingestion_tab_has_the_sentence_the_jobs_own_words_and_the_button(page: Client, failed: JobRun) -> None:
    answer = page.get("/datasets/flights/ingestion")
    assert "nothing answers at the source’s address. SourceError: The source" in text_of(answer)
    assert f"/datasets/flights/runs/{failed.pk}/retry" in answer.content.decode()


def test_an_error_of_the_job_is_escaped(page: Client, failed: JobRun) -> None:
    JobRun.objects.filter(pk=failed.pk).update(error="<script>alert(1)</script>")
    assert "<script>alert" not in page.get("/datasets/flights/ingestion").content.decode()
    assert "the job could not do what was asked" in text_of(page.get("/"))
