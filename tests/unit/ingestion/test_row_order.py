"""Which first loads gather the rows of each partition instead of sorting all rows."""

from __future__ import annotations

import pytest

from ingestion.spark.tables.row_order import can_be_gathered

MIB = 2**20


@pytest.mark.parametrize(
    ("rows_by_partition", "row_bytes", "cores", "expected"),
    [
        ({f"{day}": 10 for day in range(182)}, 400 * MIB, 2, True),
        ({f"{day}": 10 for day in range(16)}, MIB, 2, True),
        ({f"{day}": 10 for day in range(15)}, MIB, 2, False),
        ({f"{day}": 10 for day in range(182)}, 400 * MIB, 64, False),
        ({f"{day}": 10 for day in range(100)}, 100 * 120 * MIB, 2, True),
        ({f"{day}": 10 for day in range(100)}, 100 * 121 * MIB, 2, False),
        ({f"{day}": 10 for day in range(99)} | {"today": 300}, MIB, 2, True),
        ({f"{day}": 10 for day in range(99)} | {"today": 340}, MIB, 2, False),
        ({}, 0, 2, False),
        (None, MIB, 2, False),
    ],
    ids=[
        "half a year",
        "just enough for each core",
        "one too few",
        "too few for so many cores",
        "a file for each partition",
        "more than a file for each partition",
        "one that is large",
        "one that would keep a core busy alone",
        "no partitions",
        "too many to name",
    ],
)
def test_each_core_has_several_partitions_of_one_file(
    rows_by_partition: dict[str, int] | None, row_bytes: int, cores: int, expected: bool
) -> None:
    gathered = can_be_gathered(rows_by_partition, row_bytes, max_file_bytes=120 * MIB, cores=cores)
    assert gathered is expected
