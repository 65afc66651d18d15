"""Onboarding many at once in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from rest_framework import serializers

from lakehub.catalog.models import MAX_COPIES
from lakehub.catalog.onboarding.along_lineage import Direction
from lakehub.catalog.onboarding.bulk import MAX_REQUESTS, OnboardingLine, OnboardingStatus
from lakehub.catalog.onboarding.by_pattern import MAX_PATTERN
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from lakehub.catalog.serializers.fields import SecondsField
from lakehub.catalog.serializers.onboarding import OnboardingRequestSerializer


class BulkOnboardingSerializer(serializers.Serializer[Any]):
    """What `POST /datasets/bulk` takes: a list of applications, the dataset whose lineage is onboarded, or a pattern of the names of tables of a connection
    whose changes are captured, with `connection`, `team`, `tier` and `data_centers`."""

    datasets = serializers.ListField(child=serializers.DictField(), max_length=MAX_REQUESTS, default=list)
    """Each is what `POST /datasets` takes."""
    lineage_of = serializers.CharField(max_length=63, default="", allow_blank=True)
    direction = serializers.ChoiceField([direction.value for direction in Direction], default=Direction.BOTH.value)
    tables = serializers.CharField(
        max_length=MAX_PATTERN,
        default="",
        allow_blank=True,
        help_text="Such as `sales_*`, several with commas between.",
    )
    chosen = serializers.ListField(
        child=serializers.CharField(max_length=500, trim_whitespace=False),
        max_length=MAX_REQUESTS,
        default=None,
        allow_null=True,
        help_text="With `tables`: of those that match, these only. Where one does not match, nothing is onboarded.",
    )
    connection = serializers.CharField(max_length=63, default="", allow_blank=True)
    data_centers = serializers.ListField(
        child=serializers.CharField(max_length=63), max_length=MAX_COPIES, default=list
    )
    tier = serializers.IntegerField(default=None, allow_null=True)
    team = serializers.CharField(max_length=63, default="", allow_blank=True)
    grace = SecondsField(default=timedelta())


def parse_requests(items: Sequence[Any]) -> tuple[tuple[OnboardingRequest, ...], tuple[OnboardingLine, ...]]:
    """The applications, and a line for each item that is none."""
    applications, lines = [], []
    for item in items:
        serializer = OnboardingRequestSerializer(data=item)
        if serializer.is_valid():
            applications.append(serializer.to_request())
        else:
            name = str(item.get("name", "")) if isinstance(item, dict) else str(item)
            lines.append(
                OnboardingLine(
                    name,
                    OnboardingStatus.REFUSED,
                    {field: _error_text(why) for field, why in serializer.errors.items()},
                )
            )
    return tuple(applications), tuple(lines)


def _error_text(why: Any) -> str:
    """What the framework says of a field: a list of words, or one for each item."""
    return " ".join(map(str, why)) if isinstance(why, list) else str(why)


class OnboardingLineSerializer(serializers.Serializer[OnboardingLine]):
    """What became of one dataset of many: created, exists or refused, and why by field; or ready, where it was only looked at. `table`: empty where the application could not be read."""

    name = serializers.CharField()
    table = serializers.CharField()
    result = serializers.ChoiceField([status.value for status in OnboardingStatus])
    why = serializers.DictField(child=serializers.CharField())
    notes = serializers.ListField(child=serializers.CharField())
