"""The soak of pipelines deals its faults so that a few rounds play each family of them."""

from __future__ import annotations

from itertools import chain, islice
from random import Random

import pytest

from lakehub.kernel.failpoint import FAILPOINTS
from tests.soak.pipelines.faults import FAMILIES, Fault, deal

ALL = [*chain(*FAMILIES.values())]


def dealt(seed: int, rounds: int) -> list[Fault]:
    return [*islice(deal(Random(seed)), rounds)]


def test_the_first_rounds_play_each_family_once() -> None:
    for seed in range(50):
        first = dealt(seed, len(FAMILIES))
        assert {name for name, faults in FAMILIES.items() if {*faults} & {*first}} == {*FAMILIES}


def test_all_faults_are_played_before_any_comes_again_and_the_seed_repeats_them() -> None:
    assert sorted(map(str, dealt(7, len(ALL)))) == sorted(map(str, ALL))
    assert dealt(7, 3 * len(ALL)) == dealt(7, 3 * len(ALL)) != dealt(8, 3 * len(ALL))


def test_who_dies_dies_at_a_failpoint_that_there_is() -> None:
    assert {fault.step for fault in ALL} - {""} <= {*FAILPOINTS}


def test_a_pattern_chooses_faults_and_one_that_matches_none_is_refused() -> None:
    assert {str(fault) for fault in islice(deal(Random(7), "beside"), 4)} == {
        "carrier-earnings beside a backfill process",
        "flights-wide beside a backfill process",
        "maker-flights beside a backfill process",
    }
    with pytest.raises(SystemExit, match="No fault matches 'besides'"):
        next(deal(Random(7), "besides"))
