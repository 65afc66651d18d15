"""What the job at work asks of its Global Index, and where its table lies. A process runs one job at a time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from typing import NamedTuple, TypeVar

from pyspark import Accumulator
from pyspark.sql import SparkSession

from ingestion.domain.index_cluster.allowed_qps import even_servers
from ingestion.index.client import IndexClient, IndexTableMissing, IndexUnavailable
from ingestion.spark.contract.guidance import Guidance, NoGuidance
from ingestion.spark.contract.report import IndexUse
from ingestion.spark.contract.spec import GlobalIndexSpec, TableSpec
from ingestion.spark.global_index.hbase_client.jvm import RefusedByHBase

T = TypeVar("T")
logger = logging.getLogger(__name__)
SERVERS_KNOWN_FOR_S = 60.0
"""A table that is followed has a job every few seconds."""
_COUNTED: dict[str, float] = {}
"""By the table's URI, in this process: when its servers were counted last, by the monotonic clock."""


class TaskUse(NamedTuple):
    """What the tasks of Spark ask, added up in the driver."""

    reads: Accumulator[int]
    writes: Accumulator[int]

    def add(self, client: IndexClient) -> None:
        """At the end of a task: what its client has asked."""
        self.reads.add(client.reads)
        self.writes.add(client.writes)


class JobUse:
    """Its clients are counted from the moment at which it is given them."""

    def __init__(
        self,
        guidance: Guidance,
        check_deadline: Callable[[], None] = lambda: None,
        phase: Callable[[str], AbstractContextManager[None]] = lambda name: nullcontext(),
    ) -> None:
        self._guidance, self._check_deadline = guidance, check_deadline
        self.phase = phase
        self._clients: dict[int, tuple[IndexClient, int, int, float]] = {}
        self._tasks: list[TaskUse] = []
        self._held = ExitStack()
        self._seconds_of_tasks = 0.0
        self.entries: int | None = None
        """Counted while the index was made."""

    def rate_before_asking(self, spec: GlobalIndexSpec) -> float | None:
        """Raises DeadlinePassed where the job has no time left to ask."""
        self._check_deadline()
        return self.requests_per_s(spec)

    def requests_per_s(self, spec: GlobalIndexSpec) -> float | None:
        """Now, from any thread. None: any."""
        rate = self._guidance.index_requests_per_s()
        return spec.requests_per_s if rate is None else rate

    def watch(self, client: IndexClient) -> None:
        self._clients.setdefault(id(client), (client, client.reads, client.writes, client.seconds))

    def use_of_tasks(self, spark: SparkSession) -> TaskUse:
        """For tasks that this job is to run."""
        context = spark.sparkContext
        self._tasks.append(TaskUse(context.accumulator(0), context.accumulator(0)))
        return self._tasks[-1]

    @contextmanager
    def timed_tasks(self) -> Iterator[None]:
        """For as long as the driver waits for tasks that ask."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._seconds_of_tasks += time.monotonic() - began

    def hold(self, block: AbstractContextManager[T]) -> T:
        """Until the job ends."""
        return self._held.enter_context(block)

    def close(self) -> None:
        self._held.close()

    def count_servers(self, table: TableSpec) -> int:
        """Now, from any thread, as JobProgress has them. 0: the job has asked nothing, or they were counted a moment ago."""
        return even_servers(_hosts_of(table)) if self._clients else 0

    def told(self, table: TableSpec, *, with_servers: bool) -> IndexUse | None:
        """None: it has not asked."""
        if not self._clients and self.entries is None:
            return None
        reads = sum(tasks.reads.value for tasks in self._tasks)
        writes = sum(tasks.writes.value for tasks in self._tasks)
        seconds = self._seconds_of_tasks
        for client, reads_before, writes_before, seconds_before in self._clients.values():
            reads += client.reads - reads_before
            writes += client.writes - writes_before
            seconds += client.seconds - seconds_before
        hosts = _hosts_of(table) if with_servers else ()
        servers = tuple(sorted({*hosts}))
        return IndexUse(servers, reads, writes, round(seconds, 3), self.entries, even_servers(hosts))


_at_work = JobUse(NoGuidance())


def at_work() -> JobUse:
    return _at_work


@contextmanager
def use_of_job(
    guidance: Guidance, check_deadline: Callable[[], None], phase: Callable[[str], AbstractContextManager[None]]
) -> Iterator[JobUse]:
    """Of the job that is the block."""
    global _at_work
    before, _at_work = _at_work, JobUse(guidance, check_deadline, phase)
    try:
        yield _at_work
    finally:
        ended, _at_work = _at_work, before
        ended.close()


def _hosts_of(table: TableSpec) -> tuple[str, ...]:
    """`host:port` of the region server of each region of the table; none where they were counted a moment ago, or HBase does not say at once."""
    # The client of HBase is loaded by tables that have such an index.
    from ingestion.spark.global_index.clients import open_client

    counted_at, now = _COUNTED.get(table.uri), time.monotonic()
    if table.global_index is None or (counted_at is not None and now < counted_at + SERVERS_KNOWN_FOR_S):
        return ()
    _COUNTED[table.uri] = now
    try:
        with closing(open_client(table.global_index, patience_s=0.0, timeout_s=5.0)) as client:
            hosts = tuple(f"{region.host}:{region.port}" for region in client.regions())
    except (IndexUnavailable, IndexTableMissing, RefusedByHBase) as problem:
        logger.info("The servers of the index of `%s` are not counted now: %s", table.name, problem)
        return ()
    return hosts
