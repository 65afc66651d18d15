"""What jobs tell of their index: a server more raises the rate of the next one, and what they have asked is summed up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ingestion.models import IndexShare, JobKind, JobRun, JobState
from ingestion.runs import run_worker
from ingestion.spark.contract.report import FAILED, NOTHING_TO_DO, IndexUse, JobReport
from lakehub.catalog.models import DatasetCopy, Feed
from tests import factories as given
from tests import index_jobs
from tests.factories import NOW
from tests.following import follower
from tests.web.ingestion.conftest import FakeLauncher, worker_at
from tests.web.ingestion.following.shop import Shop

THREE = ("rs1:16020", "rs2:16020", "rs2:16021")


@pytest.fixture(autouse=True)
def a_known_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehub.catalog.ports.index_names", lambda: ("hbase", "simple"))


def deleted(copy: DatasetCopy, launcher: FakeLauncher, number: int, use: IndexUse | None, status: str) -> float | None:
    """A job of the queue, which tells this: what it was allowed."""
    launcher.answer = lambda spec: JobReport(run_id=spec.run_id, status=status, index_use=use)
    run = index_jobs.job(copy, JobKind.DELETE, JobState.QUEUED)
    JobRun.objects.filter(pk=run.pk).update(due_at=NOW, params={"keys": [[str(number)]]})
    run_worker.run_next(worker_at(NOW, launcher))
    index = launcher.asked[-1][0].table.global_index
    assert index is not None
    return index.requests_per_s


@pytest.mark.django_db
def test_a_server_more_raises_the_rate_of_the_next_job(launcher: FakeLauncher) -> None:
    """What a job that failed has asked counts too; servers that were not counted change nothing."""
    index_jobs.cluster()
    flights = index_jobs.indexed("flights")
    given.commit(flights)
    use = IndexUse(THREE, reads=40, writes=2, seconds=0.5, entries=1_234, even_servers=3)
    assert deleted(flights, launcher, 1, use, NOTHING_TO_DO) == 6_000.0
    share = IndexShare.objects.get(copy=flights)
    assert (share.servers, share.rows, share.requests) == (3, 1_234, 42)
    assert deleted(flights, launcher, 2, IndexUse(reads=8, seconds=0.25), FAILED) == 18_000.0
    assert deleted(flights, launcher, 3, None, NOTHING_TO_DO) == 18_000.0
    share.refresh_from_db()
    assert (share.servers, share.rows, share.requests) == (3, 1_234, 50)
    assert (share.used_requests, share.used_seconds, share.used_at) == (8, 0.25, NOW)


def test_a_batch_of_a_followed_table_tells_it_too(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    Feed.objects.filter(dataset=shop.copy.dataset_id).update(options={"index": "hbase"})
    index_jobs.cluster()
    works = shop.run
    monkeypatch.setattr(
        shop,
        "run",
        lambda *given: replace(works(*given), index_use=IndexUse(THREE, reads=1, seconds=0.1, even_servers=3)),
    )
    process = follower(shop.worker())
    process.step()
    for _ in range(2):
        shop.change()
        shop.steps(process)
    share = IndexShare.objects.get(copy=shop.copy)
    assert (share.servers, share.requests, share.used_requests) == (3, 2, 1)
    rates = [spec.table.global_index and spec.table.global_index.requests_per_s for spec in shop.specs]
    assert rates == [6_000.0, 18_000.0]
