"""The soak of the Global Index deals its faults so that all are played, and its largest batch is one for Spark's tasks."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from ingestion.spark.contract.report import IndexUse
from ingestion.spark.contract.spec import GlobalIndexSpec
from ingestion.spark.file_groups.batch_keys import MAX_NAMED_KEYS
from ingestion.spark.tables.timeline import CompletedFile
from lakehub.kernel.failpoint import FAILPOINTS
from tests.soak.index.faults import STEPS, all_faults, deck
from tests.soak.index.jobs import NotAsItMustBe, Stage
from tests.soak.index.source import FEW_FILES, MANY_KEYS, Source


def test_thirty_batches_have_all_faults_and_the_seed_repeats_them() -> None:
    dealt = [*deck(Random(7), "", 30)]
    assert set(dealt) == set(chain(*all_faults()))
    assert dealt == [*deck(Random(7), "", 30)]
    assert dealt != [*deck(Random(8), "", 30)]


def test_few_batches_have_few_of_those_that_cost_most() -> None:
    assert all(sum(bool(each.part) for each in deck(Random(seed), "", 5)) <= 2 for seed in range(20))


def test_a_pattern_chooses_and_one_that_matches_nothing_is_refused() -> None:
    assert {each.part for each in deck(Random(7), "thrift", 9)} == {"thrift"}
    with pytest.raises(SystemExit, match=r"No fault matches 'nothing'\. There are: kill -9 region-server 1 before"):
        deck(Random(7), "nothing", 9)


OF_OTHERS = {
    "ingestion.after_history",
    "ingestion.after_tombstones",
    "ingestion.after_emptying",
    "ingestion.after_rename",
    "ingestion.between_commits",
}
"""Steps that a table of the soak does not have, and the one of its bootstrap."""


def test_a_job_dies_at_every_failpoint_of_ingestion() -> None:
    steps = {*chain(*STEPS.values())} | OF_OTHERS
    assert steps == {name for name in FAILPOINTS if name.startswith(("ingestion.", "index."))}


def test_the_largest_batch_is_more_than_the_driver_asks_for(tmp_path: Path) -> None:
    """In the table that CI has; no key has two changes in one batch."""
    source = Source(tmp_path, GlobalIndexSpec("", "", "", "soak"), 100_000, Random(7))
    few, many = (source.draw(number, size, is_late=False) for number, size in enumerate((FEW_FILES, MANY_KEYS)))
    read = [sum(batch.counts[what] for what in ("changed", "moved", "new")) for batch in (few, many)]
    assert (read[0], sum(few.counts.values())) == (300, 330)
    assert read[1] >= MANY_KEYS.keys > MAX_NAMED_KEYS
    assert len(many.keys) == sum(many.counts.values())


def test_a_job_asks_for_its_batch_and_writes_what_it_follows_and_no_more() -> None:
    """A commit of ten new keys and two that are gone is followed once: for the job after that there is nothing to write."""
    stat = {"fileId": "f", "path": "day=1/f", "prevCommit": "1", "prevBaseFile": "e", "numInserts": 10, "numDeletes": 2}
    timeline = SimpleNamespace(uri="file:///soak", record=lambda _: {"partitionToWriteStats": {"day=1": [stat]}})
    stage: Any = Stage(*[SimpleNamespace(timeline=timeline)] * 3, Random(7))
    commits = [CompletedFile(timeline.uri, "20261101_20261102.commit", None)]

    def check(reads: int, writes: int) -> None:
        report = SimpleNamespace(run_id="r", counts=SimpleNamespace(read=100), index_use=IndexUse((), reads, writes))
        stage._require_few_requests(report, 0, commits)

    check(reads=102, writes=12)
    for too_many in ((101, 0), (100, 1)):
        with pytest.raises(
            NotAsItMustBe, match=r"r has asked for 10[01] keys and written [01] entries: its batch has 100"
        ):
            check(*too_many)
    stage._followed.clear()
    with pytest.raises(NotAsItMustBe, match="the 1 commits to be followed 10 new keys, and 2 that are gone"):
        check(reads=103, writes=12)
