"""A copy is followed by one run: whoever has its lease goes on, and a pause or an end holds."""

from __future__ import annotations

import pytest

from ingestion.following import follow_runs
from ingestion.models import JobKind, JobRun, JobState
from ingestion.runs import feed_schedule, job_runs, leases
from ingestion.runs.source_use import paused_runs
from tests import factories as given
from tests.factories import MINUTE, NOW
from tests.following import follower
from tests.web.ingestion.following.shop import Shop, the_run


def test_a_run_whose_worker_died_is_taken_over_with_its_sums(shop: Shop) -> None:
    process = follower(shop.worker())
    process.step()
    JobRun.objects.filter(kind=JobKind.FOLLOW).update(leased_until=NOW - given.DAY)
    other = follower(shop.worker("host:2:b"))
    shop.steps(other)
    run = the_run()
    assert (run.leased_by, run.progress["looks"], run.attempt) == ("host:2:b", 2, 1)
    shop.change()
    shop.steps(process)
    assert shop.specs == [], "it is not this process's any more"
    other.give_back()
    assert (the_run().state, the_run().attempt) == (JobState.QUEUED, 0)


@pytest.mark.parametrize("end", ["remove", "off-board", "drop"])
def test_it_ends_when_the_copy_is_not_followed_any_more(shop: Shop, end: str) -> None:
    process, copy = follower(shop.worker()), shop.copy
    process.step()
    assert follow_runs.end_unwanted(now=NOW) == 0
    if end == "remove":
        type(copy).objects.filter(pk=copy.pk).update(removed_at=NOW)
    elif end == "off-board":
        type(copy.dataset).objects.update(offboarded_at=NOW)
    else:
        given.run(copy, JobKind.DROP)
    assert follow_runs.end_unwanted(now=NOW) == 1
    shop.change()
    shop.steps(process, 2)
    run = the_run()
    assert (run.state, shop.specs, "no longer followed" in run.error) == (JobState.CANCELLED, [], True)


@pytest.mark.parametrize("resumed", ["before the next look", "after it", "by another process"])
def test_a_paused_run_looks_at_nothing_and_goes_on_with_its_sums(shop: Shop, resumed: str) -> None:
    process, feeds = follower(shop.worker()), type(shop.copy.dataset.feed).objects
    process.step()
    shop.steps(process, 2)
    feeds.update(paused=True)
    shop.change()
    assert (paused_runs.apply_pauses(now=shop.now), follow_runs.end_unwanted(now=shop.now)) == (1, 0)
    if resumed != "before the next look":
        shop.steps(process, 2)
        run = the_run()
        assert (run.state, run.progress["looks"], run.error, shop.specs) == (JobState.PAUSED, 3, "", [])
        assert feed_schedule.request_due_runs(now=shop.now + given.DAY) == []
    feeds.update(paused=False)
    paused_runs.apply_pauses(now=shop.now)
    process = follower(shop.worker("host:2:b")) if resumed == "by another process" else process
    shop.steps(process, 2)
    assert len(shop.specs) == 1
    process.give_back()
    assert (the_run().progress["looks"], the_run().progress["batches"]) == (5, 1)


def test_it_shares_a_copy_with_other_jobs_which_wait_only_for_a_batch(shop: Shop) -> None:
    follower(shop.worker()).step()
    run = job_runs.request_run(shop.copy, "delete", {"keys": [["1"]]}, asked_by="ana", now=NOW)
    assert job_runs.running_jobs([shop.copy.pk]) == []
    claimed = job_runs.claim_next_run("host:3:c", now=NOW)
    assert claimed == run
    assert leases.lease_of_run(the_run(), "host:1:a").try_acquire(), "the follower writes a batch"
    assert [text.split()[0] for text in job_runs.running_jobs([shop.copy.pk])] == ["follow", "delete"]


def test_processes_that_start_together_share_the_copies_out(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingestion.following.follower.CLAIMED_AT_ONCE", 1)
    for name in ("a", "b", "c"):
        made = given.dataset(name)
        given.feed(made)
        given.run(made.copies.get(), JobKind.BOOTSTRAP, started_at=NOW - MINUTE, ended_at=NOW - MINUTE)
    feed_schedule.request_due_runs(now=NOW)
    news = iter([True, False, False])
    processes = [follower(shop.worker(f"host:{number}:a"), has_news=lambda: next(news, False)) for number in (1, 2)]
    processes[1]._claim_at = NOW
    for process in processes * 3:
        process.step()
    follow_runs_ = JobRun.objects.filter(kind=JobKind.FOLLOW).exclude(leased_by="")
    assert sorted(follow_runs_.values_list("leased_by", flat=True)) == ["host:1:a"] * 2 + ["host:2:a"] * 2
