"""Which base files are written anew in the driver, and which are the work of Spark's executors."""

from __future__ import annotations

import pytest

from ingestion.spark.file_groups import BaseFile, FileGroup
from ingestion.spark.loading.small_batches import MAX_BYTES, MAX_FILE_BYTES, MAX_FILES, are_few


def files(count: int, size: int) -> list[BaseFile]:
    return [BaseFile(FileGroup("day=1", str(number)), f"day=1/{number}", size) for number in range(count)]


@pytest.mark.parametrize(
    ("given", "is_few"),
    [
        ([], True),
        (files(MAX_FILES, 1), True),
        (files(MAX_FILES + 1, 1), False),
        (files(1, MAX_FILE_BYTES), True),
        (files(1, MAX_FILE_BYTES + 1), False),
        (files(MAX_BYTES // MAX_FILE_BYTES, MAX_FILE_BYTES), True),
        (files(MAX_BYTES // MAX_FILE_BYTES, MAX_FILE_BYTES) + files(1, 1), False),
    ],
)
def test_how_many_files_and_how_large_ones_are_few(given: list[BaseFile], is_few: bool) -> None:
    assert are_few(given) is is_few
