"""A batch leaves its commit and no more, and waits for writers, inputs and limits."""

from __future__ import annotations

import os

import pytest
from django.db.models import F

from ingestion.models import (
    BlockedInput,
    Commit,
    Finding,
    IndexAllowance,
    JobKind,
    JobRun,
    JobState,
    SourcePlace,
    TouchedPartition,
)
from ingestion.runs import copy_lag, leases
from ingestion.runs.index_use.allowances import Allowance, take
from ingestion.runs.source_use import paused_runs, source_limits
from lakehub.catalog.models import Feed
from tests import factories as given
from tests import index_jobs
from tests.factories import HOUR, MINUTE
from tests.following import follower
from tests.web.ingestion.following.shop import EVERY, SECOND, Shop, rows_of_all_tables, the_run

BATCHES = int(os.environ.get("LAKEHUB_FOLLOW_BATCHES", "40"))
"""What one of them leaves, ten thousand leave as often: nothing depends on how many came before."""


def test_a_batch_adds_its_commit_and_the_lag_goes_by_the_looks(shop: Shop) -> None:
    process = follower(shop.worker())
    process.step()
    shop.change()
    shop.steps(process)
    before = rows_of_all_tables()
    for _ in range(BATCHES):
        shop.change()
        shop.steps(process)
    after = rows_of_all_tables()
    grown = {label: rows - before[label] for label, rows in after.items() if rows != before[label]}
    hours = BATCHES * EVERY // given.HOUR
    assert grown == {"ingestion.Commit": BATCHES} | ({"ingestion.TouchedPartition": hours} if hours else {})
    run = the_run()
    assert [commit.run for commit in Commit.objects.order_by("pk")[1:]] == [run] * (BATCHES + 1)
    ids = {spec.run_id for spec in shop.specs}
    assert (len(ids), {spec.kind for spec in shop.specs}) == (BATCHES + 1, {"incremental"})
    assert all(each.startswith(f"{run.key}.") for each in ids)
    shop.now += MINUTE
    process.step()
    sums = the_run().progress
    assert (sums["batches"], sums["read"], sums["applied"]) == (BATCHES + 1,) * 3
    assert copy_lag.lag_of_copy(run.copy, now=shop.now + 7 * SECOND) <= MINUTE + 7 * SECOND  # type: ignore[operator]  # it is known


def test_what_batches_touch_is_one_row_of_a_partition_for_an_hour(shop: Shop) -> None:
    process = follower(shop.worker())
    process.step()
    rows = TouchedPartition.objects.filter(merged_since__isnull=False)
    for number in (1, 2, 3):
        shop.change()
        shop.steps(process)
        row, newest = rows.get(), Commit.objects.latest("pk")
        assert (row.rows, row.commit, row.claimed_at, newest.touched_count) == (number, newest, None, 1)
        rows.update(claimed_at=shop.now)
    rows.update(merged_since=F("merged_since") - given.HOUR)
    shop.change()
    shop.steps(process)
    assert [row.rows for row in rows.order_by("pk")] == [3, 1]


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_batch_waits_while_another_writer_holds_the_copy(shop: Shop, is_shared: bool) -> None:
    """Other copies are followed meanwhile: it begins no job that would wait for the lease."""
    process = follower(shop.worker())
    process.step()
    shop.change()
    assert leases.acquire(shop.copy, "host:2:b:7", is_shared=is_shared)
    shop.steps(process)
    assert shop.specs == []
    leases.release(shop.copy, "host:2:b:7")
    shop.steps(process)
    assert (len(shop.specs), the_run().attempt) == (1, 1)


def test_a_batch_gives_up_a_copy_that_another_writer_took_while_it_read(shop: Shop) -> None:
    """It holds up no other copy's batches, and counts as no failure."""
    process = follower(shop.worker())
    process.step()
    shop.change()
    shop.is_put_off = True
    shop.steps(process)
    assert [(spec.lease_wait_s, spec.one_commit) for spec in shop.specs] == [(10.0, True)]
    assert (the_run().state, the_run().attempt, Finding.objects.count()) == (JobState.RUNNING, 1, 0)
    shop.is_put_off = False
    shop.steps(process)
    assert len(shop.specs) == 2
    process.give_back()
    assert the_run().progress["batches"] == 1


def test_a_batch_that_is_under_way_is_ended_and_counted(shop: Shop) -> None:
    process = follower(shop.worker())
    process.step()
    commit = shop.commit

    def paused_meanwhile(run_id: str, applied: int = 1) -> None:
        type(shop.copy.dataset.feed).objects.update(paused=True)
        paused_runs.apply_pauses(now=shop.now)
        commit(run_id, applied)

    shop.commit = paused_meanwhile  # type: ignore[method-assign]
    shop.change()
    shop.steps(process, 3)
    run = the_run()
    assert (run.state, run.progress["batches"], len(shop.specs)) == (JobState.PAUSED, 1, 1)


def test_what_a_batch_has_brought_is_told_some_seconds_after_the_last_telling(shop: Shop) -> None:
    process = follower(shop.worker())
    process.step()
    shop.change()
    shop.now += HOUR
    process.step()  # tells what was seen before, then looks
    assert the_run().progress["batches"] == 0
    shop.now += SECOND
    shop.change()
    shop.steps(process)
    committed_at = shop.now
    shop.now += SECOND
    process.step()
    assert the_run().progress["looked_at"] == committed_at.isoformat()


def test_a_batch_commits_once(shop: Shop) -> None:
    process = follower(shop.worker())
    process.step()
    shop.change()
    shop.steps(process)
    assert [(spec.one_commit, spec.source and spec.source.commit_s) for spec in shop.specs] == [(True, 60.0)]


