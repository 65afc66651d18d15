"""Random tables with random defects: every one that was planted is told, and nothing else is; the gate denies what is wrong.

Those by which broken rules are noticed, and two more that are others each time. `LAKEHUB_PLANTED_SEEDS=200` tries as many,
`LAKEHUB_PLANTED_FIRST=137` begins with that one; `LAKEHUB_FUZZ_SEED` repeats the two.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.contracts.planted.run_scenario import run_scenario
from tests.contracts.planted.scenario_generator import write
from tests.contracts.planted.test_broken_rules import SEEDS as NOTICED_BY
from tests.fuzz_seed import REPEAT, SEED

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

SEEDS = int(os.environ.get("LAKEHUB_PLANTED_SEEDS", "0"))
FIRST = int(os.environ.get("LAKEHUB_PLANTED_FIRST", "0"))
EVERY_TIME = tuple(range(FIRST, FIRST + (SEEDS or 1))) if SEEDS or FIRST else tuple(sorted(set(NOTICED_BY.values())))
FRESH = 1 if SEEDS or FIRST else 2
MANY = 200


@pytest.mark.parametrize("seed", EVERY_TIME)
def test_all_that_was_planted_is_told_and_nothing_else(seed: int, tmp_path: Path) -> None:
    _require_all_told(seed, tmp_path)


@pytest.mark.parametrize("turn", range(FRESH))
def test_all_that_was_planted_is_told_by_other_seeds_each_time(turn: int, tmp_path: Path) -> None:
    """Of those that are tried when someone asks for many, or of those behind them."""
    others = sorted(set(range(MANY + len(EVERY_TIME))) - set(EVERY_TIME))
    _require_all_told(Random(SEED).sample(others, FRESH)[turn], tmp_path)


def _require_all_told(seed: int, folder: Path) -> None:
    problems = run_scenario(write(seed), folder)
    assert not problems, "\n".join([f"Seed {seed} ({REPEAT}):", *problems])
