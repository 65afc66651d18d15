"""What the REST API is sent and says of messages: the words of a team, trials of an address, how deliveries went."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework import serializers

from incidents.domain.alerting.message_template import MAX_SUBJECT_LENGTH
from incidents.models import Delivery
from incidents.notifications.templates import MAX_BODY_LENGTH, OCCASIONS


class WordsSerializer(serializers.Serializer[Any]):
    """What a message says on one occasion, with variables in braces."""

    occasion = serializers.ChoiceField(list(OCCASIONS))
    subject = serializers.CharField()
    body = serializers.CharField()
    own = serializers.BooleanField(help_text="false: the words for `others`, or Lakehub's own.")
    changed_at = serializers.DateTimeField(allow_null=True)
    changed_by = serializers.CharField(allow_blank=True)


class PutWordsSerializer(serializers.Serializer[dict[str, Any]]):
    """Empty: Lakehub's own."""

    subject = serializers.CharField(required=False, default="", allow_blank=True, max_length=MAX_SUBJECT_LENGTH)
    body = serializers.CharField(required=False, default="", allow_blank=True, max_length=MAX_BODY_LENGTH)


class PreviewSerializer(serializers.Serializer[Any]):
    subject = serializers.CharField()
    body = serializers.CharField()
    incident = serializers.IntegerField(allow_null=True, help_text="The one that it reads of; null: an example.")


class VariableSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    what = serializers.CharField()


class TrialSerializer(serializers.Serializer[dict[str, Any]]):
    channel = serializers.CharField(max_length=20)
    address = serializers.CharField(max_length=500)


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """One attempt to send something."""

    incident = serializers.IntegerField(source="message.incident_id", default=None, allow_null=True)

    class Meta:
        model = Delivery
        fields: ClassVar = [
            *("id", "at", "incident", "message", "occasion", "channel", "address", "ok", "status", "error", "ms"),
        ]
