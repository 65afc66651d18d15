"""One round: the inputs change, jobs bring that into the tables while they die or overtake each other, and each table is compared with a full recomputation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from random import Random

from ingestion.spark.tables.timeline import Timeline
from tests.soak.index.jobs import NotAsItMustBe
from tests.soak.pipelines.faults import PIPELINES, Fault, deal
from tests.soak.pipelines.flights import Changes
from tests.soak.pipelines.harms import Harms, require_done
from tests.spark.pipeline_lake import NOTHING, PipelineLake

_MOST_IDLE_COMMITS = 30
_KEEPS_FEW = {
    "hoodie.clean.policy": "KEEP_LATEST_COMMITS",
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.commits.archival.batch": "1",
}
"""So that Hudi itself cleans and archives what was read, within seconds and not hours."""


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
    faults: str = ""
    """A pattern of their names."""
    harms: Harms = field(init=False)

    def __post_init__(self) -> None:
        self.harms = Harms(self.lake, self.changes, self.random)

    def load(self) -> None:
        for name in PIPELINES:
            require_done(self.lake.run("bootstrap", name))
        self._compare()

    def play(self, rounds: int) -> Iterator[Played]:
        for fault in islice(deal(self.random, self.faults), rounds):
            self.number += 1
            began, problem = time.monotonic(), ""
            self.changes.played.clear()
            try:
                self._change(fault)
                self._bring(fault)
                self._compare()
            except AssertionError as failure:
                problem = str(failure)
            changes = ", ".join(self.changes.played)
            yield Played(self.number, str(fault), changes, time.monotonic() - began, problem)

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
                require_done(report)
                reads = {each.dataset for each in self.lake.pipelines[pipeline].inputs}
                if name in reads and "are archived" not in report.output.get("made_anew", ""):
                    raise NotAsItMustBe(f"{pipeline} does not say that it made all rows anew: {report.output}")
            self._compare()
        except AssertionError as failure:
            problem = str(failure)
        self.lake.input_options = {}
        return Played(self.number + 1, "all idle", f"{commits} commits of {name}", time.monotonic() - began, problem)

    def _change(self, fault: Fault) -> None:
        if fault.is_of_undone_change:
            return  # what else changes might reach the same rows
        self.changes.make(self.random.randint(1, 4))
        if fault.needs_changes:
            self.changes.correct_flights()

    def _bring(self, fault: Fault) -> None:
        place = PIPELINES.index(fault.pipeline)
        self.harms.follow(PIPELINES[:place])
        self.harms.do(fault, f"harmed-{self.number}")
        self.harms.follow(PIPELINES if fault.changes_inputs else PIPELINES[place:])

    def _compare(self) -> None:
        for name in PIPELINES:
            differences = self.lake.differences(name)
            if differences != NOTHING:
                raise NotAsItMustBe(
                    f"{name}: only in the table {differences['stored']}, only in a full recomputation {differences['recomputed']}"
                )
