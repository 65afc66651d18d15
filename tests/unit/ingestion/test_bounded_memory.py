"""What is small only as long as it is compressed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestion.domain.schema import Schema
from ingestion.sources import Chunk
from ingestion.spark.file_groups import BaseFile, FileGroup, stored_rows
from ingestion.spark.file_groups.stored_rows import read_stored_rows
from ingestion.spark.loading import staging
from ingestion.spark.loading.fitting import FitRules, fit_rows
from ingestion.spark.rejected import error_table


def test_errors_that_are_small_only_when_compressed_are_sparks(tmp_path: Path) -> None:
    rows = [
        {"error_key": f"{n:064x}-0", "source": "s", "column": "c", "reason": "r", "raw": "x" * 200_000}
        for n in range(200)
    ]
    staging.write_staged_table(tmp_path.as_uri(), staging.error_rows_table(rows))
    size = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert size < 100_000
    assert error_table._read_few(tmp_path.as_uri()) is None


def test_few_errors_are_read_as_they_are(tmp_path: Path) -> None:
    rows = [{"error_key": f"{n:064x}-0", "source": "s", "column": None, "reason": "r", "raw": "x"} for n in range(200)]
    staging.write_staged_table(tmp_path.as_uri(), staged := staging.error_rows_table(rows))
    read = error_table._read_few(tmp_path.as_uri())
    assert read is not None
    assert read.to_pylist() == staged.to_pylist()


def test_rows_of_a_batch_count_by_their_bytes_in_memory(tmp_path: Path) -> None:
    schema = Schema.of({"text": "string"})
    fitted = fit_rows(Chunk({"text": ["x" * 100_000] * 100}), FitRules(schema))
    staged = staging.StagedBatch("file:///staging", schema)
    staging.add_counts(staged, fitted, 100, None, None)
    assert staged.row_bytes >= 10_000_000


def stored_texts(folder: Path, rows: int, length: int) -> None:
    table = pa.table(
        {
            "_hoodie_record_key": [f"{number:06}" for number in range(rows)],
            "_hoodie_partition_path": [""] * rows,
            "_hoodie_commit_time": ["1"] * rows,
            "doc": ["x" * length] * rows,
            "n": range(rows),
        }
    )
    pq.write_table(table, folder / "f_0_1.parquet", compression="gzip")


def test_one_key_does_not_write_out_the_texts_of_all_others(tmp_path: Path) -> None:
    stored_texts(tmp_path, 300, 100_000)
    file = BaseFile(FileGroup("", "f"), "f_0_1.parquet", 5000)
    columns = pa.schema([("doc", pa.string()), ("n", pa.int64()), ("later", pa.string())])
    read = read_stored_rows(tmp_path.as_uri(), [file], ["000007"], columns)
    assert read.to_pylist() == [
        {
            "_hoodie_record_key": "000007",
            "_hoodie_partition_path": "",
            "_hoodie_commit_time": "1",
            "_lakehub_file_id": "f",
            "doc": "x" * 100_000,
            "n": 7,
            "later": None,
        }
    ]


def test_stored_rows_that_are_too_large_are_sparks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored_texts(tmp_path, 300, 100_000)
    monkeypatch.setattr(stored_rows, "MAX_TEXT_BYTES", 1_000_000)
    file = BaseFile(FileGroup("", "f"), "f_0_1.parquet", 5000)
    keys = [f"{number:06}" for number in range(20)]
    columns = pa.schema([("doc", pa.string())])
    with pytest.raises(pa.ArrowInvalid, match="take 2,000,0"):
        read_stored_rows(tmp_path.as_uri(), [file], keys, columns)
    monkeypatch.setattr(stored_rows, "MAX_TEXT_BYTES", 3_000_000)
    assert read_stored_rows(tmp_path.as_uri(), [file], keys, columns).num_rows == 20
    with pytest.raises(pa.ArrowInvalid, match="take 4,000,"):  # of all files together
        read_stored_rows(tmp_path.as_uri(), [file] * 9, keys, columns)
