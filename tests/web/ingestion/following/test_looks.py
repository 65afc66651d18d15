"""A look at a source that has nothing leaves nothing; one that fails is tried again, whatever the clock does."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ingestion.domain.retries import MAX_ATTEMPTS
from ingestion.following import follower as follower_module
from ingestion.models import Finding, JobKind, JobRun, JobState, SourcePlace
from ingestion.runs import feed_schedule
from lakehub.catalog.models import Connection
from tests.following import follower
from tests.web.ingestion.following.shop import EVERY, SECOND, Shop, rows_of_all_tables, the_run, written


def test_an_empty_look_writes_nothing_asks_no_gate_and_starts_no_job(shop: Shop) -> None:
    process = follower(shop.worker())
    process.step()
    before = rows_of_all_tables()
    with CaptureQueriesContext(connection) as asked:
        shop.steps(process, 11)
    assert written(asked) == []
    assert len(asked) == 11 * 2, "what is to be claimed, and the runs that are due: others have written each time"
    assert (rows_of_all_tables(), shop.specs, shop.asked) == (before, [], 0)
    assert the_run().progress["looks"] == 1
    with CaptureQueriesContext(connection) as asked:
        shop.steps(process)
    assert [sql.split()[0] for sql in written(asked)] == ["UPDATE"], "once a minute, the sums"
    run = the_run()
    assert (run.state, run.progress["looks"], run.progress_at) == (JobState.RUNNING, 12, shop.now)


def test_where_nobody_has_written_an_empty_look_asks_the_database_nothing(shop: Shop) -> None:
    news = iter([True, False, False, True])
    process = follower(shop.worker(), has_news=lambda: next(news))
    process.step()
    with CaptureQueriesContext(connection) as asked:
        shop.steps(process, 2)
    assert len(asked) == 0
    type(shop.copy.dataset.feed).objects.update(object="nowhere")
    shop.steps(process)
    assert "no table `nowhere`" in the_run().error


@pytest.mark.parametrize("ahead", [timedelta(hours=3), timedelta(days=3650)])
def test_a_clock_that_was_ahead_holds_up_no_look(shop: Shop, ahead: timedelta) -> None:
    shop.now += ahead
    process = follower(shop.worker())
    shop.steps(process)
    shop.now -= ahead
    shop.change()
    shop.steps(process, 2)
    assert len(shop.specs) == 1


def test_a_clock_that_was_ahead_holds_up_no_run_that_was_put_back(shop: Shop) -> None:
    process = follower(shop.worker(), has_news=iter([True, *[False] * 9]).__next__)
    process.step()
    shop.change()
    shop.fails = "no space left"
    shop.now += timedelta(hours=3)
    process.step()
    shop.fails = ""
    shop.now -= timedelta(hours=3)
    JobRun.objects.update(due_at=shop.now)  # as what puts times right leaves it
    shop.steps(process, 2)
    assert len(shop.specs) == 2


def test_what_fails_is_tried_again_then_given_up_with_a_finding_that_the_next_look_clears(shop: Shop) -> None:
    process = follower(shop.worker())
    process.step()
    shop.fails = "no space left"
    shop.change()
    shop.steps(process)
    run = the_run()
    assert (run.state, run.attempt, run.error, run.due_at) == (
        JobState.QUEUED,
        1,
        "no space left",
        shop.now + 5 * SECOND,
    )
    while the_run().state != JobState.FAILED:
        shop.steps(process)
    assert len(shop.specs) == 5
    assert Finding.objects.get().detail["job"] == JobKind.FOLLOW
    shop.fails = ""
    shop.now += EVERY
    assert [run.kind for run in feed_schedule.request_due_runs(now=shop.now)] == [JobKind.FOLLOW]
    process.step()
    assert Finding.objects.get().cleared_at == shop.now


def test_a_source_that_cannot_be_read_fails_without_a_job(shop: Shop) -> None:
    process = follower(shop.worker())
    process.step()
    shop.sql("ALTER TABLE flights RENAME TO moved")
    shop.steps(process)
    run = the_run()
    assert (run.state, shop.specs, run.progress["looks"]) == (JobState.QUEUED, [], 1)
    assert "has no table `flights`" in run.error
    shop.sql("ALTER TABLE moved RENAME TO flights")
    shop.steps(process)
    run = the_run()
    assert (run.state, run.attempt, run.error, run.progress["looks"]) == (JobState.RUNNING, 1, "", 2)


def test_a_look_that_cannot_begin_holds_no_place(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    Connection.objects.update(max_connections=1)

    def refuse(*_: object, **__: object) -> None:
        raise ValueError("its connection has no URL")

    monkeypatch.setattr(follower_module, "job_spec_of", refuse)
    process = follower(shop.worker())
    process.step()
    assert (the_run().error, SourcePlace.objects.count()) == ("its connection has no URL", 0)


def test_attempts_are_counted_anew_after_a_look_that_succeeded(shop: Shop) -> None:
    JobRun.objects.filter(kind=JobKind.FOLLOW).update(attempt=MAX_ATTEMPTS - 1)
    news = iter([True])
    process = follower(shop.worker(), has_news=lambda: next(news, False))
    process.step()
    shop.steps(process, 13)
    shop.fails = "no memory"
    shop.change()
    shop.steps(process)
    assert (the_run().state, the_run().attempt) == (JobState.QUEUED, 1)


def test_what_failed_is_tried_again_in_time_although_nobody_writes_to_the_database(shop: Shop) -> None:
    news = iter([True])
    process = follower(shop.worker(), has_news=lambda: next(news, False))
    process.step()
    shop.fails = "the disk is full"
    shop.change()
    shop.steps(process)
    assert (the_run().state, the_run().due_at) == (JobState.QUEUED, shop.now + 5 * SECOND)
    shop.fails = ""
    shop.now += 4 * SECOND
    assert process.step() == SECOND
    assert len(shop.specs) == 1
    shop.now += SECOND
    process.step()
    assert (the_run().state, len(shop.specs)) == (JobState.RUNNING, 2)


def test_a_batch_that_leaves_something_to_read_is_followed_by_the_next_look_at_once(shop: Shop) -> None:
    process, shop.leave_more = follower(shop.worker()), (1,)
    process.step()
    (followed,) = process._followed.values()
    looks, looked_at = followed.sums.looks, followed.sums.looked_at
    shop.change()
    shop.steps(process)
    assert (len(shop.specs), followed.sums.looks, followed.sums.looked_at) == (1, looks, looked_at)
    process.step()
    assert (len(shop.specs), followed.sums.looks, followed.sums.looked_at) == (1, looks + 1, shop.now)


def test_a_copy_that_has_caught_up_says_so_at_once(shop: Shop) -> None:
    process, shop.leave_more = follower(shop.worker()), (1,)
    shop.change()
    process.step()
    assert the_run().progress["looked_at"] is None, "it has not read all"
    process.step()
    assert the_run().progress["looked_at"] == shop.now.isoformat()
