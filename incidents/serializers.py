"""What the REST API says of incidents and the gate."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework import serializers

from incidents.domain.gate import Cause
from incidents.domain.lifecycle import State, moves_from
from incidents.domain.scores import QueryLevel
from incidents.gate import Reply
from incidents.models import Incident, IncidentEvent, Message, Span
from incidents.scoring import DatasetScore, Scores
from lakehub.kernel.interval import Interval


class RangeSerializer(serializers.Serializer[Interval]):
    """Half-open: `[start, end)`."""

    start = serializers.DateTimeField()
    end = serializers.DateTimeField()


class CauseSerializer(serializers.Serializer[Cause]):
    verdict = serializers.CharField()
    reason = serializers.CharField()
    test = serializers.CharField()
    category = serializers.CharField()
    incident = serializers.IntegerField(allow_null=True)
    eta = serializers.DateTimeField(allow_null=True)
    ranges = RangeSerializer(many=True)
    blocks = serializers.BooleanField()


class AnswerSerializer(serializers.Serializer[dict[str, Any]]):
    dataset = serializers.CharField()
    data_center = serializers.CharField()
    range = RangeSerializer()
    consumer = serializers.CharField()
    verdict = serializers.ChoiceField(["pass", "warn", "unknown", "fail"])
    allowed = serializers.BooleanField(help_text="What the consumer's policy makes of the verdict and its reasons.")
    policy = serializers.CharField()
    reasons = CauseSerializer(many=True, help_text="Worst first.")
    incidents = serializers.ListField(child=serializers.IntegerField())
    recovery_eta = serializers.DateTimeField(allow_null=True)
    retry_after = serializers.FloatField(
        allow_null=True, help_text="Seconds until asking again may help; null where allowed."
    )
    answered_at = serializers.DateTimeField()


def answer_of(reply: Reply) -> dict[str, Any]:
    """The reply as AnswerSerializer shows it."""
    answer, wait = reply.answer, reply.answer.retry_after(now=reply.at)
    etas = [cause.eta for cause in answer.blockers if cause.eta is not None]
    return {
        "dataset": reply.copy.dataset.name,
        "data_center": reply.copy.data_center.name,
        "range": reply.question.wanted,
        "consumer": reply.question.consumer,
        "verdict": answer.verdict.value,
        "allowed": answer.allowed,
        "policy": reply.policy.name,
        "reasons": [_cause(cause, blocks=cause in answer.blockers) for cause in answer.causes],
        "incidents": sorted({cause.incident for cause in answer.causes if cause.incident is not None}),
        "recovery_eta": min(etas, default=None),
        "retry_after": None if wait is None else wait.total_seconds(),
        "answered_at": reply.at,
    }


def _cause(cause: Cause, *, blocks: bool) -> dict[str, Any]:
    return {
        "verdict": cause.verdict.value,
        "reason": cause.reason,
        "test": cause.test,
        "category": cause.category,
        "incident": cause.incident,
        "eta": cause.eta,
        "ranges": cause.ranges,
        "blocks": blocks,
    }


class InputSerializer(serializers.Serializer[dict[str, str]]):
    """One input of a job."""

    dataset = serializers.CharField(max_length=63)
    to = serializers.CharField(max_length=40)
    dc = serializers.CharField(max_length=63, required=False, default="", allow_blank=True)

    def get_fields(self) -> dict[str, Any]:
        # `from` is a word of Python, so it cannot be an attribute.
        return {**super().get_fields(), "from": serializers.CharField(max_length=40)}


class InputsSerializer(serializers.Serializer[dict[str, Any]]):
    """All the inputs of a job in one question."""

    inputs = InputSerializer(many=True, allow_empty=False)
    request_id = serializers.CharField(max_length=100, required=False, default="", allow_blank=True)


class AnswersSerializer(serializers.Serializer[dict[str, Any]]):
    verdict = serializers.CharField(help_text="The worst of the answers.")
    allowed = serializers.BooleanField(help_text="Every input may be read.")
    retry_after = serializers.FloatField(allow_null=True)
    answers = AnswerSerializer(many=True)


class SpanSerializer(serializers.ModelSerializer[Span]):
    data_center = serializers.CharField(source="copy.data_center.name")
    test = serializers.CharField(source="unit.test.title")

    class Meta:
        model = Span
        fields: ClassVar = ["unit", "test", "data_center", "start", "end", "began_at", "ended_at"]


class EventSerializer(serializers.ModelSerializer[IncidentEvent]):
    class Meta:
        model = IncidentEvent
        fields: ClassVar = ["at", "kind", "actor", "was", "becomes", "text", "detail"]


class MessageSerializer(serializers.ModelSerializer[Message]):
    class Meta:
        model = Message
        fields: ClassVar = ["occasion", "channel", "state", "why", "held_by", "created_at", "sent_at", "error"]


class IncidentSerializer(serializers.ModelSerializer[Incident]):
    """A line of the list. `revision` names the state that you saw: send it with an action to be told if it changed."""

    dataset = serializers.CharField(source="dataset.name")
    assignee = serializers.CharField(source="assignee.username", default=None)

    class Meta:
        model = Incident
        fields: ClassVar = [
            "id",
            "dataset",
            "category",
            "state",
            "title",
            "opened_at",
            "acknowledged_at",
            "resolved_at",
            "resolution",
            "false_positive",
            "resolved_why",
            "reported",
            "assignee",
            "eta",
            "root_cause",
            "root_cause_text",
            "backfill",
            "snoozed_until",
            "merged_into",
            "revision",
        ]


class IncidentDetailSerializer(IncidentSerializer):
    spans = SpanSerializer(many=True)
    events = EventSerializer(many=True)
    messages = MessageSerializer(many=True)
    moves = serializers.SerializerMethodField()

    class Meta(IncidentSerializer.Meta):
        fields: ClassVar = [*IncidentSerializer.Meta.fields, "moves", "spans", "events", "messages"]

    def get_moves(self, incident: Incident) -> list[str]:
        return [move.value for move in moves_from(State(incident.state), reported=incident.reported)]


class ActionSerializer(serializers.Serializer[dict[str, Any]]):
    """What every action may be sent: the `revision` that it was decided on."""

    revision = serializers.IntegerField(required=False, allow_null=True, default=None, min_value=0)


class AnnotateSerializer(ActionSerializer):
    eta = serializers.DateTimeField(required=False, allow_null=True)
    root_cause = serializers.CharField(required=False, allow_blank=True, max_length=40)
    root_cause_text = serializers.CharField(required=False, allow_blank=True, max_length=5000)
    backfill = serializers.CharField(required=False, allow_blank=True, max_length=16)
    text = serializers.CharField(required=False, default="", allow_blank=True, max_length=5000)


class CommentSerializer(serializers.Serializer[dict[str, str]]):
    text = serializers.CharField(max_length=5000)


class AssignSerializer(ActionSerializer):
    assignee = serializers.CharField(allow_blank=True, max_length=150, help_text="A user name; empty: nobody.")


class SnoozeSerializer(ActionSerializer):
    until = serializers.DateTimeField(allow_null=True, help_text="null: no longer.")


class ResolveSerializer(ActionSerializer):
    resolution = serializers.CharField(help_text="false_positive or accepted; for a report declared_fixed.")
    false_positive = serializers.CharField(required=False, default="", allow_blank=True)
    why = serializers.CharField(required=False, default="", allow_blank=True, max_length=5000)


class ReasonSerializer(ActionSerializer):
    why = serializers.CharField(required=False, default="", allow_blank=True, max_length=5000)


class MergeSerializer(serializers.Serializer[dict[str, int]]):
    other = serializers.IntegerField(help_text="The incident whose spans come here.")


class SplitSerializer(serializers.Serializer[dict[str, Any]]):
    units = serializers.ListField(child=serializers.IntegerField(), allow_empty=False)


class ReportSerializer(serializers.Serializer[dict[str, Any]]):
    """What a person says is wrong."""

    dataset = serializers.CharField(max_length=63)
    category = serializers.CharField(max_length=20)
    to = serializers.CharField(max_length=40)
    dc = serializers.CharField(max_length=63, required=False, default="", allow_blank=True)
    text = serializers.CharField(max_length=5000)
    occurred_at = serializers.DateTimeField(required=False, allow_null=True, default=None)

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "from": serializers.CharField(max_length=40)}


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
