"""A copy is followed by one run: an empty look leaves nothing, a batch its commit, and whoever has the lease goes on."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from ingestion.domain.retries import MAX_ATTEMPTS
from ingestion.following import follow_runs
from ingestion.following.follower import Follower
from ingestion.models import BlockedInput, Commit, Finding, JobKind, JobRun, JobState, SourcePlace, TouchedPartition
from ingestion.ports import InputDecision
from ingestion.runs import copy_lag, feed_schedule, job_runs, leases
from ingestion.runs.run_worker import Worker
from ingestion.runs.source_use import paused_runs, source_limits
from ingestion.sources import SourceConfig
from ingestion.sources.sql.source import SqlSource
from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import FAILED, PUT_OFF, SUCCEEDED, JobReport, RowCounts
from ingestion.spark.contract.spec import JobSpec
from lakehub.catalog.models import DatasetCopy
from tests import factories as given
from tests.factories import HOUR, MINUTE, NOW
from tests.following import follower
from tests.web.ingestion import hudi_timeline

SECOND = timedelta(seconds=1)
EVERY = 5 * SECOND
BATCHES = int(os.environ.get("LAKEHUB_FOLLOW_BATCHES", "40"))
"""What one of them leaves, ten thousand leave as often: nothing depends on how many came before."""
WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


@dataclass
class Shop:
    """A source of a few rows, and a launcher whose jobs commit what changed in it, without Spark."""

    copy: DatasetCopy
    database: Path
    now: datetime = NOW
    fails: str = ""
    is_put_off: bool = False
    specs: list[JobSpec] = field(default_factory=list)
    leave_more: tuple[int, ...] = ()
    """The batches, counted from 1, that do not read all that there is."""
    allowed: bool = True
    asked: int = 0

    def sql(self, *statements: str) -> None:
        with sqlite3.connect(self.database) as db:
            for statement in statements:
                db.execute(statement)

    def change(self) -> None:
        self.sql(f"UPDATE flights SET updated_at = '{self.now:%Y-%m-%d %H:%M:%S}' WHERE id = 1")

    def commit(self, run_id: str, applied: int = 1) -> None:
        """At the present state of the source."""
        source = SqlSource(SourceConfig(f"sqlite:///{self.database}", "flights", "updated_at", 120.0))
        reading = source.snapshot()
        list(reading.batches)
        instant = f"{self.now:%Y%m%d%H%M%S}{len(self.specs) % 500:03}"
        facts = hudi_timeline.told_by(run_id, read=applied, applied=applied, kind="incremental")
        touched = {"2026-11-16": (0, applied, 0)}
        hudi_timeline.commit(self.copy, instant, touched, run=facts, checkpoint=reading.position())

    def run(self, spec: JobSpec, secrets: object, lease: object = None, guidance: object = None) -> JobReport:
        self.specs.append(spec)
        if self.fails:
            return JobReport(run_id=spec.run_id, status=FAILED, error=self.fails)
        if self.is_put_off:
            return JobReport(run_id=spec.run_id, status=PUT_OFF)
        self.commit(spec.run_id)
        counts = RowCounts(read=1, applied=1)
        return JobReport(
            run_id=spec.run_id, status=SUCCEEDED, counts=counts, has_more=len(self.specs) in self.leave_more
        )

    def progress(self, run_id: str) -> JobProgress | None:
        return None

    def close(self) -> None:
        """Nothing is kept."""

    def gate(self, inputs: object, **_: object) -> list[InputDecision]:
        self.asked += 1
        return [InputDecision(each, self.allowed, "fail", "late") for each in inputs]  # type: ignore[attr-defined]

    def worker(self, name: str = "host:1:a") -> Worker:
        return Worker(name, self, "file:///staging", lambda: self.now, timedelta, lambda: 0.0, self.gate)

    def steps(self, process: Follower, looks: int = 1) -> None:
        """As many looks, an interval apart."""
        for _ in range(looks):
            self.now += EVERY
            process.step()


@pytest.fixture
def shop(copy: DatasetCopy, tmp_path: Path) -> Shop:
    """Loaded, and asked to be followed."""
    made = Shop(copy, tmp_path / "ops.db")
    made.sql(
        "CREATE TABLE flights (id INTEGER PRIMARY KEY, flight_date TEXT, updated_at TEXT)",
        "INSERT INTO flights VALUES (1, '2026-11-16', '2026-11-16 08:00:00'), (2, '2026-11-16', '2026-11-16 09:00:00')",
    )
    feed = copy.dataset.feed
    feed.connection.url = f"sqlite:///{made.database}"
    feed.connection.save()
    type(feed).objects.filter(pk=feed.pk).update(every=EVERY)
    loaded = given.run(copy, JobKind.BOOTSTRAP, started_at=NOW - MINUTE, ended_at=NOW - MINUTE)
    made.commit(str(loaded.key))
    assert [run.kind for run in feed_schedule.request_due_runs(now=NOW)] == [JobKind.FOLLOW]
    return made


def the_run() -> JobRun:
    return JobRun.objects.select_related("copy__dataset__feed").get(kind=JobKind.FOLLOW)


def rows_of_all_tables() -> dict[str, int]:
    return {model._meta.label: model._default_manager.count() for model in apps.get_models() if model._meta.managed}


def written(queries: CaptureQueriesContext) -> list[str]:
    return [query["sql"] for query in queries.captured_queries if query["sql"].startswith(WRITES)]


def test_an_empty_look_writes_nothing_asks_no_gate_and_starts_no_job(shop: Shop) -> None:
    process = follower(shop.worker())
    process.step()
    before = rows_of_all_tables()
    with CaptureQueriesContext(connection) as asked:
        shop.steps(process, 11)
    assert written(asked) == []
    assert len(asked) == 11 * 3, (
        "who died, what is to be claimed, and the runs that are due: others have written each time"
    )
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


def test_it_shares_a_copy_with_other_jobs_which_wait_only_for_a_batch(shop: Shop) -> None:
    follower(shop.worker()).step()
    run = job_runs.request_run(shop.copy, "delete", {"keys": [["1"]]}, asked_by="ana", now=NOW)
    assert job_runs.running_jobs([shop.copy.pk]) == []
    claimed = job_runs.claim_next_run("host:3:c", now=NOW)
    assert claimed == run
    assert leases.lease_of_run(the_run(), "host:1:a").try_acquire(), "the follower writes a batch"
    assert [text.split()[0] for text in job_runs.running_jobs([shop.copy.pk])] == ["follow", "delete"]


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


def test_a_batch_of_a_feed_that_was_paused_after_the_look_is_not_run(shop: Shop) -> None:
    news = iter([True])
    process = follower(shop.worker(), has_news=lambda: next(news, False))
    process.step()
    shop.change()
    type(shop.copy.dataset.feed).objects.update(paused=True)
    paused_runs.apply_pauses(now=shop.now)
    shop.steps(process)
    assert (shop.specs, the_run().state) == ([], JobState.PAUSED)


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
    source_limits.pay_for_rows(job.copy.dataset.feed.connection.pk, 1_000)
    process = follower(shop.worker())
    shop.change()
    shop.steps(process, 2)
    assert len(shop.specs) == 1, "the source is spared for a quarter of an hour"


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
