"""How large a table of the lake is, without its rows being read."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ingestion.lake.files.small_files import newest_files
from ingestion.lake.lake_copies import table_uri
from ingestion.ports import rows_in_lake
from lakehub.catalog.models import DatasetCopy
from lakehub.catalog.storages import local_path

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TableSize:
    rows: int
    bytes: int
    files: int


class SizeUnknown(Exception):
    """Its text says why, in a sentence for people."""


def size_of(copy: DatasetCopy) -> TableSize | None:
    """None: it is not known; the log says why."""
    try:
        return read_size(copy)
    except SizeUnknown as unknown:
        logger.info("%s", unknown)
        return None


def read_size(copy: DatasetCopy) -> TableSize:
    """Of the newest state. Raises SizeUnknown where there is no table, it lies in no lake on files, or it cannot be listed now."""
    try:
        uri = table_uri(copy)
        if not uri.startswith("file:"):
            raise SizeUnknown(f"The size of {copy} is not read: {uri} is not a folder of this machine.")
        if not local_path(uri).is_dir():
            raise SizeUnknown(f"There is no table at {uri} yet: its size is known after its first run.")
        rows, files = rows_in_lake(uri), newest_files(uri)
    except SizeUnknown:
        raise
    except Exception as failed:
        # A writer may have taken a file away in between; hudi-rs has an error of its own, which it does not export.
        raise SizeUnknown(f"The size of {copy} cannot be read: {failed}") from failed
    return TableSize(rows, sum(each.size for each in files), len(files))
