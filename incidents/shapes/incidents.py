"""What the REST API says of incidents."""

from __future__ import annotations

from typing import ClassVar

from rest_framework import serializers

from incidents.domain.lifecycle import State, moves_from
from incidents.models import Incident, IncidentEvent, Message, Span


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
    assignee = serializers.CharField(source="assignee.username", default=None, allow_null=True)

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
            "backfill_run",
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
