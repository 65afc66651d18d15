"""What the lake itself holds, read without Lakehub's tests: the story checks its own claims."""

from __future__ import annotations

import duckdb

from lakehub.catalog.models import DatasetCopy
from quality.engines.storage.hudi_snapshot import read_snapshot


def rows_and_keys(copy: DatasetCopy, partition: str | None = None) -> tuple[int, int]:
    """How many rows a copy has, or one of its partitions, and how many different record keys."""
    column = copy.dataset.lake_partition_column if partition else ""
    files = [file_slice.path for file_slice in read_snapshot(copy.uri, column=column, value=partition).slices]
    if not files:
        return 0, 0
    query = "SELECT count(*), count(DISTINCT _hoodie_record_key) FROM read_parquet($files, union_by_name = true)"
    with duckdb.connect() as connection:
        ((rows, keys),) = connection.execute(query, {"files": files}).fetchall()
    return int(rows), int(keys)
