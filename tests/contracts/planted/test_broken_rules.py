"""What the random tables tell of a rule that is broken by a line: each is noticed, by a seed in which it makes a difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contracts.planted.broken_rules import BROKEN_RULES
from tests.contracts.planted.run_scenario import run_scenario
from tests.contracts.planted.scenario_generator import write

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

SEEDS = {
    "no rows are no value": 17,
    "volume is not tested": 17,
    "completeness has no upper side": 12,
    "completeness allows no loss": 12,
    "doubled rows are not counted": 2,
    "changed values are no difference": 15,
    "a larger partition is compared with the first of upstream's in it": 12,
    "the zone of the dataset is ignored": 17,
    "holes in the history are not tested": 17,
    "what changed is not tested again": 5,
    "what compares itself with a changed table is not tested again": 12,
    "the front is the end of the last partition, whatever is in it": 0,
    "all that follows a hole is stale": 2,
    "an event of the future keeps a table fresh": 7,
    "a message is held where some of what is wrong is stale": 8,
    "no message is held": 0,
    "what heals stays open": 5,
    "values that are no partition are left out in silence": 17,
    "rows of the future are left out in silence": 5,
    "one table may be two copies": 1,
    "what cannot be read passes": 7,
    "the gate lets the unknown through": 11,
    "the gate does not ask for freshness": 7,
    "the gate looks for partitions of a month at most": 14,
    "that there is nothing to compare with ends a failure": 14,
}
"""Each is one of those that find nothing wrong with the rules as they are: test_planted_seeds.py."""


def test_each_rule_that_is_broken_has_a_seed() -> None:
    assert set(SEEDS) == set(BROKEN_RULES)


@pytest.mark.parametrize("name", SEEDS)
def test_a_broken_rule_is_noticed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    BROKEN_RULES[name](monkeypatch)
    assert run_scenario(write(SEEDS[name]), tmp_path)
