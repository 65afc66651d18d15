"""Random tables with random defects: every one that was planted is told, and nothing else is; the gate denies what is wrong.

Twenty seeds. `LAKEHUB_PLANTED_SEEDS=200` tries as many, `LAKEHUB_PLANTED_FIRST=137` begins with that one.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.contracts.planted.run_scenario import run_scenario
from tests.contracts.planted.scenario_generator import write

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

SEEDS = int(os.environ.get("LAKEHUB_PLANTED_SEEDS", "20"))
FIRST = int(os.environ.get("LAKEHUB_PLANTED_FIRST", "0"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_all_that_was_planted_is_told_and_nothing_else(seed: int, tmp_path: Path) -> None:
    problems = run_scenario(write(seed), tmp_path)
    assert not problems, "\n".join([f"Seed {seed}:", *problems])
