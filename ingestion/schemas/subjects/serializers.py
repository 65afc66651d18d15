"""The bodies of what the API says of subjects beside the paths of Confluent's registry."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from ingestion.domain.avro.columns import AvroColumn, ColumnList
from ingestion.domain.avro.schema_diff import ChangeKind, ColumnChange, Difference, SchemaDiff
from ingestion.models import SchemaVersion
from ingestion.schemas.serializers import RULES
from ingestion.schemas.subjects.lake_tables import LakeEffect, TypeChange
from ingestion.schemas.subjects.listing import SubjectRow
from ingestion.schemas.subjects.proposals import Proposal


class SubjectSerializer(serializers.Serializer[Any]):
    subject = serializers.CharField(source="subject.name")
    team = serializers.CharField(source="subject.team.name")
    compatibility = serializers.SerializerMethodField(help_text=f"Its rule: one of {', '.join(RULES)}.")
    version = serializers.IntegerField(source="newest.version", default=None, allow_null=True, help_text="The newest.")
    id = serializers.IntegerField(source="newest.schema_id", default=None, allow_null=True)
    columns = serializers.IntegerField(
        source="newest.columns",
        default=None,
        allow_null=True,
        help_text="Of the newest version: of a change event those of the row, without the fields of structures.",
    )
    registered_at = serializers.DateTimeField(source="newest.registered_at", default=None, allow_null=True)
    registered_by = serializers.CharField(source="newest.registered_by", default=None, allow_null=True)
    deprecated = serializers.SerializerMethodField(help_text="Why the newest version should not be used; null: it may.")
    dataset = serializers.CharField(
        source="dataset.name", default=None, allow_null=True, help_text="Whose changes are captured under it."
    )

    def get_compatibility(self, row: SubjectRow) -> str:
        return row.subject.compatibility.upper()

    def get_deprecated(self, row: SubjectRow) -> str | None:
        return (row.newest and row.newest.deprecated_why) or None


class RegisteredVersionSerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField()
    id = serializers.IntegerField(source="pk")
    registered_at = serializers.DateTimeField()
    registered_by = serializers.CharField()
    deprecated_at = serializers.DateTimeField(allow_null=True)
    deprecated = serializers.SerializerMethodField(help_text="Why it should not be used any more; null: it may be.")

    def get_deprecated(self, version: SchemaVersion) -> str | None:
        return version.deprecated_why or None


class ColumnSerializer(serializers.Serializer[AvroColumn]):
    path = serializers.CharField(help_text="Such as `row.stops[].lat`; empty: of a schema that is no record.")
    type = serializers.CharField(help_text="In words of the lake.")
    avro_type = serializers.CharField()
    is_nullable = serializers.BooleanField()
    default = serializers.CharField(allow_null=True, help_text="JSON; null: it has none.")
    doc = serializers.CharField(help_text="Cut where it is long, as names and defaults are.")
    aliases = serializers.ListField(child=serializers.CharField())
    symbols = serializers.CharField(help_text="Of an enumeration.")
    shown_at = serializers.CharField(help_text="The path at which the fields of its type are listed, if not here.")


class ColumnListSerializer(serializers.Serializer[ColumnList]):
    columns = ColumnSerializer(many=True)
    is_cut = serializers.BooleanField(help_text="There are more of them.")


class DifferenceSerializer(serializers.Serializer[Difference]):
    what = serializers.CharField(
        help_text="name, type, default, documentation, aliases, order, symbols, order of symbols, type name or type documentation."
    )
    before = serializers.CharField(help_text="Empty: there was none. Of symbols those that were removed.")
    after = serializers.CharField(help_text="Empty: there is none. Of symbols those that were added.")


class ColumnChangeSerializer(serializers.Serializer[ColumnChange]):
    path = serializers.CharField(help_text="Empty: the schema itself.")
    kind = serializers.ChoiceField([kind.value for kind in ChangeKind])
    column = ColumnSerializer(allow_null=True, help_text="That was added or removed.")
    differences = DifferenceSerializer(many=True)


class SchemaDiffSerializer(serializers.Serializer[SchemaDiff]):
    changes = ColumnChangeSerializer(many=True)
    is_same = serializers.BooleanField(help_text="Nothing differs, not even what is no column's.")
    is_cut = serializers.BooleanField(help_text="There are more changes.")


class TypeChangeSerializer(serializers.Serializer[TypeChange]):
    name = serializers.CharField()
    before = serializers.CharField(help_text="The type of the table.")
    after = serializers.CharField()


class LakeEffectSerializer(serializers.Serializer[LakeEffect]):
    dataset = serializers.CharField(source="dataset.name")
    data_centers = serializers.ListField(child=serializers.CharField())
    added = serializers.SerializerMethodField(help_text="Columns with their types, null until the source has them.")
    widened = TypeChangeSerializer(many=True)
    conflicts = TypeChangeSerializer(
        many=True, help_text="The table keeps its type; values that do not fit go to the error table."
    )
    refused = serializers.CharField(help_text="Why the tables cannot follow it; empty: they can.")

    def get_added(self, effect: LakeEffect) -> dict[str, str]:
        return dict(effect.added)


class ProposalSerializer(serializers.Serializer[Proposal]):
    is_compatible = serializers.BooleanField(source="may_be_registered")
    messages = serializers.SerializerMethodField(help_text="Why it may not follow.")
    registered = serializers.IntegerField(
        source="registered.version", default=None, allow_null=True, help_text="The version that is this schema already."
    )
    version = serializers.IntegerField(source="number", help_text="That it would be.")
    diff = SchemaDiffSerializer(allow_null=True, help_text="To the newest version; null: the subject is new.")
    lake = LakeEffectSerializer(
        allow_null=True, help_text="What it would change in tables of the lake; null: none follows the subject."
    )

    def get_messages(self, proposal: Proposal) -> list[str]:
        return [str(problem) for problem in proposal.refusals]
