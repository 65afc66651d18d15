"""Jobs of a batch: run in this process, or in one that dies, and again until they are done."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from threading import Event, Thread
from typing import Any

from pyspark.sql import SparkSession

from ingestion.spark.contract.report import INDEX_AWAY, JobReport
from ingestion.spark.global_index.written_keys import WrittenKeys
from ingestion.spark.tables.timeline import CompletedFile
from lakehub.setup.machine import scaled
from tests.services.own_hbase import OwnHBase
from tests.soak.index.faults import Fault
from tests.soak.index.source import Source
from tests.spark.job_processes import start, wait_until

_DONE_WITHIN_S = 600
"""So long a job may take, until it is done or dies."""
_PROCESS_S = 8.0
"""So long a job in a process of its own takes at least."""
_KINDS = {"replace": "bootstrap"}


class NotAsItMustBe(AssertionError):
    """What the soak is there to find."""


@dataclass
class Stage:
    spark: SparkSession
    hbase: OwnHBase
    source: Source
    random: Random
    _followed: set[str] = field(default_factory=set)
    """Commits that the index has: they were there when the last job that asked it began."""

    def run(self, job: str, name: str, fault: Fault | None, **fields: Any) -> JobReport:
        """Until it is done, whatever happens to it."""
        if job == "replace":
            fields["replace"] = True
        kind, attempt = _KINDS.get(job, job), name
        if fault is not None and fault.part:
            with self._harmed(fault):
                return self._run_until_done(kind, name, **fields)
        if fault is not None:
            self._die(kind, name, fault, **fields)
            # The same run is started again, or the next one does what it has left.
            attempt = self.random.choice((name, f"{name}-next"))
        return self._run_until_done(kind, attempt, **fields)

    def _die(self, kind: str, name: str, fault: Fault, **fields: Any) -> None:
        if fault.step:
            self._die_at(kind, name, fault.step, **fields)
            return
        timeline, is_writing = self.source.timeline, self.random.random() < 0.5
        before = len(timeline.list_names(".hoodie/timeline"))
        process = start(self.source, kind, name, **fields)
        if is_writing:
            wait_until(
                "a commit that begins",
                lambda: process.poll() is not None or len(timeline.list_names(".hoodie/timeline")) > before,
            )
        Event().wait(self.random.uniform(0, 1 if is_writing else _PROCESS_S))
        process.kill()
        process.wait()

    def _die_at(self, kind: str, name: str, step: str, **fields: Any) -> None:
        process = start(self.source, kind, name, failpoint=step, **fields)
        try:
            code = process.wait(scaled(_DONE_WITHIN_S))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise NotAsItMustBe(f"{kind} {name} has not come to {step}: {self._log_of(name)}") from None
        if code != -signal.SIGKILL:
            raise NotAsItMustBe(f"{kind} {name} ended with {code}, and not at {step}: {self._log_of(name)}")

    def _log_of(self, name: str) -> str:
        return (self.source.folder / f"{name}.log").read_text()[-2000:]

    def _run_until_done(self, kind: str, name: str, **fields: Any) -> JobReport:
        """A job that HBase does not answer is run again."""
        deadline = time.monotonic() + scaled(_DONE_WITHIN_S)
        while True:
            before = self._commits()
            report = self.source.run(self.spark, kind, name, **fields)
            self._log(name, report)
            if report.error is None:
                deleted = fields["delete"].keys if "delete" in fields else ()
                self._require_few_requests(report, len(deleted), before)
                return report
            if report.status != INDEX_AWAY or time.monotonic() > deadline:
                raise NotAsItMustBe(f"{kind} {name}: {report.error}")

    def _require_few_requests(self, report: JobReport, named: int, commits: Sequence[CompletedFile]) -> None:
        """Of driver and tasks: no more than the batch has keys, and than was to be followed of the `commits` that were there when the job began.
        `named`: keys that it was told of; it reads those that are still there."""
        use = report.index_use
        if use is None:
            return
        new = [commit for commit in commits if commit.instant not in self._followed]
        self._followed = {commit.instant for commit in commits}
        written = [WrittenKeys.of(self.source.timeline, commit, self._followed) for commit in new]
        gone = sum(write.deletes for each in written for write in each.writes)
        gone += sum(len(keys) for each in written for _, keys in each.keys_replaced())
        added = sum(write.inserts for each in written for write in each.writes)
        batch = max(report.counts.read, named)
        if use.reads > batch + gone or use.writes > added + gone:
            raise NotAsItMustBe(
                f"{report.run_id} has asked for {use.reads:,} keys and written {use.writes:,} entries: its batch has {batch:,} rows, and the {len(new)} "
                f"commits to be followed {added:,} new keys, and {gone:,} that are gone or were replaced"
            )

    def _commits(self) -> list[CompletedFile]:
        timeline = self.source.timeline
        return timeline.completed() if timeline.exists else []

    def _log(self, name: str, report: JobReport) -> None:
        with (self.source.folder / "jobs.log").open("a") as log:
            print(f"{datetime.now(UTC):%H:%M:%S}", name, report.status, report.error or "", report.phases, file=log)

    @contextmanager
    def _harmed(self, fault: Fault) -> Iterator[None]:
        """The part is killed, before or while the job runs, and is started again while it does."""
        pauses = (0.0 if fault.is_before else self.random.uniform(0, 3), self.random.uniform(0, 8))
        if fault.is_before:
            self._kill(fault)
        problems: list[BaseException] = []
        thread = Thread(target=self._kill_and_start, args=(fault, *pauses, problems))
        thread.start()
        try:
            yield
        finally:
            thread.join()
        if problems:
            raise problems[0]

    def _kill_and_start(self, fault: Fault, before_s: float, down_s: float, problems: list[BaseException]) -> None:
        try:
            if not fault.is_before:
                Event().wait(before_s)
                self._kill(fault)
            Event().wait(down_s)
            self.hbase.do("start-one", *fault.part.split())
        except Exception as problem:
            problems.append(problem)

    def _kill(self, fault: Fault) -> None:
        self.hbase.do("kill", *fault.part.split())
