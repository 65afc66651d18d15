"""Jobs share the fraction of their dataset, and never take what another still uses; what a dead one had is free again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from ingestion.domain.index_cluster.fractions import WHOLE
from ingestion.index_shares.clusters import note_benchmark
from ingestion.index_shares.shares import recompute_all, set_fraction
from ingestion.models import IndexAllowance, IndexCluster, IndexShare, JobKind, JobRun, JobState
from ingestion.runs import leases, run_worker
from ingestion.runs.index_use.allowances import Allowance, allowance_of, take
from ingestion.runs.source_use import source_limits
from ingestion.runs.source_use.source_limits import RETRY_AFTER, Crowded
from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import NOTHING_TO_DO, JobReport
from lakehub.catalog.models import DatasetCopy, DatasetKind
from lakehub.kernel.errors import Refused
from tests import factories as given
from tests.factories import HOUR, NOW
from tests.index_jobs import cluster, indexed, job, uses_another_index
from tests.processes_at_once import SETS_UP_JOBS, TAKES_ALLOWANCES, run_script, work_at_once
from tests.web.ingestion.conftest import FakeLauncher, worker_at

HALF = WHOLE // 2


@pytest.fixture
def main(db: None) -> IndexCluster:
    return cluster()


@pytest.fixture
def flights(main: IndexCluster) -> DatasetCopy:
    return indexed("flights")


def taken(run: JobRun, worker: str = "host:1:a") -> Allowance:
    allowance = take(run, worker)
    assert isinstance(allowance, Allowance)
    return allowance


def waits(run: JobRun, worker: str = "host:1:a") -> str:
    no_room = take(run, worker)
    assert isinstance(no_room, Crowded)
    return no_room.why


def counted() -> list[int]:
    return [*IndexAllowance.objects.order_by("run").values_list("fraction", flat=True)]


def lapse(run: JobRun) -> None:
    IndexAllowance.objects.filter(run=run).update(leased_until=F("leased_until") - 2 * leases.LEASE_DURATION)


def test_a_job_alone_has_its_datasets_fraction_and_the_second_one_half_when_the_first_has_slowed_down(
    flights: DatasetCopy,
) -> None:
    backfill, deleting = job(flights), job(flights, JobKind.DELETE)
    first = taken(backfill)
    assert (first.parts, first.cluster.qps_per_server) == (WHOLE, 6_000)
    assert waits(deleting) == (
        "waits for the index cluster `main`: its part is 50%, and other jobs leave 0% until they have slowed down"
    )
    assert first.renew()
    assert (first.parts, counted()) == (HALF, [WHOLE, 0]), "told, and still counted whole"
    waits(deleting)
    assert first.renew()
    second = taken(deleting)
    assert (first.parts, second.parts, counted()) == (HALF, HALF, [HALF, HALF])
    second.release()
    first.renew()
    assert (first.parts, counted()) == (WHOLE, [WHOLE])


def test_a_job_of_a_new_dataset_waits_for_room_in_the_cluster(flights: DatasetCopy) -> None:
    """The first dataset had all of it: until its job has given back half, no server is asked for more than it can answer."""
    first = taken(job(flights))
    planes = job(indexed("planes"))
    waits(planes)
    assert IndexShare.objects.get(copy=flights).fraction == HALF
    first.renew()
    waits(planes)
    first.renew()
    assert (taken(planes).parts, first.parts, counted()) == (HALF, HALF, [HALF, HALF])


def test_a_fraction_that_grows_is_taken_as_far_as_others_have_given_back(flights: DatasetCopy) -> None:
    planes = indexed("planes")
    recompute_all()
    smaller, larger = taken(job(flights)), taken(job(planes))
    set_fraction(flights, WHOLE // 10, actor="ana", now=NOW)
    larger.renew()
    assert (larger.parts, sum(counted())) == (HALF, WHOLE), "flights does not know yet"
    smaller.renew()
    larger.renew()
    assert (smaller.parts, larger.parts) == (WHOLE // 10, HALF)
    smaller.renew()
    larger.renew()
    assert (smaller.parts, larger.parts, sum(counted())) == (WHOLE // 10, WHOLE * 9 // 10, WHOLE)


def test_a_copy_that_is_followed_has_its_part_again_at_once_while_another_job_works(flights: DatasetCopy) -> None:
    """The other job has half meanwhile, though nothing is sent between two batches; and all where none has come for as long as a lease."""
    backfill, follow = job(flights), job(flights, JobKind.FOLLOW)
    working = taken(backfill)
    with allowance_of(follow, "host:1:b") as crowded:
        assert isinstance(crowded, Crowded)
    for _ in range(2):
        working.renew()
    for _ in range(3):
        with allowance_of(follow, "host:1:b") as allowance:
            assert isinstance(allowance, Allowance)
            assert (allowance.parts, counted()) == (HALF, [HALF, HALF])
        working.renew()
        assert (working.parts, counted()) == (HALF, [HALF, 0])
    lapse(follow)
    working.renew()
    assert (working.parts, counted()) == (WHOLE, [WHOLE])


def test_a_dead_job_gives_its_part_back_when_its_lease_runs_out(flights: DatasetCopy) -> None:
    dead = job(flights)
    first = taken(dead, "far:1:a")
    other = job(flights, JobKind.DELETE)
    waits(other)
    lapse(dead)
    assert taken(other).parts == WHOLE
    assert not first.renew()
    assert first.parts == 0, "what it had belongs to another"


def test_of_the_same_host_and_of_a_run_that_is_over_it_is_free_at_once(flights: DatasetCopy) -> None:
    dead, other = job(flights), job(flights, JobKind.DELETE)
    taken(dead, "host:999999999:a")
    waits(other)
    leases.release_leases_of_dead_processes("host")
    assert taken(other).parts == WHOLE
    again = job(flights, JobKind.REPLAY)
    waits(again)
    JobRun.objects.filter(pk=other.pk).update(state=JobState.FAILED)
    assert taken(again).parts == WHOLE


def test_a_run_that_another_worker_took_over_waits_for_the_lease_of_the_first(flights: DatasetCopy) -> None:
    run = job(flights)
    first = taken(run, "far:1:a")
    assert "another worker holds the part of this run" in waits(run, "host:2:b")
    assert first.renew()
    lapse(run)
    assert taken(run, "host:2:b").parts == WHOLE
    first.release()
    assert counted() == [WHOLE], "the late first one takes nothing away"


def test_a_job_that_waits_and_asks_no_more_holds_nothing_up(flights: DatasetCopy) -> None:
    first, forgotten = taken(job(flights)), job(flights, JobKind.DELETE)
    waits(forgotten)
    first.renew()
    assert first.parts == HALF
    lapse(forgotten)
    first.renew()
    assert first.parts == WHOLE


def test_a_job_whose_lease_ran_out_goes_on_unless_another_was_given_its_part(flights: DatasetCopy) -> None:
    """As after an hour without the database."""
    run, other = job(flights), job(flights, JobKind.DELETE)
    allowance = taken(run)
    lapse(run)
    assert allowance.renew()
    assert allowance.parts == WHOLE, "nobody has asked meanwhile"
    lapse(run)
    second = taken(other)
    assert not allowance.renew()
    assert allowance.parts == 0
    second.renew()
    second.renew()
    assert allowance.renew()
    assert (allowance.parts, second.parts, counted()) == (HALF, HALF, [HALF, HALF])


def test_whoever_waits_for_too_long_is_told_what_to_do(flights: DatasetCopy) -> None:
    taken(job(flights))
    waiting = job(flights, JobKind.DELETE)
    waits(waiting)
    IndexAllowance.objects.filter(run=waiting).update(asked_at=F("asked_at") - HOUR)
    crowded = take(waiting, "host:1:a")
    assert isinstance(crowded, Crowded)
    assert crowded.error_after(2 * HOUR) is None
    assert "has waited for 1:00:0" in (crowded.error_after(HOUR) or "")
    assert "`manage.py index_clusters set-fraction`" in (crowded.error_after(HOUR) or "")


def test_what_cannot_be_renewed_is_used_no_longer_than_the_lease(flights: DatasetCopy) -> None:
    """By the clock of the process, as the database does not answer: others may have it then."""
    at = [100.0]
    allowance = take(job(flights), "host:1:a", clock=lambda: at[0])
    assert isinstance(allowance, Allowance)
    lease = leases.LEASE_DURATION.total_seconds()
    at[0] += lease - 6
    assert allowance.parts == WHOLE
    at[0] += 5
    assert allowance.parts == 0
    assert allowance.renew()
    assert allowance.parts == WHOLE


def test_another_benchmark_is_followed(main: IndexCluster, flights: DatasetCopy) -> None:
    allowance = taken(job(flights))
    note_benchmark(main, 9_000, actor="ana", now=NOW)
    allowance.renew()
    assert allowance.cluster.qps_per_server == 9_000


def test_a_job_at_work_is_told_when_servers_come_and_other_jobs_take_their_part(flights: DatasetCopy) -> None:
    """By what was renewed last, without a query: the job asks from any thread, also while the database is away."""
    at = [100.0]
    run = job(flights)
    allowance = take(run, "host:1:a", clock=lambda: at[0])
    assert isinstance(allowance, Allowance)
    guidance = source_limits.guidance_of(run, allowance)

    def told() -> float | None:
        with CaptureQueriesContext(connection) as queries:
            rate = guidance.index_requests_per_s()
        assert len(queries) == 0
        return rate

    JobRun.objects.filter(pk=run.pk).update(leased_by="host:1:a")
    run_worker._tell_progress(run, worker_at(NOW, FakeLauncher(far=JobProgress("judge", 1.0, index_servers=3))))
    run_worker._tell_progress(run, worker_at(NOW, FakeLauncher(far=JobProgress("judge", 3.0))))
    assert told() == 6_000.0
    allowance.renew()
    assert told() == 18_000.0
    waits(job(flights), "host:2:b")
    allowance.renew()
    assert told() == 9_000.0
    at[0] += leases.LEASE_DURATION.total_seconds()
    assert told() == 0.0
    assert source_limits.guidance_of(run).index_requests_per_s() is None


@pytest.mark.parametrize("kind", [JobKind.BOOTSTRAP, JobKind.REBUILD_INDEX, JobKind.DROP])
def test_bulk_loads_never_go_through_it(flights: DatasetCopy, kind: str) -> None:
    assert take(job(flights, kind), "host:1:a") is None


def test_other_indexes_need_none(flights: DatasetCopy) -> None:
    uses_another_index(flights)
    assert take(job(flights), "host:1:a") is None
    assert counted() == []


def test_an_append_only_dataset_asks_for_what_comes_late_within_its_part(flights: DatasetCopy) -> None:
    clicks = indexed("clicks", kind=DatasetKind.APPEND_ONLY)
    recompute_all()
    allowance = take(job(clicks), "host:1:a")
    assert isinstance(allowance, Allowance)
    assert allowance.parts == IndexShare.objects.get(copy=clicks).fraction > 0


@pytest.mark.django_db
def test_a_cluster_that_is_not_there_or_not_benchmarked_is_refused_with_the_remedy() -> None:
    run = job(indexed("flights"))
    with pytest.raises(
        Refused, match=r"data center dc1 has no index cluster. Add it with `manage.py index_clusters add"
    ):
        take(run, "host:1:a")
    cluster(qps=None)
    with pytest.raises(Refused, match=r"`main` was not benchmarked.* `manage.py index_clusters set-qps main QPS`"):
        take(run, "host:1:a")


@pytest.mark.slow
def test_over_processes_never_more_is_held_than_the_share_and_the_cluster_have(tmp_path: Path) -> None:
    """Four jobs of two datasets take, renew and give back; each looks at all that is held, again and again."""
    run_script(tmp_path, SETS_UP_JOBS)
    held = work_at_once(tmp_path, TAKES_ALLOWANCES, count=4)
    assert len(held) == 4 * 6
    assert shared(held), "some worked at the same time"


def shared(held: Sequence[tuple[float, float]]) -> bool:
    return any(sum(begin <= at < end for begin, end in held) > 1 for at, _ in held)


@pytest.fixture
def a_known_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehub.catalog.ports.index_names", lambda: ("hbase", "simple"))


def test_a_run_waits_for_room_and_its_job_has_its_part_until_it_ends(
    flights: DatasetCopy, launcher: FakeLauncher, a_known_index: None
) -> None:
    given.commit(flights)
    other = taken(job(flights), "host:9:b")
    run = job(flights, JobKind.DELETE, JobState.QUEUED)
    JobRun.objects.filter(pk=run.pk).update(due_at=NOW, params={"keys": [["1"]]})
    held: list[list[int]] = []
    launcher.answer = lambda spec: (held.append(counted()), JobReport(run_id=spec.run_id, status=NOTHING_TO_DO))[1]
    run_worker.run_next(worker_at(NOW, launcher))
    run.refresh_from_db()
    assert (run.state, run.due_at, held) == (JobState.QUEUED, NOW + RETRY_AFTER, [])
    assert "waits for the index cluster `main`: its part is 50%" in run.error
    other.renew()
    other.renew()
    run_worker.run_next(worker_at(run.due_at, launcher))
    run.refresh_from_db()
    assert (run.state, run.error, held, counted()) == (JobState.SUCCEEDED, "", [[HALF, HALF]], [HALF])


@pytest.mark.django_db
def test_a_run_without_a_cluster_fails_with_the_remedy(launcher: FakeLauncher) -> None:
    copy = indexed("flights")
    given.commit(copy)
    run = job(copy, JobKind.DELETE, JobState.QUEUED)
    run_worker.run_next(worker_at(NOW, launcher))
    run.refresh_from_db()
    assert "the data center dc1 has no index cluster. Add it with" in run.error
    assert launcher.asked == []


def test_a_job_is_told_where_its_index_is_and_how_fast_it_may_ask(flights: DatasetCopy, launcher: FakeLauncher) -> None:
    """And one of a dataset with another index nothing."""
    given.commit(flights)
    IndexShare.objects.update_or_create(copy=flights, defaults={"cluster": IndexCluster.objects.get(), "servers": 3})
    for number in (1, 2):
        run = job(flights, JobKind.DELETE, JobState.QUEUED)
        JobRun.objects.filter(pk=run.pk).update(due_at=NOW, params={"keys": [[str(number)]]})
        run_worker.run_next(worker_at(NOW, launcher))
        uses_another_index(flights)
    (spec, _), (other, _) = launcher.asked
    index = spec.table.global_index
    assert index is not None
    assert (index.thrift, index.quorum) == ("thrift:9090", "zk1:2181,zk2:2181")
    assert (index.staging_uri, index.znode) == ("hdfs://nn/hfiles", "/hbase")
    assert (index.table, index.requests_per_s) == (f"lakehub-dc1-{flights.pk}", 18_000.0)
    assert other.table.global_index is None
