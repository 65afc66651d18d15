"""Which small files are put together."""

from __future__ import annotations

from ingestion.spark.file_groups import BaseFile, FileGroup
from ingestion.spark.file_groups.clustering.small_files import MAX_FILES, ClusterLimits, choose_small_files, is_worth_it

LIMITS = ClusterLimits(max_file_bytes=400, min_files=3, max_bytes=1000, quiet_since="20261116080000000")


def file(number: int, partition: str = "day=1", *, size: int = 50, instant: str = "20261116070000000") -> BaseFile:
    return BaseFile(FileGroup(partition, f"f{number}"), f"f{number}_0-1-2_{instant}.parquet", size)


def test_small_quiet_files_of_a_partition_with_enough_of_them_are_chosen() -> None:
    small = [file(number) for number in range(3)]
    large = file(3, size=100)
    fresh = file(4, instant="20261116080000001")
    too_few = [file(number, "day=2") for number in (5, 6)]
    assert choose_small_files([large, *small, fresh, *too_few], LIMITS) == small
    assert choose_small_files([large, *small[:2], fresh], LIMITS) == []


def test_the_partition_with_the_most_comes_first_as_far_as_the_bytes_go() -> None:
    files = [file(number, "day=1", size=90) for number in range(4)]
    more = [file(10 + number, "day=2", size=90) for number in range(9)]
    assert choose_small_files([*files, *more], LIMITS) == more
    assert choose_small_files(more * 2, LIMITS) == sorted(more * 2, key=lambda each: each.name)[:11]


def test_it_is_worth_it_where_half_of_the_files_go() -> None:
    files = [file(number) for number in range(4)]
    assert is_worth_it(files, 2)
    assert not is_worth_it(files, 3)


def test_a_run_takes_so_many_files_at_most() -> None:
    files = [file(number, f"day={number % 2}", size=1) for number in range(600)]
    assert len(choose_small_files(files, LIMITS)) == MAX_FILES
