"""Whether a table of the lake has small files that are worth putting together, as hudi-rs lists them: no JVM takes part."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from ingestion.spark.contract.spec import ClusterSpec
from ingestion.spark.file_groups import BaseFile, FileGroup
from ingestion.spark.file_groups.clustering.small_files import ClusterLimits, choose_small_files
from lakehub.catalog.models import DatasetCopy
from lakehub.catalog.storages import local_path

logger = logging.getLogger(__name__)
PLANNED = ClusterSpec(min_files=8, quiet_s=600.0, max_mib=256)
"""What the schedule asks for. A person's request takes two files, however new they are."""


def is_clustering_due(copy: DatasetCopy, *, max_file_mib: int, wall: datetime) -> bool:
    """`wall`: the time of files. False as well where the table cannot be listed now, or lies in no lake on files."""
    if not copy.uri.startswith("file:"):
        return False
    quiet_since = f"{wall - timedelta(seconds=PLANNED.quiet_s):%Y%m%d%H%M%S%f}"[:17]
    limits = ClusterLimits(max_file_mib * 2**20, PLANNED.min_files, PLANNED.max_mib * 2**20, quiet_since)
    try:
        return bool(choose_small_files(newest_files(copy.uri), limits))
    except Exception as failed:
        # A writer may have taken a file away in between; hudi-rs has an error of its own, which it does not export.
        logger.info("The files of %s cannot be listed now: %s", copy, failed)
        return False


def newest_files(uri: str) -> list[BaseFile]:
    from hudi import HudiTable  # here: every process has this module, and few list files

    folder = local_path(uri)
    files = []
    for each in HudiTable(uri).get_file_slices():
        partition, _, name = each.base_file_relative_path().rpartition("/")
        size = (folder / partition / name).stat().st_size
        files.append(BaseFile(FileGroup(partition, each.file_id), name, size))
    return files
