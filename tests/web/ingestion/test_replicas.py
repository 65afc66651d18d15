"""A copy that is replicated: who sets it, which jobs it gets and refuses, and what its source is told."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from ingestion.following import follow_runs
from ingestion.models import Commit, JobRun, JobState, ReaderPosition, Replica
from ingestion.runs import feed_schedule, job_runs, run_worker
from ingestion.runs.job_specs import job_spec_of
from ingestion.runs.replicas.schedule import LOOK_EVERY, RETRY_AFTER
from ingestion.runs.replicas.setting import end_replication, replicate
from ingestion.runs.replicas.states import replica_states
from ingestion.spark.contract.report import SUCCEEDED, JobReport
from ingestion.spark.contract.spec import JobSpec
from ingestion.spark.replication.copying import ChecksumMismatch
from lakehub.accounts.models import Role
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Conflict, Refused
from tests import factories as given
from tests.factories import MINUTE, NOW
from tests.web.ingestion.conftest import FakeLauncher, worker_at

pytestmark = pytest.mark.django_db
COMPLETED = "20261116080000000"


@pytest.fixture
def copies() -> tuple[DatasetCopy, DatasetCopy]:
    """A source and the copy that becomes its replica, both loaded."""
    dataset = given.dataset("flights", copies=("dc1", "dc2"))
    given.feed(dataset)
    source, copy = dataset.copies.order_by("data_center__name")
    for each in (source, copy):
        ended(each, "bootstrap")
    return source, copy


def ended(copy: DatasetCopy, kind: str, state: JobState = JobState.SUCCEEDED, at: object = NOW) -> JobRun:
    return JobRun.objects.create(copy=copy, kind=kind, state=state, due_at=at, started_at=at, ended_at=at)


def commit(copy: DatasetCopy, at: object = NOW, instant: str = "20261116075959000") -> None:
    Commit.objects.create(copy=copy, instant=instant, completed_at=at, operation="upsert")


def due(copy: DatasetCopy, now: object = NOW) -> list[str]:
    return [run.kind for run in feed_schedule.request_due_runs(now=now) if run.copy == copy]  # type: ignore[arg-type]  # a time, in these tests


def test_it_is_not_fed_but_replicated_when_its_source_has_a_commit(copies: tuple[DatasetCopy, DatasetCopy]) -> None:
    source, copy = copies
    replicate(copy, source, mib_per_s=None, actor="ana", now=NOW)
    assert due(copy) == []
    commit(source)
    assert due(copy) == ["replicate"]
    assert due(copy) == []
    copy.runs.filter(kind="replicate").update(
        state=JobState.SUCCEEDED, started_at=NOW + MINUTE, ended_at=NOW + 2 * MINUTE
    )
    assert due(copy, NOW + 3 * MINUTE) == []
    commit(source, NOW + MINUTE, "20261116080059000")
    assert due(copy, NOW + 3 * MINUTE) == ["replicate"]


def test_it_looks_now_and_then_without_a_commit_and_after_it_was_given_up(
    copies: tuple[DatasetCopy, DatasetCopy],
) -> None:
    source, copy = copies
    replicate(copy, source, mib_per_s=None, actor="ana", now=NOW)
    commit(source)
    ended(copy, "replicate", at=NOW + MINUTE)
    assert due(copy, NOW + LOOK_EVERY) == []
    assert due(copy, NOW + MINUTE + LOOK_EVERY) == ["replicate"]
    copy.runs.filter(state=JobState.QUEUED).update(state=JobState.FAILED, ended_at=NOW + 2 * LOOK_EVERY)
    assert due(copy, NOW + 2 * LOOK_EVERY + MINUTE) == []
    assert due(copy, NOW + 2 * LOOK_EVERY + RETRY_AFTER) == ["replicate"]


def test_the_run_that_follows_it_ends_and_no_job_writes_it(copies: tuple[DatasetCopy, DatasetCopy]) -> None:
    source, copy = copies
    feed_schedule.request_due_runs(now=NOW)
    assert copy.runs.filter(kind="follow", state=JobState.QUEUED).exists()
    replicate(copy, source, mib_per_s=None, actor="ana", now=NOW)
    follow_runs.end_unwanted(now=NOW)
    assert not copy.runs.filter(kind="follow", state=JobState.QUEUED).exists()
    assert source.runs.filter(kind="follow", state=JobState.QUEUED).exists()
    for kind in ("incremental", "bootstrap", "delete", "cluster", "verify_index"):
        with pytest.raises(Refused, match=f"replicated from dc1, so it has no job `{kind}` of its own"):
            job_runs.request_run(copy, kind, asked_by="ana", now=NOW)
    batch = JobRun(copy=copy, kind="follow", due_at=NOW)
    with pytest.raises(Refused, match="no job `incremental` of its own"):
        job_spec_of(batch, staging="file:///s", ahead=NOW - NOW, now=NOW, batch="1")
    with pytest.raises(Refused, match=r"flights@dc1 is not replicated.*--to dc1"):
        job_runs.request_run(source, "replicate", asked_by="ana", now=NOW)
    assert job_runs.request_run(copy, "drop", asked_by="ana", now=NOW).kind == "drop"


def test_its_job_reads_the_other_copy_and_that_keeps_what_was_not_copied(
    copies: tuple[DatasetCopy, DatasetCopy],
) -> None:
    source, copy = copies
    replicate(copy, source, mib_per_s=50, actor="ana", now=NOW)
    commit(source)
    feed_schedule.request_due_runs(now=NOW)
    JobRun.objects.exclude(kind="replicate").delete()
    specs: list[JobSpec] = []

    def work(spec: JobSpec) -> JobReport:
        specs.append(spec)
        facts = {"completed": COMPLETED, "instant": "20261116075959000", "resync": ""}
        return JobReport(spec.run_id, SUCCEEDED, output={"replication": facts})

    run_worker.run_next(worker_at(NOW + MINUTE, FakeLauncher(work)))
    (spec,) = specs
    assert (spec.kind, spec.table.uri, spec.source, spec.pipeline) == ("replicate", copy.uri, None, None)
    assert spec.replication is not None
    assert (spec.replication.source_uri, spec.replication.mib_per_s) == (source.uri, 50.0)
    reader = ReaderPosition.objects.get()
    assert (reader.copy, reader.name, reader.position) == (source, "replica in dc2", COMPLETED)


def test_it_is_made_from_another_copy_of_its_dataset_and_in_no_circle(copies: tuple[DatasetCopy, DatasetCopy]) -> None:
    source, copy = copies
    with pytest.raises(Refused, match="cannot be replicated from itself"):
        replicate(copy, copy, mib_per_s=None, actor="ana", now=NOW)
    with pytest.raises(Refused, match="of another dataset"):
        replicate(copy, given.copy(given.dataset("planes", copies=()), "dc1"), mib_per_s=None, actor="ana", now=NOW)
    with pytest.raises(Refused, match="`mib_per_s` is 0"):
        replicate(copy, source, mib_per_s=0, actor="ana", now=NOW)
    third = given.copy(copy.dataset, "dc3")
    replicate(copy, source, mib_per_s=None, actor="ana", now=NOW)
    replicate(third, copy, mib_per_s=None, actor="ana", now=NOW)
    with pytest.raises(Refused, match="flights@dc3 is itself made from flights@dc1"):
        replicate(source, third, mib_per_s=None, actor="ana", now=NOW)


def test_a_job_at_work_is_not_overtaken(copies: tuple[DatasetCopy, DatasetCopy]) -> None:
    source, copy = copies
    run = JobRun.objects.create(copy=copy, kind="backfill", state=JobState.RUNNING, due_at=NOW)
    with pytest.raises(Conflict, match=f"Run {run.pk}, a backfill of flights@dc2, is running"):
        replicate(copy, source, mib_per_s=None, actor="ana", now=NOW)
    assert not Replica.objects.exists()


def test_a_copy_that_is_fed_again_is_bootstrapped_anew(copies: tuple[DatasetCopy, DatasetCopy]) -> None:
    source, copy = copies
    replicate(copy, source, mib_per_s=None, actor="ana", now=NOW)
    run = end_replication(copy, actor="ana", now=NOW)
    assert run is not None
    assert (run.kind, run.params) == ("bootstrap", {"replace": True})
    assert not Replica.objects.exists()


def test_owners_set_it_over_the_api_and_see_how_far_it_is(copies: tuple[DatasetCopy, DatasetCopy]) -> None:
    source, copy = copies
    client = Client()
    ana = given.user("ana")
    given.member(ana, copy.dataset.team, Role.OWNER)
    client.force_login(ana)
    address = "/api/v1/datasets/flights/replicas"
    answer = client.put(f"{address}/dc2", {"replicated_from": "dc1", "mib_per_s": 20}, content_type="application/json")
    assert (answer.status_code, answer.json()["replicated_from"], answer.json()["instant"]) == (200, "dc1", "")
    assert client.put(f"{address}/dc2", {"replicated_from": "dc2"}, content_type="application/json").status_code == 422
    commit(source)
    run = ended(copy, "replicate")
    run.report = {"output": {"replication": {"instant": "20261116075959000", "resync": "there is no replica yet"}}}
    run.save()
    (state,) = client.get(address).json()
    assert (state["data_center"], state["mib_per_s"], state["is_equal"], state["resync"]) == ("dc2", 20, True, "there is no replica yet")  # fmt: skip
    assert client.delete(f"{address}/dc2").status_code == 204
    assert client.delete(f"{address}/dc2").status_code == 404


def test_it_says_what_waits_and_what_was_copied(copies: tuple[DatasetCopy, DatasetCopy]) -> None:
    source, copy = copies
    replicate(copy, source, mib_per_s=None, actor="ana", now=NOW)
    commit(source, NOW, "1")
    commit(source, NOW + MINUTE, "2")
    (begins,) = replica_states(copy.dataset)
    assert (begins.instant, begins.pending, begins.waits_since, begins.copied_at) == ("", 2, NOW, None)
    run = ended(copy, "replicate", at=NOW + MINUTE)
    run.report = {"output": {"replication": {"instant": "1", "files": 3, "bytes": 4_000}}}
    run.save()
    ended(copy, "replicate", at=NOW + 2 * MINUTE, state=JobState.FAILED)
    (behind,) = replica_states(copy.dataset)
    assert (behind.pending, behind.waits_since, behind.is_equal) == (1, NOW + MINUTE, False)
    assert (behind.copied_files, behind.copied_bytes, behind.copied_at) == (3, 4_000, NOW + MINUTE)
    commit(source, NOW + 2 * MINUTE, "3")
    nothing = ended(copy, "replicate", at=NOW + 3 * MINUTE)
    nothing.report = {"output": {"replication": {"instant": "3", "files": 0, "bytes": 0}}}
    nothing.save()
    (equal,) = replica_states(copy.dataset)
    assert (equal.pending, equal.is_equal, equal.copied_files) == (0, True, 3)
    commit(source, NOW + 2 * MINUTE + MINUTE / 2, "4")
    (rolled_back,) = replica_states(copy.dataset)
    assert (rolled_back.pending, rolled_back.is_equal) == (0, True), "the run has not seen it any more"
    Commit.objects.filter(copy=source, instant="3").delete()
    (forgotten,) = replica_states(copy.dataset)
    assert (forgotten.pending, forgotten.is_equal) == (None, False)


def test_a_checksum_that_did_not_agree_is_told_apart_from_other_errors(
    copies: tuple[DatasetCopy, DatasetCopy],
) -> None:
    source, copy = copies
    replicate(copy, source, mib_per_s=None, actor="ana", now=NOW)
    run = ended(copy, "replicate", JobState.FAILED)
    for error, differ in (("ConnectionError: refused", False), (f"{ChecksumMismatch.__name__}: The file x", True)):
        JobRun.objects.filter(pk=run.pk).update(error=error)
        (state,) = replica_states(copy.dataset)
        assert (state.error, state.failed_run, state.checksums_differ) == (error, run.pk, differ)


def test_it_is_set_shown_and_ended_by_command(copies: tuple[DatasetCopy, DatasetCopy]) -> None:
    out = StringIO()
    call_command("replicate", "flights", to="dc2", source="dc1", mib_per_s=5, stdout=out)
    assert out.getvalue() == "dc2 from dc1, at most 5 MiB/s: not replicated yet.\n"
    with pytest.raises(CommandError, match="cannot be replicated from itself"):
        call_command("replicate", "flights", to="dc2", source="dc2")
    with pytest.raises(CommandError, match="--to DATA_CENTER"):
        call_command("replicate", "flights", source="dc1")
    call_command("replicate", "flights", to="dc2", end=True, stdout=out)
    assert out.getvalue().endswith("No copy of flights is replicated.\n")
