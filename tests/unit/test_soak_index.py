"""The soak of the Global Index deals its faults so that all are played."""

from __future__ import annotations

from itertools import chain
from random import Random

import pytest

from lakehub.kernel.failpoint import FAILPOINTS
from tests.soak.index.faults import STEPS, all_faults, deck


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


def test_a_job_dies_at_every_failpoint_of_ingestion() -> None:
    steps = {*chain(*STEPS.values()), "ingestion.between_commits"}
    assert steps == {name for name in FAILPOINTS if name.startswith(("ingestion.", "index."))}
