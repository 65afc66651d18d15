"""The schema of a captured table as it changes: what comes is added, what goes stays as null, and what cannot be is told."""

from __future__ import annotations

import json

import pytest

from ingestion.capture.binlog.column_changes import ColumnChange
from ingestion.capture.tap.captured_table import NotCaptured
from ingestion.capture.tap.position import reference_key
from ingestion.captures import states
from ingestion.captures.records import capture_of
from ingestion.captures.topics import topic_to_read
from ingestion.domain.avro import compatibility
from ingestion.domain.schema import Schema
from ingestion.heatpipe.event_schema import event_schema
from ingestion.models import Capture, SchemaVersion
from ingestion.schemas import registry
from ingestion.schemas.captured_versions import CapturedVersions, subject_schema_of
from lakehub.kernel.errors import Refused
from tests import factories as given
from tests.factories import NOW

pytestmark = pytest.mark.django_db
SUBJECT = "shop.trips-value"
FIRST = {
    "id": "long",
    "fare": "decimal(8,2)",
    "at": "timestamp",
    "city": "string",
    "token": "binary",
    "on": "date",
    "f": "float",
}


@pytest.fixture
def versions() -> CapturedVersions:
    return CapturedVersions(given.team(), "tap", lambda: NOW)


def columns(versions: CapturedVersions, types: dict[str, str]) -> dict[str, str]:
    """Of the version that a table with these columns gets."""
    return versions.version_of(SUBJECT, Schema.of(types)).row_columns.types


def test_a_table_has_one_version_until_it_changes(versions: CapturedVersions) -> None:
    assert columns(versions, FIRST) == FIRST
    first = versions.version_of(SUBJECT, Schema.of(FIRST))
    again = CapturedVersions(versions.team, "tap", lambda: NOW).version_of(SUBJECT, Schema.of(FIRST))
    assert (again.schema_id, again.version) == (first.schema_id, 1)
    assert SchemaVersion.objects.count() == 1


def test_columns_come_widen_and_go(versions: CapturedVersions) -> None:
    columns(versions, {"id": "int", "a": "string", "b": "float"})
    assert columns(versions, {"id": "long", "a": "string", "c": "int"}) == {
        "id": "long",
        "a": "string",
        "b": "float",
        "c": "int",
    }
    assert columns(versions, {"id": "int", "c": "int"}) == {"id": "long", "a": "string", "b": "float", "c": "int"}, (
        "nothing narrows, nothing goes"
    )
    assert [version.version for version in SchemaVersion.objects.order_by("pk")] == [1, 2]


def test_a_type_that_becomes_another_is_told_and_nothing_is_registered(versions: CapturedVersions) -> None:
    columns(versions, {"id": "long", "n": "string"})
    with pytest.raises(NotCaptured, match="has changed `n` from string to int"):
        columns(versions, {"id": "long", "n": "int"})
    assert SchemaVersion.objects.count() == 1


