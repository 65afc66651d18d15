"""One round: the inputs change, jobs bring that into the tables while they die or overtake each other, and each table is compared with a full recomputation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from threading import Event

from ingestion.spark.contract.report import JobReport
from ingestion.spark.tables.timeline import Timeline
from tests.soak.index.jobs import NotAsItMustBe
from tests.soak.pipelines.flights import PIPELINES, Changes
from tests.spark.job_processes import died_at, start
from tests.spark.pipeline_lake import NOTHING, PipelineLake

_STEPS = ("ingestion.before_write", "ingestion.inside_commit", "ingestion.after_commit")
_PARTITIONED = ("carrier-earnings", "flights-wide")
_MOST_IDLE_COMMITS = 100
_KEEPS_FEW = {
    "hoodie.clean.policy": "KEEP_LATEST_COMMITS",
    "hoodie.clean.commits.retained": "10",
    "hoodie.keep.min.commits": "20",
    "hoodie.keep.max.commits": "25",
}
"""So that Hudi itself cleans and archives what was read, within minutes and not hours."""
_PROCESS_S = 15.0
"""So long a job in a process of its own takes at least."""


@dataclass(frozen=True)
class Fault:
    """`kind`: dies, killed, backfill overtaken, overtaken by a backfill. `step`: where it dies."""

    kind: str
    pipeline: str
    step: str = ""

    def __str__(self) -> str:
        return f"{self.pipeline} {self.kind}{f' at {self.step}' if self.step else ''}"


@dataclass(frozen=True)
class Played:
    number: int
    fault: str
    changes: str
    took_s: float
    problem: str = ""

    def __str__(self) -> str:
        verdict = "FAILED" if self.problem else "ok"
        line = f"{self.number:4}  {verdict:6}  {self.fault:60}  {self.changes}; {self.took_s:5.1f} s"
        return line + (f"\n        {self.problem}" if self.problem else "")


@dataclass
class Rounds:
    lake: PipelineLake
    changes: Changes
    random: Random
    number: int = 0
    deck: list[Fault] = field(default_factory=list)

    def load(self) -> None:
        for name in PIPELINES:
            _require_done(self.lake.run("bootstrap", name))
        self._compare()

    def play(self, rounds: int) -> Iterator[Played]:
        for self.number in range(1, rounds + 1):
            fault, began, problem = self._next_fault(), time.monotonic(), ""
            made = self.changes.make(self.random.randint(1, 4))
            if fault.kind == "dies":  # who has nothing to do dies nowhere
                made = f"{made}, {self.changes.correct_flights()}"
            try:
                self._bring(fault)
                self._compare()
            except AssertionError as failure:
                problem = str(failure)
            yield Played(self.number, str(fault), made, time.monotonic() - began, problem)

    def stay_idle(self) -> Played:
        """No pipeline runs while its input gets more commits than it keeps on its timeline; the next runs make all rows anew, and say so."""
        began, name, problem = time.monotonic(), "airlines", ""
        read = Timeline(self.lake.uri(name)).latest_completion()
        commits = 0
        self.lake.input_options = _KEEPS_FEW
        try:
            while Timeline(self.lake.uri(name)).completed()[0].completed <= read:
                if commits == _MOST_IDLE_COMMITS:
                    raise NotAsItMustBe(f"{commits} commits of {name} have archived none")
                self.changes.rename_an_airline()
                commits += 1
            for pipeline in PIPELINES:
                report = self.lake.run("incremental", pipeline)
                _require_done(report)
                reads = {each.dataset for each in self.lake.pipelines[pipeline].inputs}
                if name in reads and "are archived" not in report.output.get("made_anew", ""):
                    raise NotAsItMustBe(f"{pipeline} does not say that it made all rows anew: {report.output}")
            self._compare()
        except AssertionError as failure:
            problem = str(failure)
        self.lake.input_options = {}
        return Played(self.number + 1, "all idle", f"{commits} commits of {name}", time.monotonic() - began, problem)

    def _next_fault(self) -> Fault:
        if not self.deck:
            dies = [Fault("dies", name, step) for name in PIPELINES for step in _STEPS]
            others = [
                Fault(kind, name) for name in _PARTITIONED for kind in ("backfill overtaken", "overtaken by a backfill")
            ]
            self.deck = [*dies, *others, *others, *(Fault("killed", name) for name in PIPELINES)]
            self.random.shuffle(self.deck)
        return self.deck.pop()

    def _bring(self, fault: Fault) -> None:
        for name in PIPELINES:
            if name == fault.pipeline:
                self._harm(fault)
            _require_done(self.lake.run("incremental", name))
        if "overtaken" in fault.kind:  # the inputs have changed once more, also for those that ran before
            for name in PIPELINES:
                _require_done(self.lake.run("incremental", name))

    def _harm(self, fault: Fault) -> None:
        run = f"harmed-{self.number}"
        day = (self.random.choice(self.changes.days),)
        if fault.kind == "dies":
            died_at(self.lake, "incremental", run, fault.step, pipeline=fault.pipeline)
        elif fault.kind == "killed":
            process = start(self.lake, "incremental", run, pipeline=fault.pipeline)
            Event().wait(self.random.uniform(0, _PROCESS_S))
            process.kill()
            process.wait()
        elif fault.kind == "backfill overtaken":
            _require_done(
                self.lake.run(
                    "backfill",
                    fault.pipeline,
                    partitions=day,
                    before_write=lambda: self._change_and(fault, "incremental"),
                )
            )
        else:
            _require_done(
                self.lake.run(
                    "incremental",
                    fault.pipeline,
                    before_write=lambda: self._change_and(fault, "backfill", partitions=day),
                )
            )

    def _change_and(self, fault: Fault, kind: str, **fields: object) -> None:
        self.changes.make(2)
        _require_done(self.lake.run(kind, fault.pipeline, **fields))

    def _compare(self) -> None:
        for name in PIPELINES:
            differences = self.lake.differences(name)
            if differences != NOTHING:
                raise NotAsItMustBe(
                    f"{name}: only in the table {differences['stored']}, only in a full recomputation {differences['recomputed']}"
                )


def _require_done(report: JobReport) -> None:
    if report.error is not None:
        raise NotAsItMustBe(f"{report.run_id}: {report.error}")
