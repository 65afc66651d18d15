"""What the REST API says of the gate."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from incidents.domain.gate import Cause
from incidents.gate import Reply
from incidents.shapes.common import RangeSerializer


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