def test_a_batch_of_a_feed_that_was_paused_after_the_look_is_not_run(shop: Shop) -> None:
    news = iter([True])
    process = follower(shop.worker(), has_news=lambda: next(news, False))
    process.step()
    shop.change()
    type(shop.copy.dataset.feed).objects.update(paused=True)
    paused_runs.apply_pauses(now=shop.now)
    shop.steps(process)
    assert (shop.specs, the_run().state) == ([], JobState.PAUSED)


def test_looks_and_batches_keep_to_the_limits_of_their_connection(shop: Shop) -> None:
    connections = type(shop.copy.dataset.feed.connection).objects
    connections.update(max_connections=1)
    number = given.run(shop.copy, JobKind.BACKFILL, JobState.RUNNING, ended_at=None).pk
    job = JobRun.objects.select_related("copy__dataset__feed__connection").get(pk=number)
    assert source_limits.take_place(job, "host:9:b") is None
    process = follower(shop.worker())
    shop.change()
    process.step()
    SourcePlace.objects.filter(leased_until=None).update(asked_at=F("asked_at") - MINUTE)
    shop.steps(process, 2)
    assert (the_run().progress.get("looks", 0), shop.specs) == (0, [])
    assert the_run().error.startswith("waits for the connection `ops`: 1 of 1 places are taken: backfill run")
    source_limits.release_place(job, "host:9:b")
    shop.steps(process, 2)
    process.give_back()
    assert (len(shop.specs), SourcePlace.objects.count(), the_run().error) == (1, 0, "")
    connections.update(max_connections=None, rows_per_s=1)
    source_limits.pay_for_rows(job.copy.dataset.feed.connection, 1_000)
    process = follower(shop.worker())
    shop.change()
    shop.steps(process, 2)
    assert len(shop.specs) == 1, "the source is spared for a minute"


def test_a_batch_waits_for_its_part_of_the_index_cluster_and_gives_it_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakehub.catalog.ports.index_names", lambda: ("hbase",))
    Feed.objects.update(options={"index": "hbase"})
    index_jobs.cluster(where=shop.copy.data_center.name)
    other = take(index_jobs.job(shop.copy), "host:9:b")
    assert isinstance(other, Allowance)
    process = follower(shop.worker())
    shop.change()
    process.step()
    IndexAllowance.objects.filter(fraction=0).update(asked_at=F("asked_at") - MINUTE)
    shop.steps(process, 2)
    assert shop.specs == []
    assert the_run().error.startswith("waits for the index cluster `main`: its part is 50%")
    other.release()
    shop.steps(process, 2)
    assert (len(shop.specs), the_run().error) == (1, "")
    assert [*IndexAllowance.objects.values_list("fraction", "leased_by")] == [(0, "")], "its place for the next batch"


def test_a_look_that_waits_until_the_rows_of_others_are_paid_for_says_so_and_fails_in_the_end(shop: Shop) -> None:
    """It was silent for hours."""
    connections, passed = type(shop.copy.dataset.feed.connection).objects, [0.0]
    process = follower(shop.worker(), monotonic=lambda: passed[0])
    process.step()
    connections.update(rows_per_s=1)
    source_limits.pay_for_rows(connections.get(), 1_000)
    steps_in_an_hour = 60
    for minute in range(steps_in_an_hour):
        passed[0] += 60.0
        shop.now += MINUTE
        process.step()
        assert the_run().error == (
            "waits for the connection `ops`: others use up its 1 rows a second" if minute else ""
        )
    passed[0] += 60.0
    shop.now += MINUTE
    process.step()
    assert the_run().attempt == 1
    assert the_run().error.endswith(
        "has waited for 1:00:00. Raise `rows_per_s` of the connection, or load less at once."
    )


def test_what_waits_for_an_input_is_asked_for_again_in_time(shop: Shop) -> None:
    other = given.dataset("airports", ingested=True)
    given.copy_of(other)
    type(shop.copy.dataset.feed).objects.filter(dataset=shop.copy.dataset).update(inputs=["airports"])
    news = iter([True])
    process, shop.allowed = follower(shop.worker(), has_news=lambda: next(news, False)), False
    shop.change()
    process.step()
    assert the_run().state == JobState.WAITING
    shop.allowed, shop.now = True, the_run().due_at
    process.step()
    assert (the_run().state, len(shop.specs)) == (JobState.RUNNING, 1)


def test_a_batch_waits_for_its_inputs_and_the_answer_is_remembered(shop: Shop) -> None:
    other = given.dataset("airports", ingested=True)
    given.copy_of(other)
    type(shop.copy.dataset.feed).objects.filter(dataset=shop.copy.dataset).update(inputs=["airports"])
    shop.allowed = False
    process = follower(shop.worker())
    process.step()
    assert shop.asked == 0
    shop.change()
    shop.steps(process)
    run, asked = the_run(), shop.asked
    assert (run.state, BlockedInput.objects.count(), run.progress["looks"]) == (JobState.WAITING, 1, 1)
    shop.steps(process, 10)
    assert (shop.asked, shop.specs) == (asked, [])
    shop.allowed, shop.now = True, run.due_at
    process.step()
    assert (len(shop.specs), the_run().state, BlockedInput.objects.count()) == (1, JobState.RUNNING, 0)


def test_to_start_regardless_holds_for_one_batch(shop: Shop) -> None:
    JobRun.objects.filter(kind=JobKind.FOLLOW).update(regardless_by="ana", regardless_why="a test")
    process = follower(shop.worker())
    process.step()
    shop.change()
    shop.steps(process)
    assert (len(shop.specs), the_run().regardless_by) == (1, "")
