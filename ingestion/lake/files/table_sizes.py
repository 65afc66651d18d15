"""How large a table of the lake is, without its rows being read."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ingestion.lake.files.small_files import newest_files
from ingestion.lake.lake_copies import table_uri
from ingestion.ports import rows_in_lake
from lakehub.catalog.models import DatasetCopy

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TableSize:
    rows: int
    bytes: int
    files: int


def size_of(copy: DatasetCopy) -> TableSize | None:
    """None: there is no table, it lies in no lake on files, or it cannot be listed now."""
    try:
        uri = table_uri(copy)
        if not uri.startswith("file:"):
            return None
        files = newest_files(uri)
        return TableSize(rows_in_lake(uri), sum(each.size for each in files), len(files))
    except Exception as failed:
        # A writer may have taken a file away in between; hudi-rs has an error of its own, which it does not export.
        logger.info("The size of %s is not known: %s", copy, failed)
        return None
