"""The metadata column of a table in the lake that changes are merged into: the metadata of DBEvents, from which the state of a row is read back.

As plain values, in the shape of `metadata_type`. A row that one change wrote as a whole has no changelog columns: all columns of its schema version, and not those
that the table got later, have the version that the metadata itself has. Most rows are so, and nested values cost more to write than all else of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from ingestion.domain.column_types import ArrayOf, ColumnType, Plain, StructOf
from ingestion.domain.merging.events import ReferenceKey, Version
from ingestion.domain.merging.row_state import ChangelogColumns, RowState, changelog_columns, columns_from_changelog

METADATA_COLUMN = "_lakehub_metadata"
SNAPSHOT_SOURCE = "snapshot"
"""Where a row was changed that was read from its table, and not from a log."""
_STRING, _LONG, _TIMESTAMP = Plain("string"), Plain("long"), Plain("timestamp")


@dataclass(frozen=True)
class LatestEvent:
    """What the event says of itself that gave the row its latest change."""

    source: str
    source_committed_at: datetime | None
    schematised_at: datetime
    schema_version: int
    error_exception: str | None = None
    error_source_data: bytes | None = None
    force_update: bool = False


def metadata_type(reference_type: type[ReferenceKey] | None) -> ColumnType:
    """Of a dataset whose reference key is a long, bytes, or (None) whose changes are ordered by their place in the log alone."""
    reference = Plain("binary") if reference_type is bytes else _LONG
    version = (("ref_key", reference), ("data_center", _STRING), ("position", ArrayOf(_LONG)))
    return StructOf(
        (
            ("row_key", _STRING),
            ("reference_key", reference),
            ("data_center", _STRING),
            ("position", ArrayOf(_LONG)),
            ("changelog_columns", ArrayOf(StructOf((*version, ("changed_fields", ArrayOf(_STRING)))))),
            ("deleted", StructOf(version)),
            ("forced", ArrayOf(StructOf((("data_center", _STRING), ("position", ArrayOf(_LONG)))))),
            ("source", _STRING),
            ("source_committed_at", _TIMESTAMP),
            ("schematised_at", _TIMESTAMP),
            ("schema_version", Plain("int")),
            ("error_exception", _STRING),
            ("error_source_data", Plain("binary")),
            ("force_update", Plain("boolean")),
        )
    )


def reference_type_of(type_: str) -> type[ReferenceKey]:
    """Of a table whose metadata column has this type: as its text says, long or bytes."""
    return int if type_ == str(metadata_type(int)) else bytes


def metadata_of(row_key: str, state: RowState, latest: LatestEvent, columns: Collection[str]) -> dict[str, Any]:
    """Of a row that is there. `columns`: those of the schema version of its latest event."""
    changelog = changelog_columns(state)
    newest, entries = changelog[0].version, [_entry(each, columns) for each in changelog]
    is_whole = len(entries) == 1 and not entries[0]["changed_fields"]
    forced = [{"data_center": center, "position": [*at]} for center, at in sorted(state.forced.items())]
    return {
        "row_key": row_key,
        "reference_key": newest.reference_key,
        "data_center": newest.data_center,
        "position": [*newest.position],
        "changelog_columns": None if is_whole else entries,
        "deleted": None if state.tombstone is None else _version(state.tombstone),
        "forced": forced or None,
        **asdict(latest),
    }


def row_state(
    values: Mapping[str, Any], metadata: Mapping[str, Any], columns_of: Callable[[int], Collection[str]]
) -> RowState:
    """`values`: of the columns of the table, without the metadata. `columns_of`: a version of the schema."""
    columns, deleted = columns_of(metadata["schema_version"]), metadata["deleted"]
    entries = metadata["changelog_columns"] or [
        {
            "ref_key": metadata["reference_key"],
            **{name: metadata[name] for name in ("data_center", "position")},
            "changed_fields": [],
        }
    ]
    changelog = [_changelog_columns(entry, columns) for entry in entries]
    return RowState(
        columns_from_changelog(changelog, values),
        None if deleted is None else _read_version(deleted),
        {each["data_center"]: tuple(each["position"]) for each in metadata["forced"] or ()},
    )


def latest_event_of(metadata: Mapping[str, Any]) -> LatestEvent:
    return LatestEvent(**{each.name: metadata[each.name] for each in fields(LatestEvent)})


def _entry(changed: ChangelogColumns, columns: Collection[str]) -> dict[str, Any]:
    is_whole = {*changed.names} == {*columns}
    return {**_version(changed.version), "changed_fields": [] if is_whole else [*changed.names]}


def _changelog_columns(entry: Mapping[str, Any], columns: Collection[str]) -> ChangelogColumns:
    names = entry["changed_fields"] or sorted(columns)
    return ChangelogColumns(_read_version(entry), tuple(names))


def _version(version: Version) -> dict[str, Any]:
    return {
        "ref_key": version.reference_key,
        "data_center": version.data_center,
        "position": [*version.position],
    }


def _read_version(stored: Mapping[str, Any]) -> Version:
    return Version(stored["ref_key"], stored["data_center"], tuple(stored["position"]))
