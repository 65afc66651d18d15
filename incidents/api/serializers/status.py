"""What the REST API says of the state of a dataset, as the pages show it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from incidents.domain.incident.health import STATE_WEIGHTS
from incidents.record.health import VERDICT_RANK, CategoryHealth, DatasetHealth
from quality.models import Category

STATES = [state for state in STATE_WEIGHTS if state not in ("held", "running")]


class CellSerializer(serializers.Serializer[CategoryHealth]):
    """One category. What fails and is suppressed, snoozed or in grace has that as its state; `verdict` is the tests' own."""

    category = serializers.ChoiceField(choices=Category.values)
    state = serializers.ChoiceField(choices=STATES)
    verdict = serializers.ChoiceField(choices=list(VERDICT_RANK))
    not_passing = serializers.IntegerField(source="units", help_text="Units: data ranges of tests.")
    since = serializers.DateTimeField(allow_null=True, help_text="The first failure of what fails.")
    incident = serializers.SerializerMethodField(help_text="The open incident that weighs most.")
    suppressed_by = serializers.SerializerMethodField(help_text="The incident whose failure holds its messages.")
    quiet_until = serializers.SerializerMethodField(help_text="When a snooze ends, at the latest; null: no snooze.")

    def get_incident(self, cell: CategoryHealth) -> int | None:
        return cell.incident.pk if cell.incident else None

    def get_suppressed_by(self, cell: CategoryHealth) -> int | None:
        held_by: int | None = getattr(cell.incident, "held_by", None) if cell.state == "suppressed" else None
        return held_by

    def get_quiet_until(self, cell: CategoryHealth) -> str | None:
        until = cell.incident.snoozed_until if cell.incident and cell.state == "snoozed" else None
        return until.isoformat().replace("+00:00", "Z") if until else None


class StatusSerializer(serializers.Serializer[DatasetHealth]):
    """A failed test fails its category, the category fails the dataset: the worst that counts."""

    dataset = serializers.CharField(source="dataset.name")
    team = serializers.CharField(source="dataset.team.name")
    tier = serializers.IntegerField(source="dataset.tier")
    state = serializers.ChoiceField(choices=STATES)
    grace_until = serializers.DateTimeField(source="dataset.grace_until", allow_null=True)
    categories = serializers.SerializerMethodField()

    def get_categories(self, health: DatasetHealth) -> list[dict[str, Any]]:
        return [CellSerializer(cell).data for cell in health.categories]
