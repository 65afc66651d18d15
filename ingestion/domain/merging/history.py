"""What the history of a captured table keeps: one row for each version of a row, under a key that is the same whenever its event comes again.

A version is known by its row, its reference key, its data center, its time and what it says. The place in the log is no part of it: a message that is
published twice is one version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from ingestion.domain.merging.events import ChangeEvent, Operation, ReferenceKey, Version
from ingestion.domain.merging.stored_metadata import LatestEvent
from ingestion.domain.schema import Schema

PREFIX = "_lakehub_"
KEY_COLUMN, DAY_COLUMN = f"{PREFIX}version", f"{PREFIX}day"
RETENTION_MARGIN = timedelta(days=7)
"""Beyond what is kept: changes may come so late."""
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_INSTANT = "%Y%m%d%H%M%S%f"
_KEY_BYTES = 16


@dataclass(frozen=True)
class RowVersion:
    """A row of the history. `day`: the partition that it lies in."""

    key: str
    day: str
    row: Mapping[str, Any]


def history_schema(columns: Schema, reference_type: type[ReferenceKey]) -> Schema:
    """`columns`: of the table, without its metadata. They come last, so that a new one does."""
    own = {
        "version": "string",
        "day": "string",
        "committed_at": "timestamp",
        "is_deleted": "boolean",
        "is_snapshot": "boolean",
        "changed_columns": "array<string>",
        "reference_key": "binary" if reference_type is bytes else "long",
        "data_center": "string",
        "position": "array<long>",
        "schema_version": "int",
        "force_update": "boolean",
    }
    return Schema.of({f"{PREFIX}{name}": type_ for name, type_ in own.items()} | columns.types)


def version_of_event(event: ChangeEvent, row_key: str, facts: LatestEvent, *, is_whole: bool) -> RowVersion:
    """`event`: with plain values. `is_whole`: it carries all columns of its schema."""
    at = facts.source_committed_at or facts.schematised_at
    is_deleted = event.operation is Operation.DELETE
    content = {"deleted": is_deleted, "forced": event.force_update, "values": {} if is_deleted else event.values}
    key = _version_key(at, row_key, event.version, content)
    row = _row(key, _day(at), at, event.version, facts, event.values)
    changed = None if is_whole or is_deleted else sorted(event.values)
    return RowVersion(key, _day(at), row | {f"{PREFIX}is_deleted": is_deleted, f"{PREFIX}changed_columns": changed})


def version_of_stored_row(values: Mapping[str, Any], metadata: Mapping[str, Any], *, day: str) -> RowVersion:
    """The row as it was before the first change that the history has. `day`: of that change, whose partition it shares, so that the two are kept equally long."""
    at = _moment(metadata["source_committed_at"] or metadata["schematised_at"])
    version = Version(metadata["reference_key"], metadata["data_center"], tuple(metadata["position"]))
    facts = LatestEvent("", None, at, metadata["schema_version"], force_update=metadata["force_update"])
    key = _version_key(at, metadata["row_key"], version, {"snapshot": True})
    row = _row(key, day, at, version, facts, values)
    return RowVersion(key, day, row | {f"{PREFIX}is_snapshot": True})


def unknown_until(since: str, *, now: datetime, kept_for: timedelta | None) -> str:
    """Rows that a commit up to this instant has written are not in the history, or may be removed from it before their next change is. `since`: the instant of
    the newest commit whose changes it lacks. `kept_for`: None: for ever."""
    if kept_for is None:
        return since
    return max(since, (now - kept_for).astimezone(UTC).strftime(_INSTANT)[: len("yyyymmddhhmmssmmm")])


def oldest_day_kept(*, now: datetime, kept_for: timedelta) -> str:
    """A version counts until the next one of its row does not count any more, which may be as long again: of a row that stood for longer, the next change has
    brought what it was along."""
    return _day(now - 2 * kept_for - RETENTION_MARGIN)


def _row(
    key: str, day: str, at: datetime, version: Version, facts: LatestEvent, values: Mapping[str, Any]
) -> dict[str, Any]:
    own = {
        "version": key,
        "day": day,
        "committed_at": (at - _EPOCH) // _MICROSECOND,
        "is_deleted": False,
        "is_snapshot": False,
        "changed_columns": None,
        "reference_key": version.reference_key,
        "data_center": version.data_center,
        "position": [*version.position],
        "schema_version": facts.schema_version,
        "force_update": facts.force_update,
    }
    return {**values, **{f"{PREFIX}{name}": value for name, value in own.items()}}


def _version_key(at: datetime, row_key: str, version: Version, content: Mapping[str, Any]) -> str:
    """Begins with its time: keys that come later are greater, so that most files need not be looked into."""
    reference = version.reference_key
    known_by = [row_key, _canonical(reference), version.data_center, _canonical(content)]
    digest = hashlib.blake2b(json.dumps(known_by).encode(), digest_size=_KEY_BYTES).hexdigest()
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%S.%f}-{digest}"


def _canonical(value: Any) -> Any:
    """The same in each type that the column may have widened to. A column that is null and one that was not there yet are one."""
    match value:
        case bool() | str() | None:
            return value
        case int() | float() | Decimal():
            return _plain_number(Decimal(value))
        case bytes():
            return f"0x{value.hex()}"
        case Mapping():
            there = {str(name): _canonical(each) for name, each in value.items() if each is not None}
            return dict(sorted(there.items()))
        case list() | tuple():
            return [_canonical(each) for each in value]
    return str(value)


def _plain_number(number: Decimal) -> str:
    """Each digit, and no zeros at the end."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _day(at: datetime) -> str:
    return at.astimezone(UTC).date().isoformat()


def _moment(stored: int | datetime) -> datetime:
    """Times of rows that were read are microseconds since 1970."""
    return stored if isinstance(stored, datetime) else _EPOCH + stored * _MICROSECOND
