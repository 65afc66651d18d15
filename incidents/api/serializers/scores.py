"""What the REST API says of scores."""

from __future__ import annotations

from datetime import timedelta

from rest_framework import serializers

from incidents.api.serializers.ranges import RangeSerializer
from incidents.domain.incident.resolution import FalsePositive
from incidents.domain.scores.noisy_tests import Advice
from incidents.domain.scores.quality_levels import QueryLevel
from incidents.domain.scores.response_times import ResponseTime
from incidents.scores.noisy_tests import NoisyTest
from incidents.scores.response_times import ResponseTimes
from incidents.scores.scoring import GROUPINGS, Score

MAX_NAMED = 200


class Seconds(serializers.FloatField):
    """A length of time."""

    def to_representation(self, value: timedelta) -> float:  # type: ignore[override]  # what is shown is a timedelta
        return value.total_seconds()


class QueryLevelSerializer(serializers.Serializer[QueryLevel]):
    failed = serializers.IntegerField()
    asked = serializers.IntegerField()
    failed_share = serializers.FloatField(allow_null=True)
    quality = serializers.FloatField(allow_null=True)


class ScoreSerializer(serializers.Serializer[Score]):
    """Times are seconds; shares are of 1, null where there is nothing to share."""

    tp = Seconds(source="durations.tp", help_text="Detected, and real.")
    fp = Seconds(source="durations.fp", help_text="Detected, and forced to be false.")
    fn = Seconds(source="durations.fn", help_text="Reported by users, and not detected.")
    precision = serializers.FloatField(source="durations.precision", allow_null=True, help_text="tp / (tp + fp)")
    recall = serializers.FloatField(source="durations.recall", allow_null=True, help_text="tp / (tp + fn)")
    tp_incidents = serializers.IntegerField(source="real")
    fp_incidents = serializers.IntegerField(source="false")
    fn_incidents = serializers.IntegerField(source="missed")
    unsettled_incidents = serializers.SerializerMethodField(
        help_text="Of those the open ones: they count to the end of the window."
    )
    incident_share = serializers.FloatField(allow_null=True, help_text="Of the monitored time; published as the score.")
    quality = serializers.FloatField(allow_null=True, help_text="1 - incident_share; null of a test.")
    queries = QueryLevelSerializer(allow_null=True, help_text="Null of a category and of a test.")

    def get_unsettled_incidents(self, score: Score) -> int:
        return len(score.unsettled)


class GroupSerializer(ScoreSerializer):
    name = serializers.CharField(help_text="The team, tier, category or dataset, or the title of the test.")
    dataset = serializers.CharField(help_text="Whose it is: of a dataset or a test.", allow_blank=True)
    test = serializers.CharField(help_text="The key of the test.", allow_blank=True)


class ReactionSerializer(serializers.Serializer[ResponseTime]):
    """Seconds; null where there is no incident to measure."""

    incidents = serializers.IntegerField(source="n")
    waiting = serializers.IntegerField(help_text="So many more have not got there yet, and are in none of the three.")
    mean = Seconds(allow_null=True)
    median = Seconds(allow_null=True)
    p90 = Seconds(allow_null=True)


class ReactionsSerializer(serializers.Serializer[ResponseTimes]):
    detect = ReactionSerializer(help_text="From the first failure, or what a reporter says, to the incident.")
    acknowledge = ReactionSerializer(help_text="From there until somebody acknowledged it.")
    resolve = ReactionSerializer(help_text="From its opening until it was resolved.")


class ScoresSerializer(ScoreSerializer):
    """The whole of what was asked for, and with `by` a page of its groups."""

    window = RangeSerializer()
    unsettled = serializers.ListField(
        child=serializers.IntegerField(), help_text=f"The numbers of the first {MAX_NAMED} open incidents."
    )
    times = ReactionsSerializer()
    by = serializers.ChoiceField(choices=["", *GROUPINGS], allow_blank=True)
    groups_count = serializers.IntegerField(help_text="Of all pages.")
    groups = GroupSerializer(many=True)


class NoisySerializer(serializers.Serializer[NoisyTest]):
    """A test that cried wolf."""

    dataset = serializers.CharField(source="score.dataset")
    test = serializers.CharField(source="score.test")
    title = serializers.CharField(source="score.name")
    team = serializers.CharField()
    tier = serializers.IntegerField()
    advice = serializers.ChoiceField(choices=[advice.value for advice in Advice])
    because = serializers.CharField()
    false_positives = serializers.SerializerMethodField()
    fp_incidents = serializers.IntegerField(source="score.false")
    tp_incidents = serializers.IntegerField(source="score.real")
    fp = Seconds(source="score.durations.fp", help_text="Seconds.")
    tp = Seconds(source="score.durations.tp", help_text="Seconds.")
    precision = serializers.FloatField(source="score.durations.precision", allow_null=True)

    def get_false_positives(self, noisy: NoisyTest) -> dict[str, int]:
        """How many of each kind: wrong_test, wrong_sla, planned_change."""
        return {kind.value: noisy.noise.kinds.get(kind, 0) for kind in FalsePositive}
