"""What the REST API is sent and says of alerts, routes and suppression."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework import serializers

from incidents.domain.alerting.quiet_hours import DigestInterval
from incidents.domain.alerting.routing import Severity
from incidents.domain.alerting.suppression import SuppressionPair
from incidents.models import Route
from quality.models import Category

SEVERITY_VALUES = [severity.value for severity in Severity]


class TellsSerializer(serializers.Serializer[Any]):
    channel = serializers.CharField()
    address = serializers.CharField(source="shown_address", help_text="Without what is secret in it.")
    why = serializers.CharField()


class AlertSerializer(serializers.Serializer[Any]):
    """What a failure of one category is worth, and who hears of it."""

    category = serializers.CharField(source="alert.category")
    severity = serializers.CharField(source="alert.setting.severity", help_text="What counts.")
    muted = serializers.BooleanField(source="alert.setting.muted", help_text="Nobody of the team is told.")
    of_template = serializers.CharField(source="alert.severity", help_text="What the tier and the category ask for.")
    because = serializers.CharField(source="alert.because")
    override = serializers.JSONField(source="alert.override", help_text="What a person set in place of the template.")
    overridden_by = serializers.CharField(source="alert.overridden_by")
    overridden_at = serializers.DateTimeField(source="alert.overridden_at", allow_null=True)
    sustain = serializers.DurationField(allow_null=True, help_text="A failure that is shorter is a warning.")
    suppressed_by = serializers.ListField(child=serializers.CharField(), help_text="Categories that hold its messages.")
    told = TellsSerializer(many=True)
    metadata_version = serializers.IntegerField(source="alert.metadata_version")


class AlertOverrideSerializer(serializers.Serializer[dict[str, Any]]):
    """What counts in place of the template. Nothing of it: the template counts."""

    severity = serializers.ChoiceField(SEVERITY_VALUES, required=False, allow_null=True)
    muted = serializers.BooleanField(required=False)
    why = serializers.CharField(required=False, allow_blank=True, max_length=500, help_text="Needed where it is muted.")


class PairSerializer(serializers.Serializer[SuppressionPair]):
    by = serializers.SerializerMethodField()
    suppresses = serializers.SerializerMethodField()

    def get_by(self, pair: SuppressionPair) -> str:
        return pair[0]

    def get_suppresses(self, pair: SuppressionPair) -> str:
        return pair[1]


class SuppressionSerializer(serializers.Serializer[dict[str, Any]]):
    pairs = PairSerializer(many=True, help_text="`by` holds the messages of `suppresses` while it fails.")
    is_default = serializers.BooleanField()


class PutSuppressionSerializer(serializers.Serializer[dict[str, Any]]):
    by = serializers.CharField(max_length=20)
    suppresses = serializers.CharField(max_length=20)
    counts = serializers.BooleanField(
        required=False, default=True, help_text="false: it does not, whatever the default."
    )


class RouteSerializer(serializers.ModelSerializer[Route]):
    """An address of a team, what it takes, and when. Lists that are empty take all."""

    address = serializers.CharField(source="shown_address", help_text="Without what is secret in it.")
    tiers = serializers.ListField(child=serializers.IntegerField())
    categories = serializers.ListField(child=serializers.CharField())
    quiet_days = serializers.ListField(child=serializers.IntegerField())

    class Meta:
        model = Route
        fields: ClassVar = [
            *("id", "channel", "address", "enabled", "tiers", "categories", "least", "zone"),
            *("quiet_from", "quiet_to", "quiet_days", "digest", "digest_at"),
        ]


class PutRouteSerializer(serializers.Serializer[dict[str, Any]]):
    channel = serializers.CharField(max_length=20)
    address = serializers.CharField(max_length=500)
    enabled = serializers.BooleanField(required=False)
    tiers = serializers.ListField(child=serializers.IntegerField(), required=False, max_length=6)
    categories = serializers.ListField(child=serializers.ChoiceField(Category.values), required=False, max_length=6)
    least = serializers.ChoiceField(SEVERITY_VALUES, required=False, help_text="The least severity that it takes.")
    zone = serializers.CharField(max_length=64, required=False, help_text="Of the times below, such as Europe/Lisbon.")
    quiet_from = serializers.TimeField(required=False, allow_null=True)
    quiet_to = serializers.TimeField(
        required=False, allow_null=True, help_text="Not after quiet_from: on the next day."
    )
    quiet_days = serializers.ListField(
        child=serializers.IntegerField(), required=False, max_length=7, help_text="On which they begin; Monday is 0."
    )
    digest = serializers.ChoiceField([interval.value for interval in DigestInterval], required=False)
    digest_at = serializers.TimeField(required=False, help_text="Of a daily digest.")


class ChangeRouteSerializer(PutRouteSerializer):
    """What of it changes."""

    channel = serializers.CharField(max_length=20, required=False)
    address = serializers.CharField(max_length=500, required=False)


class UpstreamIncidentSerializer(serializers.Serializer[Any]):
    """An open incident of what the dataset is made from."""

    incident = serializers.IntegerField(source="incident.pk")
    dataset = serializers.CharField(source="incident.dataset.name")
    category = serializers.CharField(source="incident.category")
    title = serializers.CharField(source="incident.title")
    eta = serializers.DateTimeField(source="incident.eta", allow_null=True)
    steps = serializers.IntegerField(help_text="Along the lineage: 1 is what it reads itself.")
