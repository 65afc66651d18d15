"""What the REST API says of incidents."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from incidents.domain.incident.state_machine import IncidentState, allowed_transitions
from incidents.models import Delivery, Incident, IncidentEvent, Message, MessageState, Span
from incidents.record.likely_cause import CauseKind, LikelyCause
from incidents.record.upstream import open_upstream_incidents


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


class LikelyCauseSerializer(serializers.Serializer[LikelyCause]):
    """A guess: the first of what happened between the last pass and now, nearest to the source first."""

    kind = serializers.ChoiceField([kind.value for kind in CauseKind])
    text = serializers.CharField()
    link = serializers.CharField(allow_blank=True, help_text="A page here, from the first slash on.")


class AttemptSerializer(serializers.ModelSerializer[Delivery]):
    class Meta:
        model = Delivery
        fields: ClassVar = ["at", "ok", "status", "error", "ms"]


class MessageSerializer(serializers.ModelSerializer[Message]):
    address = serializers.CharField(source="shown_address", help_text="Without what is secret in it.")
    told_because = serializers.CharField(source="recipient_reason", max_length=200, required=False)
    deliveries = AttemptSerializer(many=True, help_text="Newest first.")

    class Meta:
        model = Message
        fields: ClassVar = [
            *("occasion", "channel", "address", "told_because", "subject", "state", "why", "held_by"),
            *("created_at", "sent_at", "error", "deliveries"),
        ]


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
            "snoozed_until_worse",
            "snoozed_failures",
            "merged_into",
            "revision",
        ]


class IncidentDetailSerializer(IncidentSerializer):
    spans = SpanSerializer(many=True)
    events = EventSerializer(many=True)
    messages = MessageSerializer(many=True)
    moves = serializers.SerializerMethodField()
    likely_cause = serializers.SerializerMethodField()
    suppressed_by = serializers.SerializerMethodField()
    upstream = serializers.SerializerMethodField()

    class Meta(IncidentSerializer.Meta):
        fields: ClassVar = [
            *IncidentSerializer.Meta.fields,
            *("moves", "likely_cause", "suppressed_by", "upstream", "spans", "events", "messages"),
        ]

    @extend_schema_field(LikelyCauseSerializer)
    def get_likely_cause(self, incident: Incident) -> dict[str, Any]:
        return dict(LikelyCauseSerializer(self.context["cause"]).data)

    def get_suppressed_by(self, incident: Incident) -> int | None:
        """The incident that holds a message of this one now."""
        held_messages = (
            message for message in incident.messages.all() if message.state == MessageState.HELD and message.held_by_id
        )
        return next((message.held_by_id for message in held_messages), None)

    def get_upstream(self, incident: Incident) -> list[int]:
        """Open incidents of what the dataset is made from, the nearest first; none where this one is over."""
        return (
            [upstream.incident.pk for upstream in open_upstream_incidents(incident.dataset)]
            if incident.resolved_at is None
            else []
        )

    def get_moves(self, incident: Incident) -> list[str]:
        return [move.value for move in allowed_transitions(IncidentState(incident.state), reported=incident.reported)]
