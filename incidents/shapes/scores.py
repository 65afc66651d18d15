"""What the REST API says of scores."""

from __future__ import annotations

from rest_framework import serializers

from incidents.domain.scores import QueryLevel
from incidents.scoring import DatasetScore, Scores
from incidents.shapes.common import RangeSerializer


class DatasetScoreSerializer(serializers.Serializer[DatasetScore]):
    dataset = serializers.CharField()
    incident_share = serializers.FloatField(allow_null=True)
    quality = serializers.FloatField(allow_null=True)


class QueryLevelSerializer(serializers.Serializer[QueryLevel]):
    failed = serializers.IntegerField()
    asked = serializers.IntegerField()
    failed_share = serializers.FloatField(allow_null=True)
    quality = serializers.FloatField(allow_null=True)


class ScoresSerializer(serializers.Serializer[Scores]):
    """Times are seconds; shares are of 1, null where there is nothing to share."""

    window = RangeSerializer()
    tp = serializers.FloatField(source="durations.tp.total_seconds")
    fp = serializers.FloatField(source="durations.fp.total_seconds")
    fn = serializers.FloatField(source="durations.fn.total_seconds")
    precision = serializers.FloatField(source="durations.precision", allow_null=True)
    recall = serializers.FloatField(source="durations.recall", allow_null=True)
    incident_share = serializers.FloatField(allow_null=True, help_text="Of the monitored time; published as the score.")
    quality = serializers.FloatField(allow_null=True, help_text="1 - incident_share")
    queries = QueryLevelSerializer()
    unsettled = serializers.ListField(child=serializers.IntegerField(), help_text="Open incidents that count to now.")
    datasets = DatasetScoreSerializer(many=True)
