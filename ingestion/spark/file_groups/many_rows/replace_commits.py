"""Commits by which file groups are replaced: how one begins, and how the groups are told, by Hudi's client."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from ingestion.spark.file_groups import BaseFile
from ingestion.spark.file_groups.java_client import java_list

REPLACE = "replacecommit"
"""The action of a commit by which file groups are replaced."""


def begin_replacing(java: Any, client: Any, instant: str, operation: str) -> Any:
    """Hudi's view of the table. `operation`: as Hudi calls it."""
    hudi_java = java.org.apache.hudi
    hudi_table = hudi_java.table.HoodieJavaTable.create(client.getConfig(), client.getEngineContext())
    states = java.java.lang.Class.forName(
        "org.apache.hudi.common.table.timeline.HoodieInstant$State", True, hudi_table.getClass().getClassLoader()
    )
    # With the commits that are there now: those that come after would be conflicts.
    kind = getattr(hudi_java.common.model.WriteOperationType, operation)
    client.preWrite(instant, kind, hudi_table.getMetaClient())
    requested = hudi_table.getMetaClient().createNewInstant(states.getEnumConstants()[0], REPLACE, instant)
    hudi_table.getActiveTimeline().transitionReplaceRequestedToInflight(requested, hudi_java.common.util.Option.empty())
    return hudi_table


def file_ids_by_partition(java: Any, files: Iterable[BaseFile]) -> Any:
    ids: dict[str, list[str]] = defaultdict(list)
    for file in files:
        ids[file.group.partition].append(file.group.file_id)
    by_partition = java.java.util.HashMap()
    for partition, those in ids.items():
        by_partition.put(partition, java_list(java, those))
    return by_partition
