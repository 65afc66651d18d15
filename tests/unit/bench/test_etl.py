"""What bench.etl changes in a day, what it makes of its samples, and how it says where a way stops paying."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.modelling.day_change import MOST_OF_A_PARTITION, day_change
from bench.modelling.lake_copies import copy_files
from bench.modelling.meters import beyond_first
from bench.modelling.savings import break_even, saved


@pytest.mark.parametrize("touched", [0.01, 0.1, 0.5, 1.0])
def test_a_change_touches_its_share_of_the_partitions_each_once_and_the_newest_always(touched: float) -> None:
    change = day_change(days=100, rows=1_000_000, touched=touched)
    days = [change.newest, *change.late]
    assert len(days) == len({*days}) == 100 * touched
    assert {*days} <= {*range(100)}


@pytest.mark.parametrize("touched", [0.1, 0.5, 1.0])
def test_four_per_cent_of_the_rows_change(touched: float) -> None:
    assert day_change(days=100, rows=1_000_000, touched=touched).share == pytest.approx(0.04, abs=1e-4)


def test_where_few_partitions_are_touched_a_part_of_their_rows_stays() -> None:
    assert day_change(days=100, rows=1_000_000, touched=0.01).share == 0.01
    assert day_change(days=100, rows=1_000_000, touched=0.02).late_share == MOST_OF_A_PARTITION


def test_half_of_the_late_partitions_are_the_last_ones_and_half_are_anywhere() -> None:
    change = day_change(days=100, rows=1_000_000, touched=0.1)
    assert change.late == (0, 23, 47, 70, 94, 95, 96, 97, 98)
    assert change.new_rows == 10_000 + 3_000


def test_memory_over_time_is_what_lies_above_the_first_sample() -> None:
    assert beyond_first([(0.0, 10.0), (2.0, 20.0), (3.0, 20.0), (4.0, 0.0)]) == 10 + 10 + 5
    assert beyond_first([(0.0, 10.0), (5.0, 4.0)]) == 0


@pytest.mark.parametrize(
    ("ratios", "share"),
    [
        ([(0.1, 0.2), (0.5, 0.8), (1.0, 1.2)], 0.75),
        ([(0.1, 0.2), (1.0, 0.9)], None),
        ([(0.01, 1.5), (1.0, 3.0)], 0.01),
        ([], None),
    ],
)
def test_a_way_pays_until_it_costs_what_the_other_does(ratios: list[tuple[float, float]], share: float | None) -> None:
    assert break_even(ratios) == (share if share is None else pytest.approx(share))


def test_what_takes_a_fifth_saves_four() -> None:
    assert (saved(10, 2), saved(10, 15)) == (pytest.approx(0.8), pytest.approx(-0.5))


def test_a_copy_of_a_lake_shares_its_files_but_not_what_is_said_of_the_table(tmp_path: Path) -> None:
    for path in ("trips/day=1/a.parquet", "trips/.hoodie/hoodie.properties"):
        (tmp_path / "lake" / path).parent.mkdir(parents=True)
        (tmp_path / "lake" / path).write_text("as it was")
    copy_files(tmp_path / "lake", tmp_path / "copy")
    (tmp_path / "copy/trips/.hoodie/hoodie.properties").write_text("changed")
    assert (tmp_path / "lake/trips/.hoodie/hoodie.properties").read_text() == "as it was"
    assert (tmp_path / "copy/trips/day=1/a.parquet").samefile(tmp_path / "lake/trips/day=1/a.parquet")
