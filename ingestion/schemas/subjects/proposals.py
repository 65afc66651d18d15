"""What a schema would change if it were registered, and what differs between versions that are. Nothing is stored."""

from __future__ import annotations

from dataclasses import dataclass

from ingestion.domain.avro.compatibility import Refusal
from ingestion.domain.avro.schema_diff import SchemaDiff, schema_diff
from ingestion.models import SchemaVersion
from ingestion.schemas import registry
from ingestion.schemas.avro_text import digest_of, parsed
from ingestion.schemas.subjects.lake_tables import LakeEffect, lake_effect
from lakehub.kernel.errors import NotFound


@dataclass(frozen=True)
class Proposal:
    """`newest`: which it would follow. `registered`: the version that has this schema already. `diff`: to the newest; None: the subject is new. `lake`: what it
    would change in the lake; None: no table there follows the subject, or it is registered already."""

    newest: SchemaVersion | None
    registered: SchemaVersion | None
    refusals: tuple[Refusal, ...]
    diff: SchemaDiff | None
    lake: LakeEffect | None = None

    @property
    def may_be_registered(self) -> bool:
        return not self.refusals

    @property
    def number(self) -> int:
        """That it would have."""
        return 1 if self.newest is None else self.newest.version + 1


def look_at_proposal(subject_name: str, text: str) -> Proposal:
    """Raises Refused where the text is no schema, or no subject can have that name."""
    schema = parsed(text)
    try:
        newest = registry.find_version(subject_name)
    except NotFound:
        registry.require_new_name(subject_name)
        return Proposal(None, None, (), None)
    registered = newest.subject.versions.filter(digest=digest_of(schema)).first()
    problems = () if registered else registry.compatibility_problems(subject_name, text)
    effect = None if registered else lake_effect(newest.subject, schema)
    return Proposal(newest, registered, problems, schema_diff(registry.schema_of(newest), schema), effect)


def diff_of_versions(older: SchemaVersion, newer: SchemaVersion) -> SchemaDiff:
    return schema_diff(registry.schema_of(older), registry.schema_of(newer))
