"""HBase does not answer: jobs are put off with its words and hold nothing, whoever may not wait for ever is told, and all go on when it is back."""

from __future__ import annotations

import html
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from django.test import Client

from ingestion.domain.retries import MAX_ATTEMPTS
from ingestion.index_shares.shares import recompute_all
from ingestion.lake import findings
from ingestion.models import CopyLease, Finding, IndexAllowance, IndexShare, JobKind, JobRun, JobState
from ingestion.runs import run_worker
from ingestion.runs.job_runs import request_run
from ingestion.spark.contract.report import FAILED, INDEX_AWAY, SUCCEEDED, IndexUse, JobReport
from ingestion.spark.contract.spec import JobSpec
from lakehub.catalog.models import DatasetCopy, Feed
from tests import factories as given
from tests.factories import HOUR, MINUTE, NOW
from tests.following import follower
from tests.index_jobs import cluster, indexed
from tests.web.ingestion.conftest import FakeLauncher, worker_at
from tests.web.ingestion.following.conftest import shop  # noqa: F401  # a fixture
from tests.web.ingestion.following.shop import EVERY, Shop, the_run

pytestmark = pytest.mark.django_db
WORDS = (
    "HBase does not answer through its Thrift server thrift:9090: <b>refused</b>. What waits goes on when it is back."
)
WHY = f"waits for the index cluster: {WORDS.removesuffix('.')}"
SECOND = timedelta(seconds=1)
KINDS: dict[JobKind, dict[str, object]] = {
    JobKind.INCREMENTAL: {},
    JobKind.BACKFILL: {"partitions": ["2026-11-16"]},
    JobKind.DELETE: {"keys": [["1"]]},
    JobKind.VERIFY_INDEX: {},
    JobKind.REBUILD_INDEX: {},
}


@pytest.fixture(autouse=True)
def _known_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehub.catalog.ports.index_names", lambda: ("hbase", "simple"))


@pytest.fixture
def flights() -> DatasetCopy:
    cluster()
    made = given.with_table(indexed("flights"))
    recompute_all()
    return made


def away(spec: JobSpec) -> JobReport:
    return JobReport(spec.run_id, INDEX_AWAY, error=WORDS, index_use=IndexUse(reads=3, seconds=1.0))


def back(spec: JobSpec) -> JobReport:
    return JobReport(spec.run_id, SUCCEEDED, output={"index": "hbase", "rows": 0, "entries": 0, "problems": {}})


def tried(launcher: FakeLauncher, now: datetime) -> JobRun:
    run = run_worker.run_next(worker_at(now, launcher))
    assert run is not None
    run.refresh_from_db()
    return run


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_is_put_off_with_growing_pauses_holds_nothing_and_goes_on(flights: DatasetCopy, kind: JobKind) -> None:
    request_run(flights, kind, dict(KINDS[kind]), asked_by="ana", now=NOW)
    launcher, now, pauses = FakeLauncher(away), NOW, []
    while now < NOW + HOUR / 2:
        run = tried(launcher, now)
        assert (run.state, run.attempt, run.error, run.leased_by) == (JobState.QUEUED, 0, WHY, "")
        assert (run.waits_since, run.ended_at) == (NOW, None)
        assert not CopyLease.objects.exclude(holder="").exists()
        assert not IndexAllowance.objects.exists()
        assert run_worker.run_next(worker_at(now, launcher)) is None, "not before it is due"
        pauses.append(run.due_at - now)
        now = run.due_at
    assert pauses[:4] == [5 * SECOND, 5 * SECOND, 10 * SECOND, 20 * SECOND]
    assert pauses[-1] == 5 * MINUTE
    assert IndexShare.objects.filter(copy=flights).values_list("requests", flat=True).first() == 3 * len(pauses)
    launcher.answer = back
    run = tried(launcher, now)
    assert (run.state, run.attempt, run.error, run.waits_since) == (JobState.SUCCEEDED, 1, "", None)
    assert not Finding.objects.exists()


def test_who_waits_longer_than_a_job_may_take_has_failed_and_is_given_up_in_the_end(flights: DatasetCopy) -> None:
    """As one that finds no room for so long: five times, and there is a finding."""
    Feed.objects.update(options={"index": "hbase", "deadline_s": 600})
    request_run(flights, JobKind.DELETE, dict(KINDS[JobKind.DELETE]), asked_by="ana", now=NOW)
    launcher, now, failed_after = FakeLauncher(away), NOW, []
    run, began = tried(launcher, now), NOW
    while run.state != JobState.FAILED:
        attempt, now = run.attempt, run.due_at
        began = now if run.waits_since is None else began
        run = tried(launcher, now)
        if run.attempt > attempt:
            assert run.error.startswith(f"It {WHY}, and has waited for 0:1")
            assert run.error.endswith("`manage.py index_clusters list` names where they are.")
            assert run.waits_since is None
            failed_after.append(now - began)
    assert run.attempt == MAX_ATTEMPTS == len(failed_after)
    assert all(10 * MINUTE <= each < 16 * MINUTE for each in failed_after)
    (finding,) = Finding.objects.all()
    assert finding.kind == findings.JOB_FAILING
    assert WHY in finding.detail["message"]


