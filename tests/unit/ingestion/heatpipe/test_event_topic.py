"""What a job is told of its topic travels as texts, and what it is not told of is no mystery to it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ingestion.changelog import Outgoing
from ingestion.domain.merging.column_renames import ColumnRename
from ingestion.heatpipe.broken_message import BrokenMessage, Defect
from ingestion.heatpipe.decoder import Decoder
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.heatpipe.reading import EventLimits, KnownSchemas
from ingestion.heatpipe.subject_schema import SubjectSchema
from tests.unit.ingestion.heatpipe.messages import NOW, change, encoder, subject_schema

KNOWN = KnownSchemas(9, NOW)
SECOND = subject_schema(version=2, schema_id=8)


def topic(folder: Path, *schemas: SubjectSchema, known: KnownSchemas = KNOWN) -> EventTopic:
    return EventTopic("segments", folder.as_uri(), "trips", schemas or (subject_schema(), SECOND), known, 3600.0)


def test_it_comes_back_from_its_options_as_it_was(tmp_path: Path) -> None:
    given = topic(tmp_path)
    options = json.loads(json.dumps(given.as_options()))
    assert all(isinstance(text, str) for text in options.values())
    assert EventTopic.from_options(options) == given


def test_a_version_of_before_a_rename_has_the_new_column_too(tmp_path: Path) -> None:
    """A row of it that is written again without a word about the column would be null there."""
    name = subject_schema().columns[1]
    given = replace(topic(tmp_path), renames=(ColumnRename(b"\x05", {"renamed": name, "other": "nope"}),))
    assert EventTopic.from_options(given.as_options()) == given
    assert given.columns_of[1] == (*subject_schema().columns, "renamed")


def test_a_schema_that_is_none_of_events_is_nobodys_columns(tmp_path: Path) -> None:
    """Whoever may register under the subject may have registered anything."""
    strange = [SubjectSchema("trips", 3, 9, avro) for avro in ("string", {"type": "record", "name": "R", "fields": []})]  # type: ignore[arg-type]
    given = topic(tmp_path, SECOND, *strange, subject_schema())
    assert [schema.version for schema in given.event_schemas] == [1, 2]
    assert given.columns_of.keys() == {1, 2}
    with pytest.raises(BrokenMessage) as broken:
        Decoder("trips", ("id",), int, given.schema_of).decode(b"\x00\x00\x00\x00\x09", (0,))
    assert broken.value.defect is Defect.NO_EVENT


@pytest.mark.parametrize(
    ("schema_id", "defect"), [(1, Defect.OTHER_SUBJECT), (0, Defect.UNKNOWN_SCHEMA), (10, Defect.UNKNOWN_SCHEMA)]
)
def test_schemas_of_others_are_told_from_those_that_do_not_exist(
    tmp_path: Path, schema_id: int, defect: Defect
) -> None:
    decoder = Decoder("trips", ("id",), int, topic(tmp_path).schema_of)
    with pytest.raises(BrokenMessage) as broken:
        decoder.decode(b"\x00" + schema_id.to_bytes(4) + b"?", (0,))
    assert broken.value.defect is defect


def test_events_and_what_could_not_be_encoded_are_read_side_by_side(tmp_path: Path) -> None:
    given = topic(tmp_path, known=KnownSchemas(9, datetime.now(UTC)))
    messages = [
        Outgoing("trips", b"k", encoder().encode(change({"id": 1, "city": "Ulm"}, key=1)).value),
        Outgoing("trips.errors", b"k", b"?"),
    ]
    start = given.end()
    given.writer("tap").commit(messages * 3, {})
    assert given.lag(start) == 6
    batch, after = given.read(start, Decoder("trips", ("id",), int, given.schema_of), EventLimits(events=2))
    assert (len(batch.decoded), len(batch.broken), batch.has_more, given.lag(after)) == (2, 2, True, 2)
    batch, after = given.read(after, Decoder("trips", ("id",), int, given.schema_of), EventLimits(events=2))
    assert (batch.read, batch.has_more, given.lag(after)) == (2, False, 0)
