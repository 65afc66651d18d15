"""Which jobs run on a copy at the same time, and who has its lease meanwhile."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from ingestion.models import CopyLease, JobKind, JobRun, JobState
from ingestion.runs import job_runs, leases, rebuilds, run_worker
from ingestion.spark.contract.job_kinds import EXCLUSIVE_KINDS
from ingestion.spark.contract.report import NOTHING_TO_DO, JobReport
from ingestion.spark.contract.spec import JobSpec
from ingestion.spark.contract.write_lease import WriteLease
from lakehub.catalog.models import DatasetCopy
from tests import factories as given
from tests.factories import NOW
from tests.web.ingestion.conftest import FakeLauncher, worker_at

SHARING = [kind for kind in JobKind.values if kind not in EXCLUSIVE_KINDS and kind != JobKind.FOLLOW]
"""Follow runs have a lane of their own."""


def queued(copy: DatasetCopy, kind: str) -> JobRun:
    return JobRun.objects.create(copy=copy, kind=kind, due_at=NOW)


def claimed(*, now_or_later: timedelta = timedelta()) -> JobRun | None:
    return job_runs.claim_next_run("host:1:a", now=NOW + now_or_later)


def test_jobs_that_share_a_copy_run_at_once(copy: DatasetCopy) -> None:
    runs = [queued(copy, kind) for kind in (*SHARING, "backfill")]
    assert [claimed() for _ in runs] == runs
    assert claimed() is None


@pytest.mark.parametrize("kind", EXCLUSIVE_KINDS)
def test_one_that_is_to_be_alone_waits_for_all_and_all_wait_for_it(copy: DatasetCopy, kind: str) -> None:
    backfill = queued(copy, "backfill")
    assert claimed() == backfill
    alone, later = queued(copy, kind), queued(copy, "delete")
    assert claimed() is None  # the delete was asked for behind it
    JobRun.objects.filter(pk=backfill.pk).update(state=JobState.SUCCEEDED)
    assert claimed() == alone
    assert claimed() is None
    JobRun.objects.filter(pk=alone.pk).update(state=JobState.SUCCEEDED)
    assert claimed() == later


@pytest.mark.parametrize("kind", EXCLUSIVE_KINDS)
def test_a_follow_run_keeps_nobody_off(copy: DatasetCopy, kind: str) -> None:
    JobRun.objects.create(copy=copy, kind="follow", due_at=NOW, state=JobState.RUNNING, leased_by="host:2:b")
    assert claimed_kind(queued(copy, kind)) == kind


def test_one_that_is_to_be_alone_and_failed_lets_others_go_first_until_it_is_due(copy: DatasetCopy) -> None:
    JobRun.objects.create(copy=copy, kind="bootstrap", due_at=NOW + timedelta(seconds=5))
    later = queued(copy, "backfill")
    assert claimed() == later


def test_other_copies_are_not_kept_waiting(copy: DatasetCopy) -> None:
    assert claimed_kind(queued(copy, "bootstrap")) == "bootstrap"
    other = given.copy_of(given.dataset("orders", record_key=["id"]))
    assert claimed_kind(queued(other, "backfill")) == "backfill"


def claimed_kind(run: JobRun) -> str | None:
    claimed_run = claimed()
    return claimed_run.kind if claimed_run == run and claimed_run is not None else None


def test_the_database_lets_no_two_run_that_are_to_be_alone(copy: DatasetCopy) -> None:
    constraint = next(each for each in JobRun._meta.constraints if each.name == "one_exclusive_job_a_copy")
    assert f"{EXCLUSIVE_KINDS}" in str(constraint)
    given.run(copy, kind="bootstrap", state=JobState.RUNNING)
    with pytest.raises(IntegrityError), transaction.atomic():
        given.run(copy, kind="drop", state=JobState.RUNNING)


class LookingLauncher(FakeLauncher):
    """Takes the lease as a job does, and remembers who held the copy before, meanwhile and after."""

    def run(
        self, spec: JobSpec, secrets: object, lease: WriteLease | None = None, guidance: object = None
    ) -> JobReport:
        self.holders = [held()]
        if lease is not None:
            assert lease.try_acquire()
            self.holders.append(held())
            lease.release()
            self.holders.append(held())
            assert lease.try_acquire()  # and dies with it
        return JobReport(run_id=spec.run_id, status=NOTHING_TO_DO)


def holder() -> str:
    return held()[0]


def held() -> tuple[str, bool]:
    """By whom, and whether they share the copy."""
    return next(iter(CopyLease.objects.exclude(holder="").values_list("holder", "is_shared")), ("", False))


def test_a_job_that_shares_holds_the_lease_while_it_writes_only(copy: DatasetCopy) -> None:
    launcher, run = LookingLauncher(), queued(given.with_table(copy), "incremental")
    assert run_worker.run_next(worker_at(NOW, launcher)) == run
    by_run = [(name.rpartition(":")[2], is_shared) for name, is_shared in launcher.holders]
    assert by_run == [("", False), (str(run.pk), True), ("", False)]
    assert holder() == ""


def test_a_job_that_is_alone_holds_it_for_its_whole_run(copy: DatasetCopy) -> None:
    launcher, run = LookingLauncher(), queued(copy, "bootstrap")
    assert run_worker.run_next(worker_at(NOW, launcher)) == run
    assert [(name.rpartition(":")[2], is_shared) for name, is_shared in launcher.holders] == [(str(run.pk), False)]
    assert holder() == ""


def test_a_run_begins_while_another_writes_but_not_while_its_copies_are_switched(copy: DatasetCopy) -> None:
    writing = leases.CopyWriteLease(copy, "host:1:a:7")
    assert writing.try_acquire()
    assert leases.may_share(copy)
    assert not leases.lease_of_run(queued(copy, "backfill"), "host:1:a").try_acquire()
    writing.release()
    with rebuilds._all_leased([copy], "host:1:b") as are_leased:
        assert are_leased
        assert not leases.may_share(copy)
    assert leases.may_share(copy)


def test_a_database_that_does_not_answer_is_asked_again(copy: DatasetCopy, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the job has read is not lost for it."""
    lease = leases.CopyWriteLease(copy, "host:1:a:7")

    def silent(*_: object, **__: object) -> bool:
        raise OperationalError("database is locked")

    with monkeypatch.context() as broken:
        broken.setattr(connection, "close", lambda: None)  # the test's own transaction is on it
        broken.setattr(leases, "acquire", silent)
        assert not lease.try_acquire()
    assert lease.try_acquire()


def test_a_renewal_never_takes_a_lease_again_that_was_released(copy: DatasetCopy) -> None:
    lease = leases.CopyWriteLease(copy, "host:1:a:7")
    assert lease.try_acquire()
    assert lease.renew()
    lease.release()
    assert lease.renew()
    assert holder() == ""
    assert lease.try_acquire()
    CopyLease.objects.update(holder="host:2:b:8")
    assert not lease.renew()


def test_a_worker_that_died_while_its_job_wrote_is_succeeded_at_once(copy: DatasetCopy) -> None:
    gone = leases.CopyWriteLease(copy, f"{leases.holder_name('here', 2**22 + 1, 'x')}:7")
    alive = leases.CopyWriteLease(copy, f"{leases.holder_name('here', os.getpid(), 'x')}:8")
    assert gone.try_acquire()
    assert not alive.try_acquire()
    assert leases.release_leases_of_dead_processes("here") == 1
    assert alive.try_acquire()
    assert leases.release_leases_of_dead_processes("here") == 0
