"""Seeded rounds in which a follower, a backfill and a delete write one table at once and are killed with -9: each row is as the model of
`tests.spark.shared_shop` says.

One round, with a fresh seed; `LAKEHUB_WRITER_ROUNDS=20` looks longer, and `LAKEHUB_FUZZ_SEED` repeats a seed's rounds. A round:

1. A table of one of 24 kinds is loaded. A backfill, a delete and an incremental start as processes, each of which may have to die at a failpoint.
   The source changes and the follower commits, in this process, until all three have read and ask whether they may write.
2. They may, sometimes two at once, with changes and the follower's commits before, between and beside them. What died is started again
   under the same run id, and has another turn. The order is one of three (`Order`). Before each turn of the backfill the follower commits
   changes of rows that it has read.
3. The source changes a last time, and the follower reads until there is nothing to do.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from functools import partial
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from ingestion.domain.checkpoint import unfinished_snapshot
from ingestion.spark.execute import execute
from tests.fuzz_seed import REPEAT, SEED
from tests.spark.job_processes import wait_until
from tests.spark.killed_jobs import READ_TOO_OFTEN, KilledJob
from tests.spark.shared_shop import Shop, Variant

ROUNDS = int(os.environ.get("LAKEHUB_WRITER_ROUNDS", "1"))
FAILPOINTS = ("ingestion.before_write", "ingestion.inside_commit", "ingestion.after_commit")
KINDS = ("backfill", "delete", "incremental")
VARIANTS = [
    Variant(*each) for each in itertools.product(("simple", "memory", "record_index", "hbase"), *[(False, True)] * 3)
]
MAX_LOOKS = 30
LOCK_WAIT_S = 120.0


class Follower:
    """An incremental after the other in this process. The source may change while one has read and not yet written."""

    def __init__(self, spark: SparkSession, shop: Shop, random: Random) -> None:
        self._spark, self._shop, self._random = spark, shop, random
        self._runs = itertools.count(1)

    def look(self) -> bool:
        """True where there may be more."""
        spec = self._shop.spec("incremental", f"follower {next(self._runs)}", lock_wait_s=LOCK_WAIT_S)
        report = execute(spec, spark=self._spark, secrets=self._shop.secrets, lease=self)
        assert report.error is None or READ_TOO_OFTEN in report.error, report.error
        return report.status != "nothing_to_do" or report.has_more

    def try_acquire(self) -> bool:
        if self._random.random() < 0.3:
            self._shop.change_some()
        return True

    def release(self) -> None:
        """Nothing was taken."""


class Order(Enum):
    """When the backfill, which has read at the start, is granted its permit.

    LAST: after the delete, so it has to read again. It loses nothing that it has read by dying earlier.
    FIRST: before the delete, so it writes what it has read, however often it is started again.
    ANY: at once with another job, too.
    """

    LAST = auto()
    FIRST = auto()
    ANY = auto()


class Round:
    def __init__(self, spark: SparkSession, shop: Shop, random: Random, order: Order) -> None:
        self._shop, self._random, self._order = shop, random, order
        self._follower = Follower(spark, shop, random)
        self.jobs = [self._job(kind) for kind in KINDS]

    def play(self) -> None:
        self._disturb(2)
        wait_until("all jobs to have read", partial(all_of, self.jobs, KilledJob.has_asked))
        turns = self._in_order(self._random.sample(self.jobs, len(self.jobs)))
        while turns:
            at_once = self._next_jobs(turns)
            wait_until("jobs to have read", partial(all_of, at_once, KilledJob.has_asked))
            self._disturb(2)
            if has_backfill(at_once):
                self._shop.change_once()
                self._follower.look()
            self._let_write(at_once)
            waiting = [job for job in turns if job not in at_once]
            for job in at_once:
                if not job.has_succeeded():
                    job.start()
                    waiting.insert(self._random.randint(0, len(waiting)), job)
            turns = self._in_order(waiting)
        self._shop.change_some()
        self._shop.revive_some()
        looks = itertools.takewhile(lambda number: self._follower.look(), range(MAX_LOOKS))
        assert len([*looks]) < MAX_LOOKS, "The follower found no end."

    def _in_order(self, jobs: list[KilledJob]) -> list[KilledJob]:
        if self._order is Order.ANY:
            return jobs
        return sorted(jobs, key=lambda job: (job.kind == "backfill") == (self._order is Order.LAST))

    def _next_jobs(self, turns: list[KilledJob]) -> list[KilledJob]:
        at_once = turns[: self._random.choice((1, 1, 2))]
        return at_once if self._order is Order.ANY or not has_backfill(at_once) else at_once[:1]

    def _let_write(self, jobs: list[KilledJob]) -> None:
        for job in jobs:
            if job.kind == "delete":
                self._shop.remove_gone()
            job.grant()
        self._disturb(1)
        wait_until(f"{[job.kind for job in jobs]} to end", partial(all_of, jobs, KilledJob.has_ended))

    def _disturb(self, times: int) -> None:
        for _ in range(times):
            self._shop.change_some()
            if self._random.random() < 0.7:
                self._follower.look()

    def _job(self, kind: str) -> KilledJob:
        places = FAILPOINTS[-1:] if self._order is Order.LAST and kind == "backfill" else FAILPOINTS
        deaths = tuple(self._random.sample(places, min(len(places), self._random.choice((0, 1, 1, 2)))))
        fields = {
            "backfill": {"partitions": self._shop.partitions},
            "delete": {"delete": self._shop.deleted_rows()},
            "incremental": {},
        }
        return KilledJob(self._shop, kind, deaths, lock_wait_s=LOCK_WAIT_S, **fields[kind])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_follower_a_backfill_and_a_delete_that_are_killed_leave_the_table_of_the_model(
    spark: SparkSession, tmp_path: Path, number: int
) -> None:
    variant = Random(SEED).sample(VARIANTS, len(VARIANTS))[number % len(VARIANTS)]
    random = Random(f"{SEED} {number}")
    shop = Shop(tmp_path, variant, random)
    assert shop.run(spark, "bootstrap", "bootstrap").error is None
    shop.add_late()
    order = Random(SEED).sample([*Order], len(Order))[number % len(Order)]
    with playing(Round(spark, shop, random, order)) as played:
        played.play()
    deaths = {job.kind: job.deaths for job in played.jobs}
    facts = f"{variant} {order} {deaths} {_history(shop)}, round {number} of {REPEAT}"
    print(facts)
    assert shop.lake_rows(spark) == shop.expected_rows(), facts
    _check_timeline(shop, facts)


def has_backfill(jobs: Iterable[KilledJob]) -> bool:
    return any(job.kind == "backfill" for job in jobs)


def all_of(jobs: Iterable[KilledJob], holds: Callable[[KilledJob], bool]) -> bool:
    return all(map(holds, jobs))


@contextmanager
def playing(played: Round) -> Iterator[Round]:
    """No process outlives its round."""
    try:
        yield played
    finally:
        for job in played.jobs:
            job.end()


def _check_timeline(shop: Shop, facts: str) -> None:
    """Each run commits once, and no checkpoint is behind the one before it."""
    commits = sorted(shop.timeline.commits(), key=lambda commit: commit.completed)
    assert set(Counter(commit.run["run_id"] for commit in commits).values()) == {1}, facts
    positions = [commit.checkpoint for commit in commits if commit.checkpoint]
    # A load in several commits has a watermark from its last one on.
    watermarks = [position["watermark"]["value"] for position in positions if unfinished_snapshot(position) is None]
    assert watermarks == sorted(watermarks), facts


def _history(shop: Shop) -> list[str]:
    return [commit.run["run_id"] for commit in sorted(shop.timeline.commits(), key=lambda commit: commit.completed)]
