"""A batch that takes longer than the process that follows may give it is read by a run of the other lane, and following goes on after it."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client

from ingestion.domain.retries import MAX_ATTEMPTS
from ingestion.following.batches import NotRun, run_batch
from ingestion.following.follower import Follower
from ingestion.models import Finding, JobKind, JobRun, JobState
from ingestion.runs import copy_lag, job_runs
from ingestion.runs.job_specs import BATCH_DEADLINE_S
from lakehub.accounts.models import Role
from tests import factories as given
from tests.factories import HOUR, MINUTE
from tests.following import follower
from tests.web.ingestion.following.shop import EVERY, Shop, the_run


@pytest.fixture
def process(shop: Shop) -> Follower:
    """It has looked once, and a change is there that it has no time for."""
    follows = follower(shop.worker())
    follows.step()
    shop.change()
    shop.times_out = True
    return follows


def handed_over() -> JobRun:
    return JobRun.objects.get(kind=JobKind.INCREMENTAL, state__in=job_runs.ACTIVE)


def batches(shop: Shop) -> int:
    """Tried by the process that follows."""
    return sum(spec.one_commit for spec in shop.specs)


@pytest.mark.parametrize(("deadline_s", "of_batch"), [(86_400, BATCH_DEADLINE_S), (30, 30.0)])
def test_a_batch_has_a_hard_end_whatever_the_deadline_of_the_feed(shop: Shop, deadline_s: int, of_batch: float) -> None:
    type(shop.copy.dataset.feed).objects.update(options={"deadline_s": deadline_s})
    process = follower(shop.worker())
    shop.change()
    shop.steps(process)
    assert [spec.deadline_s for spec in shop.specs] == [of_batch]
    assert BATCH_DEADLINE_S <= 300


def test_a_batch_that_has_no_time_is_handed_over_and_counts_as_no_failure(shop: Shop, process: Follower) -> None:
    shop.steps(process)
    taker, run = handed_over(), the_run()
    assert (taker.asked_by, taker.state, taker.due_at) == (job_runs.SCHEDULE, JobState.QUEUED, shop.now)
    assert (run.state, run.attempt, Finding.objects.count()) == (JobState.RUNNING, 1, 0)
    shop.steps(process, 50)
    assert (batches(shop), JobRun.objects.filter(kind=JobKind.INCREMENTAL).count()) == (1, 1)
    shop.run_next_job()
    spec = shop.specs[-1]
    assert (spec.kind, spec.one_commit, spec.deadline_s) == ("incremental", False, 3600.0)


def test_the_source_is_left_alone_and_the_lease_renewed_meanwhile(
    shop: Shop, process: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.steps(process)
    JobRun.objects.filter(pk=handed_over().pk).update(state=JobState.RUNNING, leased_by="host:3:c")
    looked_at = the_run().progress["looked_at"]
    (followed,) = process._followed.values()
    monkeypatch.setattr(followed.look, "has_changes", lambda *_, **__: pytest.fail("it was looked at"))
    leased_until = the_run().leased_until
    shop.steps(process, MINUTE // EVERY + 1)
    run = the_run()
    assert (run.progress["looked_at"], run.progress["batches"]) == (looked_at, 0), "nothing was taken in"
    assert run.progress_at is not None
    assert shop.now - run.progress_at <= MINUTE
    assert leased_until is not None
    assert run.leased_until is not None
    assert run.leased_until > leased_until


def test_following_goes_on_once_the_run_has_ended(shop: Shop, process: Follower) -> None:
    shop.steps(process)
    shop.run_next_job()
    shop.times_out = False
    shop.steps(process)
    run = the_run()
    assert (run.state, run.error, run.progress["looks"], run.progress["batches"]) == (JobState.RUNNING, "", 2, 0)
    assert copy_lag.lag_of_copy(run.copy, now=shop.now) == timedelta()
    shop.change()
    shop.steps(process)
    process.give_back()
    assert (batches(shop), the_run().progress["batches"]) == (2, 1)


def test_people_are_told_why_by_page_api_and_command(shop: Shop, process: Follower, client: Client) -> None:
    shop.steps(process)
    why = f"the incremental run {handed_over().pk} does it, with the deadline of the feed"
    user = given.user("ana")
    given.member(user, shop.copy.dataset.team, Role.ON_CALL)
    client.force_login(user)
    runs = client.get("/api/v1/datasets/flights/runs").json()["results"]
    assert [why in run["error"] for run in runs if run["kind"] == JobKind.FOLLOW] == [True]
    assert why in client.get("/datasets/flights/ingestion").content.decode()
    out = StringIO()
    call_command("runs", "flights", stdout=out)
    assert why in out.getvalue()


@pytest.mark.parametrize(("took_s", "tried"), [(BATCH_DEADLINE_S, 0), (5.0, 1)])
def test_after_a_run_that_took_long_the_next_batch_is_not_tried_here(
    shop: Shop, process: Follower, took_s: float, tried: int
) -> None:
    shop.steps(process)
    shop.took_s = took_s
    shop.run_next_job()
    before = batches(shop)
    shop.change()
    shop.steps(process)
    assert batches(shop) - before == tried
    assert handed_over().state == JobState.QUEUED
    assert the_run().state == JobState.RUNNING


def test_a_process_that_takes_over_waits_for_the_run_too(shop: Shop, process: Follower) -> None:
    shop.steps(process)
    process.give_back()
    other = follower(shop.worker("host:2:b"))
    shop.steps(other, 3)
    assert (batches(shop), the_run().leased_by) == (1, "host:2:b")
    assert f"run {handed_over().pk} does it" in the_run().error


def test_a_run_that_was_given_up_is_asked_for_again_after_the_interval_of_the_feed(
    shop: Shop, process: Follower
) -> None:
    type(shop.copy.dataset.feed).objects.update(every=HOUR)
    shop.steps(process)
    shop.fails = "DeadlinePassed: The job took longer than its deadline of 3600 s."
    for _ in range(MAX_ATTEMPTS):
        shop.now += MINUTE
        shop.run_next_job()
    assert Finding.objects.get().detail["job"] == JobKind.INCREMENTAL
    shop.steps(process, 5)
    assert not JobRun.objects.filter(kind=JobKind.INCREMENTAL, state__in=job_runs.ACTIVE).exists()
    shop.now += HOUR
    process.step()
    assert (batches(shop), handed_over().state) == (1, JobState.QUEUED)


def test_a_feed_whose_own_deadline_is_no_longer_fails_as_ever(shop: Shop, process: Follower) -> None:
    type(shop.copy.dataset.feed).objects.update(options={"deadline_s": BATCH_DEADLINE_S})
    shop.steps(process)
    assert (the_run().state, the_run().attempt) == (JobState.QUEUED, 1)
    assert not JobRun.objects.filter(kind=JobKind.INCREMENTAL).exists()


def test_where_somebody_asked_for_an_incremental_already_that_is_waited_for(shop: Shop, process: Follower) -> None:
    asked = job_runs.request_run(shop.copy, "incremental", asked_by="ana", now=shop.now)
    shop.steps(process, 5)
    assert (batches(shop), handed_over()) == (1, asked)
    assert f"run {asked.pk} does it" in the_run().error


def test_to_start_regardless_holds_for_the_run_that_reads_the_batch(shop: Shop, process: Follower) -> None:
    JobRun.objects.filter(kind=JobKind.FOLLOW).update(regardless_by="ana", regardless_why="a test")
    shop.steps(process)
    assert (handed_over().regardless_by, handed_over().regardless_why) == ("ana", "a test")
    assert the_run().regardless_by == ""


def test_a_copy_that_was_removed_meanwhile_hands_nothing_over(shop: Shop, process: Follower) -> None:
    shop.steps(process)
    shop.took_s = BATCH_DEADLINE_S
    shop.run_next_job()
    (followed,) = process._followed.values()
    type(shop.copy).objects.filter(pk=shop.copy.pk).update(removed_at=shop.now)
    before = JobRun.objects.count()
    assert run_batch(followed.run, shop.worker(), keep_held=lambda: None) is NotRun.GONE
    assert JobRun.objects.count() == before
