"""How a fault is done to a pipeline, whose inputs have changed, while it follows them or beside that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from threading import Event

from ingestion.spark.contract.report import JobReport
from tests.soak.index.jobs import NotAsItMustBe
from tests.soak.pipelines.faults import Fault, Kind
from tests.soak.pipelines.flights import Changes
from tests.soak.pipelines.undone import UndoneChange, UndoneChanges
from tests.spark.job_processes import died_at, start, wait_until
from tests.spark.killed_jobs import KilledJob
from tests.spark.pipeline_lake import PipelineLake

_PROCESS_S = 15.0
"""So long a job in a process of its own takes at least."""
_DEATHS_OF_BACKFILL: Sequence[tuple[str, ...]] = ((), ("ingestion.inside_commit",), ("ingestion.after_commit",))
_AHEAD_S = 1.0
"""So much sooner, at most, the backfill may write than the run beside it: either may be the first at the table's fence."""


@dataclass(frozen=True)
class Harms:
    lake: PipelineLake
    changes: Changes
    random: Random

    def do(self, fault: Fault, run: str) -> None:
        """`run`: the id of a job that dies, or runs in a process of its own. Raises AssertionError."""
        harms: dict[Kind, Callable[[], None]] = {
            Kind.DIES: lambda: died_at(self.lake, "incremental", run, fault.step, pipeline=fault.pipeline),
            Kind.KILLED: lambda: self._kill(fault.pipeline, run),
            Kind.BACKFILL_OVERTAKEN: lambda: self._overtake_backfill(fault.pipeline),
            Kind.OVERTAKEN: lambda: self._overtake_run(fault.pipeline),
            Kind.BESIDE: lambda: self._run_beside_process(fault.pipeline, run),
            Kind.UNDONE: lambda: self._undo(fault.pipeline),
            Kind.UNDONE_WITHIN: lambda: self._undo_within(fault.pipeline),
            Kind.READ_EARLY: lambda: self._read_early(fault.pipeline),
        }
        harms[fault.kind]()

    def follow(self, pipelines: Iterable[str]) -> None:
        for name in pipelines:
            require_done(self.lake.run("incremental", name))

    def _follow_from_inputs(self, pipeline: str) -> None:
        """Where its inputs are pipelines, a change reaches it through them."""
        self._follow_inputs(pipeline)
        self.follow([pipeline])

    def _follow_inputs(self, pipeline: str) -> None:
        inputs = (each.dataset for each in self.lake.pipelines[pipeline].inputs)
        self.follow(each for each in inputs if each in self.lake.pipelines)

    def _kill(self, pipeline: str, run: str) -> None:
        process = start(self.lake, "incremental", run, pipeline=pipeline)
        Event().wait(self.random.uniform(0, _PROCESS_S))
        process.kill()
        process.wait()

    def _overtake_backfill(self, pipeline: str) -> None:
        """It reads commits that were followed, or such as were not."""
        if self.random.random() < 0.5:
            self.follow([pipeline])

        def change_and_follow() -> None:
            self.changes.make(2)
            self.changes.correct_flights()
            self._follow_from_inputs(pipeline)

        require_done(self.lake.run("backfill", pipeline, partitions=self._some_days(), before_write=change_and_follow))

    def _overtake_run(self, pipeline: str) -> None:
        def change_and_backfill() -> None:
            self.changes.make(2)
            self._follow_inputs(pipeline)
            require_done(self.lake.run("backfill", pipeline, partitions=self._some_days()))

        require_done(self.lake.run("incremental", pipeline, before_write=change_and_backfill))

    def _run_beside_process(self, pipeline: str, run: str) -> None:
        """The backfill has read before the inputs change once more. Then both write as soon as they can; the backfill may be killed within its commit, or after it."""
        deaths, days = self.random.choice(_DEATHS_OF_BACKFILL), tuple(self.changes.days)
        backfill = KilledJob(self.lake, "backfill", deaths, run=run, pipeline=pipeline, partitions=days)

        def let_both_write() -> None:
            backfill.grant()
            Event().wait(self.random.uniform(0, _AHEAD_S))

        try:
            wait_until("the backfill to have read", backfill.has_asked)
            self.changes.correct_flights()
            self._follow_inputs(pipeline)
            require_done(self.lake.run("incremental", pipeline, before_write=let_both_write))
            self.changes.make(1)
            self._follow_from_inputs(pipeline)
            wait_until("the backfill to end", backfill.has_ended)
            backfill.has_succeeded()
        finally:
            backfill.end()

    def _undo(self, pipeline: str) -> None:
        change = self._make_undone(pipeline)
        self._backfill(pipeline, change)
        change.undo()

    def _undo_within(self, pipeline: str) -> None:
        """The run has read the change. As the table is written meanwhile, it reads again, and by then the change is gone."""
        change = self._make_undone(pipeline)

        def backfill_and_undo() -> None:
            self._backfill(pipeline, change)
            change.undo()

        require_done(self.lake.run("incremental", pipeline, before_write=backfill_and_undo))

    def _read_early(self, pipeline: str) -> None:
        """The change comes after the run has noted how far it follows the inputs, and before it reads what they hold."""
        change = UndoneChanges(self.changes).flights_beside_change(pipeline)
        self.changes.played.append(change.name)
        _require_written(self.lake.run("incremental", pipeline, before_read=("flights", change.make)))
        change.undo()

    def _make_undone(self, pipeline: str) -> UndoneChange:
        change = UndoneChanges(self.changes).any_of(pipeline)
        self.changes.played.append(change.name)
        change.make()
        return change

    def _backfill(self, pipeline: str, change: UndoneChange) -> None:
        _require_written(self.lake.run("backfill", pipeline, partitions=change.days))

    def _some_days(self) -> tuple[str, ...]:
        days = self.changes.days
        return tuple(self.random.sample(days, self.random.randint(1, len(days))))


def require_done(report: JobReport) -> None:
    if report.error is not None:
        raise NotAsItMustBe(f"{report.run_id}: {report.error}")


def _require_written(report: JobReport) -> None:
    """A change that no row shows proves nothing once it is undone."""
    require_done(report)
    if not report.counts.applied:
        raise NotAsItMustBe(f"{report.run_id} has written no row: {report.status}")
