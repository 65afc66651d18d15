"""Which file groups rolled-back commits had written, by the records that the table format leaves of rollbacks and restores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fastavro
import pytest

from ingestion.spark.file_groups import FileGroup
from ingestion.spark.global_index.taken_back import TakenBack, taken_back
from ingestion.spark.tables.timeline import Timeline

FIRST, SECOND, ROLLBACK, DONE = "20261116050100000", "20261116050200000", "20261116060000000", "20261116060001000"
FILES = {"type": "array", "items": "string"}
_ROLLBACK: dict[str, Any] = {
    "type": "record",
    "name": "HoodieRollbackMetadata",
    "fields": [
        {
            "name": "instantsRollback",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "HoodieInstantInfo",
                    "fields": [{"name": "commitTime", "type": "string"}, {"name": "action", "type": "string"}],
                },
            },
        },
        {
            "name": "partitionMetadata",
            "type": {
                "type": "map",
                "values": {
                    "type": "record",
                    "name": "HoodieRollbackPartitionMetadata",
                    "fields": [
                        {"name": "successDeleteFiles", "type": FILES},
                        {"name": "failedDeleteFiles", "type": FILES},
                    ],
                },
            },
        },
    ],
}
_RESTORE = {
    "type": "record",
    "name": "HoodieRestoreMetadata",
    "fields": [
        {"name": "hoodieRestoreMetadata", "type": {"type": "map", "values": {"type": "array", "items": _ROLLBACK}}}
    ],
}


def rollback(commit: str, *, action: str = "commit", deleted: str = "a", failed: str = "") -> dict[str, Any]:
    files = {"successDeleteFiles": [f"/lake/day=1/{deleted}-0_0-1-2_{commit}.parquet"], "failedDeleteFiles": []}
    if failed:
        files["failedDeleteFiles"] = [f"{failed}-0_0-1-2_{commit}.parquet"]
    return {
        "instantsRollback": [{"commitTime": commit, "action": action}],
        "partitionMetadata": {"day=1": files},
    }


@pytest.fixture
def timeline(tmp_path: Path) -> Timeline:
    (tmp_path / ".hoodie/timeline").mkdir(parents=True)
    for name in (f"{FIRST}_{SECOND}.commit", f"{ROLLBACK}.rollback.inflight", f"{ROLLBACK}.rollback.requested"):
        (tmp_path / ".hoodie/timeline" / name).touch()
    return Timeline(tmp_path.as_uri())


def leave(timeline: Timeline, record: dict[str, Any], *, name: str = "rollback", at: str = DONE) -> None:
    path = Path(timeline.uri.removeprefix("file://")) / f".hoodie/timeline/{ROLLBACK}_{at}.{name}"
    schema = fastavro.parse_schema(_ROLLBACK if name == "rollback" else _RESTORE)
    with path.open("wb") as file:
        fastavro.writer(file, schema, [record])


def test_a_rollback_names_the_groups_of_its_commit_also_those_whose_file_it_could_not_delete(
    timeline: Timeline,
) -> None:
    leave(timeline, rollback(SECOND, deleted="a", failed="b"))
    assert taken_back(timeline, [SECOND]) == TakenBack({FileGroup("day=1", "a-0"), FileGroup("day=1", "b-0")}, DONE)


def test_a_restore_names_those_of_all_its_commits(timeline: Timeline) -> None:
    both = {FIRST: [rollback(FIRST, deleted="a")], SECOND: [rollback(SECOND, deleted="b")]}
    leave(timeline, {"hoodieRestoreMetadata": both}, name="restore")
    leave(timeline, rollback("20261101000000000", deleted="c"), at="20261116070000000")
    groups = {FileGroup("day=1", "a-0"), FileGroup("day=1", "b-0")}
    assert taken_back(timeline, [FIRST, SECOND]) == TakenBack(groups, DONE)


@pytest.mark.parametrize("record", [rollback(FIRST), rollback(SECOND, action="replacecommit")])
def test_what_is_said_of_other_commits_or_of_one_that_replaced_files_is_not_enough(
    timeline: Timeline, record: dict[str, Any]
) -> None:
    leave(timeline, record)
    assert taken_back(timeline, [SECOND]) is None
    assert taken_back(timeline, [FIRST, SECOND]) is None
