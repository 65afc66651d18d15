"""A look at a captured table is told no schemas and no renames: it asks whether there is something to read, or a version to follow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ingestion.domain.log_moves import LOAD, LOG, SCHEMA_VERSION
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.sources import SourceConfig, SourceError, has_changes
from ingestion.sources.mysql.source import MysqlSource
from tests.unit.ingestion.heatpipe.messages import subject_schema

POSITION = {LOG: {}, LOAD: 1, "renamed": "05", "filled": "05", SCHEMA_VERSION: 3}
"""Of a table whose columns were renamed."""


def source(topic: EventTopic) -> MysqlSource:
    config = SourceConfig("mysql://a:b@127.0.0.1:1/db", "trips", options=topic.as_options(), key_columns=("id",))
    return MysqlSource(config)


def test_a_look_goes_on_after_a_rename_and_a_job_that_was_not_told_of_it_does_not(tmp_path: Path) -> None:
    look = EventTopic("segments", tmp_path.as_uri(), "trips")
    assert not has_changes(source(look), POSITION)
    with pytest.raises(SourceError, match="were renamed after this job was told"):
        source(replace(look, schemas=(subject_schema(),))).changes(POSITION)


@pytest.mark.parametrize(("accepted", "is_due"), [(0, False), (2, False), (3, False), (4, True)])
def test_a_version_that_the_table_does_not_follow_is_something_to_do(
    tmp_path: Path, accepted: int, *, is_due: bool
) -> None:
    look = EventTopic("segments", tmp_path.as_uri(), "trips", accepted=accepted)
    assert has_changes(source(look), POSITION) is is_due