def test_jobs_of_another_index_go_on_meanwhile(flights: DatasetCopy) -> None:
    others = given.with_table(indexed("others", index="simple"))
    for copy in (flights, others):
        request_run(copy, JobKind.VERIFY_INDEX, asked_by="ana", now=NOW)
    launcher = FakeLauncher(lambda spec: away(spec) if spec.table.index == "hbase" else back(spec))
    states = {run.copy.dataset.name: run.state for run in (tried(launcher, NOW), tried(launcher, NOW))}
    assert states == {"flights": JobState.QUEUED, "others": JobState.SUCCEEDED}


def test_the_page_the_api_and_prometheus_say_why_and_not_any_more_when_it_runs(
    flights: DatasetCopy, client: Client
) -> None:
    client.force_login(given.user("guest"))

    def shown() -> tuple[str, str, bool]:
        (state,) = client.get("/api/v1/datasets/flights/index").json()
        page = html.unescape(client.get("/datasets/flights/ingestion").content.decode())
        (line,) = [
            line
            for line in client.get("/metrics").content.decode().splitlines()
            if line.startswith("lakehub_index_jobs")
        ]
        return state["waits_for"], line, "Waits for the index cluster: HBase does not answer" in page

    request_run(flights, JobKind.VERIFY_INDEX, asked_by="ana", now=NOW)
    assert shown() == ("", "lakehub_index_jobs_waiting 0.0", False)
    run = tried(FakeLauncher(away), NOW)
    assert shown() == (WHY, "lakehub_index_jobs_waiting 1.0", True)
    seen = []

    def works(spec: JobSpec) -> JobReport:
        seen.append(shown())
        return back(spec)

    tried(FakeLauncher(works), run.due_at)
    assert [*seen, shown()] == [("", "lakehub_index_jobs_waiting 0.0", False)] * 2


def test_what_the_gate_has_blocked_before_does_not_count_as_waiting_for_hbase(flights: DatasetCopy) -> None:
    run = request_run(flights, JobKind.INCREMENTAL, asked_by="ana", now=NOW)
    JobRun.objects.filter(pk=run.pk).update(state=JobState.WAITING, waits_since=NOW - 9 * HOUR)
    run.blocked_by.create(copy=flights, start=NOW - HOUR, end=NOW, verdict="fail", reason="late")
    run = tried(FakeLauncher(away), NOW)
    assert (run.state, run.waits_since, run.attempt) == (JobState.QUEUED, NOW, 0)


def test_a_followed_copy_waits_with_growing_pauses_says_why_and_reads_on(
    shop: Shop,  # noqa: F811  # the fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Feed.objects.filter(dataset=shop.copy.dataset_id).update(options={"index": "hbase", "deadline_s": 1800})
    cluster(where=shop.copy.data_center.name)
    is_away, works = [True], shop.run
    monkeypatch.setattr(shop, "run", lambda spec, *rest: away(spec) if is_away[0] else works(spec, *rest))
    process = follower(shop.worker(), monotonic=lambda: shop.now.timestamp())
    process.step()
    shop.change()
    asked = []
    for _ in range(20 * MINUTE // EVERY):
        before = IndexShare.objects.values_list("requests", flat=True).first() or 0
        shop.steps(process)
        if (IndexShare.objects.values_list("requests", flat=True).first() or 0) > before:
            asked.append(shop.now)
    run = the_run()
    assert (run.state, run.attempt, run.error) == (JobState.RUNNING, 1, WHY)
    pauses = [later - earlier for earlier, later in pairwise(asked)]
    assert pauses[:3] == [5 * SECOND, 5 * SECOND, 10 * SECOND]
    assert max(pauses) == 5 * MINUTE == pauses[-1]
    assert not CopyLease.objects.exclude(holder="").exists()
    assert not IndexAllowance.objects.exclude(fraction=0, leased_by="").exists(), "no more than its place"
    is_away[0] = False
    shop.steps(process, 5 * MINUTE // EVERY)
    assert (len(shop.specs), the_run().error, the_run().state) == (1, "", JobState.RUNNING)
    is_away[0] = True
    shop.change()
    until = shop.now + HOUR
    while "has waited for" not in the_run().error and shop.now < until:
        shop.steps(process)
    assert (the_run().state, the_run().attempt, the_run().report["status"]) == (JobState.QUEUED, 1, FAILED)
    assert the_run().error.startswith(f"It {WHY}, and has waited for 0:3")
