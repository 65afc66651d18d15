"""Who follows what, and what an incident may reach."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework import serializers

from incidents.models import Subscription
from incidents.record.downstream_impact import AffectedConsumer, DownstreamDataset
from incidents.record.evidence import Evidence


class SubscriptionSerializer(serializers.ModelSerializer[Subscription]):
    dataset = serializers.CharField(source="dataset.name")

    class Meta:
        model = Subscription
        fields: ClassVar = ["dataset", "created_at"]


class ReachedSerializer(serializers.Serializer[DownstreamDataset]):
    """A dataset made from the one that fails, `steps` away, over `via`."""

    dataset = serializers.CharField(source="dataset.name")
    team = serializers.CharField(source="dataset.team.name")
    tier = serializers.IntegerField(source="dataset.tier")
    steps = serializers.IntegerField()
    via = serializers.CharField(source="via.name")


class ConsumerSerializer(serializers.Serializer[AffectedConsumer]):
    """Who asked the gate for the data while it was wrong."""

    name = serializers.CharField()
    questions = serializers.IntegerField()
    blocked = serializers.IntegerField()
    last_at = serializers.DateTimeField()


class ImpactSerializer(serializers.Serializer[dict[str, Any]]):
    downstream = ReachedSerializer(many=True)
    consumers = ConsumerSerializer(many=True)


class EvidenceSerializer(serializers.Serializer[Evidence]):
    """The last failing run over one range. Values of records are as the test read them."""

    test = serializers.CharField(source="span.unit.test.key")
    data_center = serializers.CharField(source="span.copy.data_center.name")
    start = serializers.DateTimeField(source="span.start")
    end = serializers.DateTimeField(source="span.end")
    read_at = serializers.DateTimeField()
    observed = serializers.FloatField(allow_null=True)
    threshold = serializers.CharField()
    missing = serializers.ListField(
        child=serializers.DictField(child=serializers.JSONField(allow_null=True)), help_text="Records named as missing."
    )
    detail = serializers.DictField(child=serializers.JSONField(allow_null=True), help_text="All that the run saw.")
