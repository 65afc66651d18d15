"""`python -m tests.soak.replica --kills 20 --seed 7`: a replica whose runs are ended by `kill -9` at any moment; ends with 1 where it is not what its source was."""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ingestion.spark.session import close_session, open_session
from ingestion.spark.tables.hudi import META_COLUMNS, read_at
from ingestion.spark.tables.timeline import Timeline
from tests import brief_jvms
from tests.soak.index.jobs import NotAsItMustBe
from tests.soak.pipelines.flights import Changes, flights_lake, real_rows
from tests.soak.replica.run import replicate
from tests.spark.pipeline_lake import PipelineLake, Row

_TABLE = "planes"
_DAYS = ("2013-01-01",)
_LONGEST_S = 2.5
"""Before a run is killed. To begin takes it one."""
_MIB_PER_S = (0.02, 0.1, 1.0)
"""Slow runs are killed while they copy data, quick ones while they publish commits or clean up."""
_MOST_ROUNDS = 10
"""For each kill: a run may have ended before it was to be killed."""
_Content = tuple[Row, ...]


@dataclass
class Replica:
    """Of one table of the lake. `states`: what the source has held after each of its commits."""

    lake: PipelineLake
    changes: Changes
    random: Random
    states: set[_Content] = field(default_factory=set)
    kills: int = 0

    @property
    def source(self) -> str:
        return self.lake.uri(_TABLE)

    @property
    def target(self) -> str:
        return f"{self.lake.folder.as_uri()}/dc2/{_TABLE}"

    def play_round(self) -> str:
        """The source changes, a run is killed, and whoever reads then sees a state that the source has had. In words."""
        for _ in range(self.random.randint(1, 3)):
            self.changes.change_planes()
            self.states.add(self._content(self.source))
        rate = self.random.choice(_MIB_PER_S)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.soak.replica.run", self.source, self.target, str(rate)]
        )
        waited = self.random.uniform(0.5, _LONGEST_S)
        Event().wait(waited)
        is_killed = process.poll() is None
        process.kill()
        process.wait()
        self.kills += is_killed
        if Timeline(self.target).exists and self._content(self.target) not in self.states:
            raise NotAsItMustBe(f"After kill {self.kills} the replica is what its source never was")
        return f"killed after {waited:.1f} s" if is_killed else "ended by itself"

    def end(self) -> str:
        done = replicate(self.source, self.target, 0)
        if self._content(self.target) != self._content(self.source):
            raise NotAsItMustBe("In the end the replica is not what its source is")
        files = [{path.name for path in Path(uri.removeprefix("file://")).rglob("*.parquet") if ".hoodie" not in path.parts} for uri in (self.source, self.target)]  # fmt: skip
        if files[0] != files[1]:
            raise NotAsItMustBe(f"In the end it has other files: {files[0] ^ files[1]}")
        return f"{done.commits} commits, {done.files} files were left to the last run"

    def _content(self, uri: str) -> _Content:
        rows = read_at(self.lake.spark, uri).drop(*META_COLUMNS)
        if not rows.columns:
            return ()
        sums = rows.agg(F.count("*"), F.sum(F.xxhash64(*sorted(rows.columns)).cast("decimal(38,0)")))
        return tuple(tuple(row) for row in sums.collect())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.replica", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    folder, began = Path(tempfile.mkdtemp(prefix="lakehub-replica-")), time.monotonic()
    print(f"Seed {seed}, {options.kills} kills", flush=True)
    brief_jvms.configure(os.environ)
    spark = open_session("soak")
    try:
        _play(spark, folder, Random(seed), options.kills)
    except NotAsItMustBe as failure:
        print(f"FAILED  {failure}\nThe lake is kept: {folder}", flush=True)
        return 1
    finally:
        close_session(spark)
    print(f"\nSeed {seed}: {options.kills} kills, 0 failed, {time.monotonic() - began:.0f} s", flush=True)
    shutil.rmtree(folder)
    return 0


def _play(spark: SparkSession, folder: Path, random: Random, kills: int) -> None:
    rows = real_rows(_DAYS)
    lake = flights_lake(spark, folder, rows)
    replica = Replica(lake, Changes.of(lake, rows, random, _DAYS), random)
    replica.states |= {(), replica._content(replica.source)}
    for number in range(1, kills * _MOST_ROUNDS + 1):
        print(f"{number:4}  ok      {replica.play_round()}", flush=True)
        if replica.kills == kills:
            break
    else:
        raise NotAsItMustBe(f"Of {number} runs {replica.kills} were killed, the others were too quick")
    print(f"      ok      {replica.end()}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
