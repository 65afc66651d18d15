"""Rows that each reading rejects again, such as those of a source that is read as a whole: the error table has them already.

The table is not asked about each batch, which would cost by what it holds. Each of its commits has a sketch of the keys that its batch rejected, the least
of them: a batch whose sketch has one of them repeats rows of an earlier batch, and only then is compared with the table.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import SparkSession

from ingestion.spark.file_groups.lookups import newest_base_files
from ingestion.spark.file_groups.stored_rows import INSTANT, KEY, read_stored_rows
from ingestion.spark.tables.timeline import LakeCommit, open_storage

COMMITS_COMPARED = 64
"""The newest ones of the error table."""
_KEYS_IN_SKETCH, _KEY_DIGITS = 64, 16
_MAX_ROWS = 1_000_000
"""Whose keys are kept in memory, some 200 bytes each. More are appended as they are."""
_ROWS_AT_A_TIME = 10_000
_COMPARED = ("column", "reason")


def sketch_of(staged_uri: str) -> list[str]:
    """The beginnings of the least keys of the rows staged at a URI."""
    keys = (key for rows in _staged_rows(staged_uri, ["error_key"]) for key in rows["error_key"].to_pylist())
    return [key[:_KEY_DIGITS] for key in heapq.nsmallest(_KEYS_IN_SKETCH, keys)]


def repeats_rows(sketch: Sequence[str], commits: Iterable[LakeCommit]) -> bool:
    keys = set(sketch)
    return any(keys.intersection(commit.run.get("sketch", ())) for commit in commits)


def stage_unknown_rows(spark: SparkSession, uri: str, staged_uri: str, rows: int) -> tuple[str, int]:
    """Where those of the `rows` staged rows are that the error table at `uri` does not have as they are, and how many. A row that a replay
    has resolved is known: the source still has it, and it is applied."""
    if rows > _MAX_ROWS:
        return staged_uri, rows
    keys = [key for part in _staged_rows(staged_uri, ["error_key"]) for key in part["error_key"].to_pylist()]
    known = _known_rows(spark, uri, keys)
    new_uri, kept = f"{staged_uri}_new", 0
    filesystem, path = open_storage(new_uri)
    filesystem.create_dir(path)
    for number, part in enumerate(_staged_rows(staged_uri, None)):
        wanted = pa.array([row not in known for row in _compared(part, "error_key")], pa.bool_())
        left = pa.Table.from_batches([part]).filter(wanted)
        if left.num_rows:
            pq.write_table(left, f"{path}/{number:06}.parquet", filesystem=filesystem, compression="zstd")
        kept += left.num_rows
    return new_uri, kept


def _known_rows(spark: SparkSession, uri: str, keys: Sequence[str]) -> set[tuple[str, ...]]:
    """As what was appended last of each key says: key, column and reason."""
    columns = pa.schema([(name, pa.string()) for name in _COMPARED])
    stored = read_stored_rows(uri, newest_base_files(spark, uri, {""}), keys, columns)
    oldest_first = stored.sort_by(INSTANT)
    return {*{row[0]: row for row in _compared(oldest_first, KEY)}.values()}


def _compared(rows: pa.Table | pa.RecordBatch, key: str) -> Iterator[tuple[str, ...]]:
    return zip(*(rows[name].to_pylist() for name in (key, *_COMPARED)), strict=True)


def _staged_rows(staged_uri: str, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    filesystem, path = open_storage(staged_uri)
    for info in sorted(filesystem.get_file_info(fs.FileSelector(path)), key=lambda info: str(info.path)):
        with filesystem.open_input_file(info.path) as file:
            yield from pq.ParquetFile(file).iter_batches(_ROWS_AT_A_TIME, columns=columns, use_threads=False)
