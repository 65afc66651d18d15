"""The bodies of the schema registry's API, named as Confluent's clients name them."""

from __future__ import annotations

import json
from typing import Any

from rest_framework import serializers

from ingestion.domain.avro.compatibility import Compatibility
from ingestion.models import SchemaVersion
from ingestion.schemas.registry import MAX_WHY
from lakehub.http.openapi import ErrorSerializer

RULES = tuple(rule.value.upper() for rule in Compatibility)


class RegistryErrorSerializer(ErrorSerializer):
    """As all refusals, and as Confluent's clients read them."""

    error_code = serializers.IntegerField(required=False, help_text="Three digits of HTTP, and two that clients know.")
    message = serializers.CharField(required=False)


class SchemaSerializer(serializers.Serializer[Any]):
    """A schema that is sent. Unknown fields, which newer clients have, are not read."""

    schema = serializers.CharField(help_text="The schema as a text of JSON.", trim_whitespace=False)
    schemaType = serializers.ChoiceField(["AVRO"], default="AVRO")  # noqa: N815  Confluent's name
    references = serializers.ListField(
        child=serializers.JSONField(),
        default=list,
        max_length=0,
        help_text="Schemas of other subjects are not taken in.",
    )


class SchemaIdSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(help_text="What messages carry.")


class SchemaTextSerializer(serializers.Serializer[Any]):
    schema = serializers.CharField()


class SchemaVersionSerializer(serializers.Serializer[SchemaVersion]):
    subject = serializers.CharField(source="subject.name")
    id = serializers.IntegerField(source="pk")
    version = serializers.IntegerField()
    schema = serializers.CharField(source="text")
    schemaType = serializers.SerializerMethodField()  # noqa: N815  Confluent's name
    deprecated = serializers.SerializerMethodField(help_text="Why it should not be used any more; null: it may be.")

    def get_schemaType(self, version: SchemaVersion) -> str:  # noqa: N802
        return "AVRO"

    def get_deprecated(self, version: SchemaVersion) -> str | None:
        return version.deprecated_why or None


class SubjectVersionSerializer(serializers.Serializer[SchemaVersion]):
    subject = serializers.CharField(source="subject.name")
    version = serializers.IntegerField()


class CompatibilitySerializer(serializers.Serializer[Any]):
    is_compatible = serializers.BooleanField()
    messages = serializers.ListField(child=serializers.CharField())


class CompatibilityRuleSerializer(serializers.Serializer[Any]):
    compatibility = serializers.CharField(max_length=40, help_text=f"One of {', '.join(RULES)}.")


class SubjectTeamSerializer(serializers.Serializer[Any]):
    team = serializers.CharField(max_length=100)


class RuleLevelSerializer(serializers.Serializer[Any]):
    compatibilityLevel = serializers.ChoiceField(RULES)  # noqa: N815  Confluent's name


class ModeSerializer(serializers.Serializer[Any]):
    mode = serializers.CharField()


class DeprecationSerializer(serializers.Serializer[Any]):
    why = serializers.CharField(max_length=MAX_WHY)


def schema_text(validated: dict[str, Any]) -> str:
    """What a client that sends the schema as JSON in a text means; a name alone, such as `string`, may come without its quotes."""
    text: str = validated["schema"]
    return json.dumps(text) if text in _NAMES else text


_NAMES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
