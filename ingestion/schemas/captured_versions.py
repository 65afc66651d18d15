"""The versions of the events of captured tables: whoever captures a table asks for the version that has its columns, and a new one is registered.

A column that the table has no more stays in the schema, and is null from then on; one that is narrower than it was keeps its wider type; one that has got
another name is a new one with the old name among its aliases.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ingestion.capture.binlog.column_changes import ColumnChange
from ingestion.capture.tap.captured_table import NotCaptured
from ingestion.domain.schema import Schema, evolve_schema
from ingestion.heatpipe.event_schema import event_schema
from ingestion.heatpipe.subject_schema import SubjectSchema
from ingestion.models import SchemaVersion
from ingestion.schemas import registry
from ingestion.schemas.emptied_tables import note_emptied
from ingestion.schemas.renamed_columns import keep_renames, note_changes, seen_renames
from lakehub.accounts.models import Team
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.lake_names import names_unfit_for_the_lake, unfit_names_text


@dataclass
class CapturedVersions:
    """`team`: that of new subjects. `actor`: who registers, such as the tap of a server. `clock`: aware UTC."""

    team: Team
    actor: str
    clock: Callable[[], datetime]
    _known: dict[int, SubjectSchema] = field(default_factory=dict)

    def version_of(self, subject: str, columns: Schema) -> SubjectSchema:
        """Raises NotCaptured where the subject's rule, or what the lake can hold, is against these columns."""
        newest = self.newest(subject)
        stored = Schema(()) if newest is None else _stored_columns(newest)
        evolution = evolve_schema(stored, columns)
        if evolution.conflicts and (older := self._older_with_room(subject, columns)) is not None:
            return older
        if evolution.conflicts:
            changes = ", ".join(f"`{name}` from {old} to {new}" for name, old, new in evolution.conflicts)
            raise NotCaptured(
                f"The table of {subject} has changed {changes}, and the lake cannot make the one into the other. Load the dataset again under another "
                "name, or give the column its old type again."
            )
        if unfit := names_unfit_for_the_lake(evolution.target.names):
            raise NotCaptured(
                f"The table of {subject} has other columns than before: {unfit_names_text(unfit)} Give the column its old name again, or load the table under another name."
            )
        renames = seen_renames(subject, stored, columns)
        is_kept = evolution.target == stored and not renames
        if newest is not None and is_kept and newest.has_nullable_columns:
            keep_renames(subject, columns, {})
            return newest
        aliases = {} if newest is None else newest.aliases
        aliases |= {
            new: (*aliases.get(new, ()), old) for new, old in renames.items() if old not in aliases.get(new, ())
        }
        docs = {} if newest is None else newest.docs
        docs |= {new: docs[old] for new, old in renames.items() if old in docs}
        version = self._register(subject, event_schema(subject, evolution.target, aliases, docs))
        keep_renames(subject, columns, renames)
        return version

    def note_changes(self, subject: str, sequence: int, changes: Sequence[ColumnChange]) -> None:
        note_changes(subject, sequence, changes)

    def note_emptied(self, subject: str, sequence: int) -> None:
        note_emptied(subject, sequence)

    def newest(self, subject: str) -> SubjectSchema | None:
        """None: there is no version yet."""
        try:
            return self._subject_schema(registry.find_version(subject))
        except NotFound:
            return None

    def _older_with_room(self, subject: str, columns: Schema) -> SubjectSchema | None:
        """The table is as it was, and somebody has registered a version that is not as the table: its rows go on by the version before."""
        for version in registry.find_subject(subject).versions.select_related("subject").order_by("-version")[1:]:
            schema = self._subject_schema(version)
            if schema.is_event and schema.has_nullable_columns and _has_room(schema, columns):
                return schema
        return None

    def _register(self, subject: str, schema: Mapping[str, Any]) -> SubjectSchema:
        try:
            version = registry.register(
                subject, json.dumps(schema), team=self.team, actor=self.actor, now=self.clock(), is_captured=True
            )
        except (Refused, Conflict) as problem:
            raise NotCaptured(str(problem)) from problem
        return self._subject_schema(version)

    def _subject_schema(self, version: SchemaVersion) -> SubjectSchema:
        if version.pk not in self._known:
            self._known[version.pk] = subject_schema_of(version)
        return self._known[version.pk]


@dataclass
class VersionsByTopic:
    """Those of a topic are registered for the team of its dataset."""

    by_topic: Mapping[str, CapturedVersions]

    def version_of(self, subject: str, columns: Schema) -> SubjectSchema:
        return self.by_topic[subject].version_of(subject, columns)

    def note_changes(self, subject: str, sequence: int, changes: Sequence[ColumnChange]) -> None:
        self.by_topic[subject].note_changes(subject, sequence, changes)

    def note_emptied(self, subject: str, sequence: int) -> None:
        self.by_topic[subject].note_emptied(subject, sequence)


def subject_schema_of(version: SchemaVersion) -> SubjectSchema:
    return SubjectSchema(version.subject.name, version.version, version.pk, json.loads(version.text))


def _has_room(schema: SubjectSchema, columns: Schema) -> bool:
    evolution = evolve_schema(schema.row_columns, columns)
    return evolution.target == schema.row_columns and not evolution.conflicts


def _stored_columns(newest: SubjectSchema) -> Schema:
    """Whoever may register under the subject may have registered anything."""
    try:
        return newest.row_columns
    except (LookupError, TypeError, ValueError, StopIteration) as problem:
        raise NotCaptured(
            f"Version {newest.version} of the subject {newest.subject!r} is not a schema of change events, and somebody else has registered it. "
            "Load the dataset under another name."
        ) from problem
