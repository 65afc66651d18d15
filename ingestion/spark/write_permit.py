"""The permit to write a table: the copy's lease in the database first, then the table's fence. It is held around tag, judge and write only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ingestion.spark.contract.write_lease import hold_lease
from ingestion.spark.job import Job
from ingestion.spark.tables import fence


@contextmanager
def hold_write_permit(job: Job) -> Iterator[None]:
    """Within it nobody else writes the table. A job that holds it for its whole run takes it once.

    The lease is waited for until the job's deadline or for `lease_wait_s`, the fence for `lock_wait_s`. Raises TableFenced, DeadlinePassed,
    LeaseTaken, LeaseUnanswered.
    """
    if job.may_write:
        yield
        return
    with ExitStack() as held:
        with job.phase("fence"):
            wait_s = job.spec.lease_wait_s
            held.enter_context(hold_lease(job.lease, check_deadline=job.check_deadline, wait_s=wait_s))
            wait_s, beside = job.spec.lock_wait_s, job.table.uris_beside
            held.enter_context(fence.hold_fence(job.spark, job.table.uri, wait_s=wait_s, beside=beside))
        job.may_write = True
        try:
            yield
        finally:
            job.may_write = False