def test_however_many_versions_a_wide_table_has_it_goes_on(
    versions: CapturedVersions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a transitive rule each version is compared with all before it, and what people register within limits."""
    types = {f"c{number}": "long" for number in range(40)}
    columns(versions, types)
    registry.set_rule(registry.find_subject(SUBJECT), "full_transitive", actor="ana", now=NOW)
    monkeypatch.setattr(compatibility, "MAX_PAIRS_OF_ALL", 1_000)
    for number in range(10):
        columns(versions, types | {f"more{number}": "string"})
    assert registry.find_version(SUBJECT).version == 11
    text = registry.find_version(SUBJECT).text.replace('"more9"', '"mine"')
    with pytest.raises(Refused, match=r"2,000,000 with all versions.* rule that is not transitive"):
        registry.register(SUBJECT, text, team=versions.team, actor="ana", now=NOW)
    monkeypatch.setattr(compatibility, "MAX_PAIRS", 100)
    with pytest.raises(NotCaptured, match="too many types"):
        columns(versions, types | {"last": "string"})


def test_a_rule_that_is_against_it_is_told(versions: CapturedVersions) -> None:
    columns(versions, {"id": "int"})
    registry.set_rule(registry.find_subject(SUBJECT), "FULL", actor="ana", now=NOW)
    with pytest.raises(
        NotCaptured,
        match=r"Readers of version 1 cannot read it: `row\.id` was written as long, and is read as null or int",
    ):
        columns(versions, {"id": "long"})


def test_a_subject_of_another_team_is_not_written_to(versions: CapturedVersions) -> None:
    columns(versions, {"id": "int"})
    other = CapturedVersions(given.team("pricing"), "tap", lambda: NOW)
    with pytest.raises(NotCaptured, match="belongs to team flight-ops"):
        other.version_of(SUBJECT, Schema.of({"id": "int", "more": "int"}))


def test_a_version_is_that_of_the_registry(versions: CapturedVersions) -> None:
    captured = versions.version_of(SUBJECT, Schema.of(FIRST))
    registered = subject_schema_of(registry.find_by_id(captured.schema_id))
    assert registered == captured
    assert registered.is_event


@pytest.mark.parametrize(
    "text",
    [
        '"string"',
        '["null", "long"]',
        '{"type": "record", "name": "x", "fields": []}',
        '{"type": "record", "name": "x", "fields": [{"name": "row", "type": "long"}]}',
        '{"type": "record", "name": "x", "fields": [{"name": "row", "type": ["null", "string"]}]}',
    ],
)
def test_a_subject_with_something_else_in_it_stops_its_table_and_no_other(
    versions: CapturedVersions, text: str
) -> None:
    registry.register(SUBJECT, text, team=versions.team, actor="ana", now=NOW, is_captured=True)
    with pytest.raises(NotCaptured, match=r"Version 1 of the subject 'shop\.trips-value' is not a schema of change"):
        columns(versions, FIRST)


def test_what_people_wrote_of_columns_stays_in_the_versions_of_the_tap(versions: CapturedVersions) -> None:
    connection = given.connection("shop", "mysql://reader@db/ops", plugin="mysql")
    subject = capture_of(given.feed(given.dataset("trips"), connection=connection)).topic
    Capture.objects.update(captured_load=1)
    documented = event_schema(subject, Schema.of({"id": "int", "a": "string"}), docs={"a": "The city."})
    registry.register(subject, json.dumps(documented), team=versions.team, actor="ana", now=NOW, is_captured=True)
    wider = versions.version_of(subject, Schema.of({"id": "int", "a": "string", "b": "int"}))
    assert (wider.version, wider.docs) == (2, {"a": "The city."})
    versions.note_changes(subject, 5, [ColumnChange("a", "city")])
    renamed = versions.version_of(subject, Schema.of({"id": "int", "city": "string", "b": "int"}))
    assert renamed.docs == {"a": "The city.", "city": "The city."}


def test_a_column_with_another_name_has_the_old_one_among_its_aliases(versions: CapturedVersions) -> None:
    """What statements say counts once rows show it, and a job is told of it; another load begins without."""
    connection = given.connection("shop", "mysql://reader@db/ops", plugin="mysql")
    capture = capture_of(given.feed(given.dataset("trips"), connection=connection))
    Capture.objects.update(captured_load=1)
    subject = capture.topic
    columns = {"id": "int", "a": "string", "x": "int", "y": "int"}
    versions.version_of(subject, Schema.of(columns))
    versions.note_changes(subject, 5, [ColumnChange("A", "name"), ColumnChange("x", "Y"), ColumnChange("y", "x")])
    versions.note_changes(subject, 5, [ColumnChange("name", "a")])
    assert topic_to_read(capture.feed.dataset, now=NOW).renames == ()
    renamed = versions.version_of(subject, Schema.of({"id": "int", "name": "string", "x": "int", "y": "int"}))
    assert (renamed.version, renamed.aliases) == (2, {"name": ("a",), "x": ("y",), "y": ("x",)})
    assert renamed.columns == ("id", "a", "x", "y", "name")
    (rename,) = topic_to_read(capture.feed.dataset, now=NOW).renames
    assert (rename.before, rename.origins) == (reference_key(5, 0), {"name": "a", "x": "y", "y": "x"})
    again = versions.version_of(subject, Schema.of({"id": "int", "name": "string", "x": "int", "y": "int"}))
    assert again.version == 2
    wider = versions.version_of(subject, Schema.of({"id": "int", "name": "string", "x": "int", "y": "int", "z": "int"}))
    assert (wider.version, wider.aliases["name"]) == (3, ("a",))
    states.note_captured(subject, 1, since="0-1-9", table="t", columns={}, now=NOW)
    assert topic_to_read(capture.feed.dataset, now=NOW).renames == ()
