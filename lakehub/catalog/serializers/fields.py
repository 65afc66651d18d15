"""Fields that several serializers of the catalog have. Durations are seconds."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from lakehub.catalog.datasets.feed_options import FEED_OPTIONS, FeedOption
from lakehub.catalog.datasets.hidden_columns import (
    MAX_COLUMN_NAME,
    MAX_HIDDEN,
)


@extend_schema_field({"type": "number", "description": "Seconds"})
class SecondsField(serializers.Field[timedelta, int, float, timedelta]):
    """A length of time as a number of seconds."""

    def to_internal_value(self, data: int) -> timedelta:
        if isinstance(data, bool) or not isinstance(data, int | float):
            raise serializers.ValidationError(f"{data!r} is not a number of seconds.")
        try:
            return timedelta(seconds=data)
        except (OverflowError, ValueError) as error:
            raise serializers.ValidationError(f"{data!r} seconds cannot be counted.") from error

    def to_representation(self, value: timedelta) -> float:
        return value.total_seconds()


def _options_schema() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {option.name: _option_schema(option) for option in FEED_OPTIONS.values()},
        "additionalProperties": False,
    }


def _option_schema(option: FeedOption) -> dict[str, Any]:
    schema = {"description": option.text, "default": option.in_force({})}
    if option.is_switch:
        return {"type": "boolean", **schema}
    if option.bounds is None:
        return {"type": "string", **schema}
    least, most = (0, option.bounds[1]) if option.zero_is_none else option.bounds
    return {"type": "integer" if option.is_whole else "number", "minimum": least, "maximum": most, **schema}


@extend_schema_field(_options_schema())
class FeedOptionsField(serializers.DictField):
    """The use case checks names and values."""


LEFT_OUT_TEXT = "Of a captured table, columns that do not come into the lake."


HASHED_TEXT = "Columns that come as HMAC-SHA-256 in hexadecimal digits, with a key of this instance."


MASKED_TEXT = "Columns that are null in the lake."


MAX_OVERRIDES = 200


class OverridesField(serializers.DictField):
    """Each is understood by itself, so their number is bounded."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if isinstance(data, dict) and len(data) > MAX_OVERRIDES:
            raise serializers.ValidationError(f"There are {len(data):,} overrides: at most {MAX_OVERRIDES} are taken.")
        return dict(super().to_internal_value(data))


def hidden_columns_field(text: str, **options: Any) -> serializers.ListField:
    """Names of columns may begin with a space."""
    child = serializers.CharField(max_length=MAX_COLUMN_NAME, trim_whitespace=False)
    return serializers.ListField(child=child, max_length=MAX_HIDDEN, help_text=text, **options)
