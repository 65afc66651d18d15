"""The rows that are staged are counted by what their files say, without a Spark job."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestion.domain.schema import Schema
from ingestion.spark.loading.staging import StagedBatch, count_staged


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A name that is another in a URI."""
    return tmp_path / "staged, 50% full"


def staged(folder: Path, files: dict[str, list[int]]) -> StagedBatch:
    (folder / "rows").mkdir(parents=True)
    for name, ids in files.items():
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), folder / "rows" / name)
    return StagedBatch(folder.as_uri(), Schema.of({"id": "long"}))


def test_all_files_count_and_no_other(folder: Path) -> None:
    batch = staged(folder, {"part-0.zstd.parquet": [1, 2, 3], "part-1.zstd.parquet": [], "part-2.zstd.parquet": [3]})
    (folder / "rows" / "_SUCCESS").touch()
    (folder / "rows" / ".part-0.zstd.parquet.crc").write_bytes(b"crc")
    assert count_staged(batch) == 4


def test_where_nothing_was_written_there_are_none(folder: Path) -> None:
    assert count_staged(staged(folder, {})) == 0
