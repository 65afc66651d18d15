"""What the REST API says of the gate."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from rest_framework import serializers

from incidents.api.serializers.ranges import RangeSerializer
from incidents.domain.gate.causes import Cause
from incidents.domain.gate.decide import Override
from incidents.domain.gate.sql_reads import DIALECTS, MAX_SQL_LENGTH, TableReads
from incidents.gate.answer import GateReply
from incidents.gate.copies import Pause, pause_of
from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import worst_verdict


class CauseSerializer(serializers.Serializer[Cause]):
    verdict = serializers.CharField()
    reason = serializers.CharField()
    test = serializers.CharField()
    category = serializers.CharField()
    incident = serializers.IntegerField(allow_null=True)
    eta = serializers.DateTimeField(allow_null=True)
    changed_at = serializers.DateTimeField(
        allow_null=True, help_text="When the data was last changed, where it has not passed since."
    )
    retest_due_at = serializers.DateTimeField(allow_null=True, help_text="When it is tested again because of that.")
    ranges = RangeSerializer(many=True)
    blocks = serializers.BooleanField()


class OverrideInForceSerializer(serializers.Serializer[Override]):
    """A person's decision that what is wrong in this range does not block."""

    id = serializers.IntegerField()
    range = RangeSerializer()
    by = serializers.CharField()
    reason = serializers.CharField()
    expires_at = serializers.DateTimeField()


class PauseSerializer(serializers.Serializer[Pause]):
    since = serializers.DateTimeField(allow_null=True)
    why = serializers.CharField()


class AnswerSerializer(serializers.Serializer[dict[str, Any]]):
    """Only describes: `answer_to_json` is rendered as it is, because this is asked hundreds of times a second."""

    dataset = serializers.CharField()
    data_center = serializers.CharField()
    range = RangeSerializer()
    consumer = serializers.CharField()
    verdict = serializers.ChoiceField(["pass", "warn", "unknown", "fail"])
    allowed = serializers.BooleanField(help_text="What the consumer's policy makes of the verdict and its reasons.")
    would_allow = serializers.BooleanField(help_text="The same without the shadow: a shadow policy allows everything.")
    shadow = serializers.BooleanField(help_text="The policy only watches.")
    policy = serializers.CharField()
    reasons = CauseSerializer(many=True, help_text="Worst first.")
    overrides = OverrideInForceSerializer(many=True, help_text="In force and about this range.")
    incidents = serializers.ListField(child=serializers.IntegerField())
    recovery_eta = serializers.DateTimeField(allow_null=True)
    retry_after = serializers.FloatField(
        allow_null=True, help_text="Seconds until asking again may help; null where allowed."
    )
    paused = PauseSerializer(
        allow_null=True,
        help_text="Ingestion of the dataset is paused by hand: what has come is judged as ever, and nothing new comes until it is resumed.",
    )
    answered_at = serializers.DateTimeField()


def answer_to_json(reply: GateReply) -> dict[str, Any]:
    """The reply as AnswerSerializer describes it and as it is sent: instants are texts already."""
    answer, wait = reply.answer, reply.answer.retry_after(now=reply.at)
    blockers = set(map(id, answer.blockers))
    etas = [cause.eta for cause in answer.blockers if cause.eta is not None]
    return {
        "dataset": reply.copy.dataset.name,
        "data_center": reply.copy.data_center.name,
        "range": _range_json(reply.question.wanted),
        "consumer": reply.question.consumer,
        "verdict": answer.verdict.value,
        "allowed": answer.allowed,
        "would_allow": answer.would_allow,
        "shadow": reply.policy.shadow,
        "policy": reply.policy.name,
        "reasons": [_cause_json(cause, blocks=id(cause) in blockers) for cause in answer.causes],
        "overrides": [_override_json(override) for override in answer.overrides],
        "incidents": sorted({cause.incident for cause in answer.causes if cause.incident is not None}),
        "recovery_eta": _instant_text(min(etas, default=None)),
        "retry_after": None if wait is None else wait.total_seconds(),
        "paused": _pause_json(pause_of(reply.copy)),
        "answered_at": _instant_text(reply.at),
    }


def _pause_json(pause: Pause | None) -> dict[str, Any] | None:
    return None if pause is None else {"since": _instant_text(pause.since), "why": pause.why}


def _cause_json(cause: Cause, *, blocks: bool) -> dict[str, Any]:
    return {
        "verdict": cause.verdict.value,
        "reason": cause.reason,
        "test": cause.test,
        "category": cause.category,
        "incident": cause.incident,
        "eta": _instant_text(cause.eta),
        "changed_at": _instant_text(cause.changed_at),
        "retest_due_at": _instant_text(cause.retest_due_at),
        "ranges": [_range_json(piece) for piece in cause.ranges],
        "blocks": blocks,
    }


def _override_json(override: Override) -> dict[str, Any]:
    return {
        "id": override.number,
        "range": _range_json(override.data),
        "by": override.by,
        "reason": override.reason,
        "expires_at": _instant_text(override.expires_at),
    }


def _range_json(data: Interval) -> dict[str, Any]:
    return {"start": _instant_text(data.start), "end": _instant_text(data.end)}


@lru_cache(maxsize=4096)
def _instant_text(instant: datetime | None) -> str | None:
    """As REST framework writes it. One answer holds the same few many times, and the next one most of them again."""
    return None if instant is None else instant.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


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
    would_allow = serializers.BooleanField(help_text="Every input might be, were no policy in the shadow.")
    retry_after = serializers.FloatField(allow_null=True, help_text="Of the last input to recover.")
    answers = AnswerSerializer(many=True)


def answers_to_json(replies: Iterable[GateReply]) -> dict[str, Any]:
    """The replies as AnswersSerializer describes them. The last input to recover decides when asking again may help."""
    all_replies = list(replies)
    waits = [
        wait.total_seconds() for reply in all_replies if (wait := reply.answer.retry_after(now=reply.at)) is not None
    ]
    return {
        "verdict": worst_verdict(reply.answer.verdict for reply in all_replies).value,
        "allowed": all(reply.answer.allowed for reply in all_replies),
        "would_allow": all(reply.answer.would_allow for reply in all_replies),
        "retry_after": max(waits, default=None),
        "answers": [answer_to_json(reply) for reply in all_replies],
    }


class QuerySerializer(serializers.Serializer[dict[str, Any]]):
    """A query that a job is about to run. It is looked at, never run."""

    sql = serializers.CharField(max_length=MAX_SQL_LENGTH)
    dialect = serializers.ChoiceField(DIALECTS, required=False, default="ansi")
    dc = serializers.CharField(max_length=63, required=False, default="", allow_blank=True)
    timezone = serializers.CharField(
        max_length=64,
        required=False,
        default="",
        allow_blank=True,
        help_text="The session's: times without an offset are its. Left out, they are taken to be any zone's.",
    )
    leave_out = serializers.ListField(
        child=serializers.CharField(max_length=200),
        required=False,
        default=list,
        max_length=50,
        help_text="Tables that are no datasets, and that the asker answers for.",
    )
    request_id = serializers.CharField(max_length=100, required=False, default="", allow_blank=True)


class ReadsSerializer(serializers.Serializer[TableReads]):
    """What the query reads of a dataset."""

    dataset = serializers.CharField()
    ranges = RangeSerializer(many=True)
    bounded = serializers.BooleanField(help_text="False: it is asked for as a whole.")
    why = serializers.CharField()


class QueryAnswersSerializer(AnswersSerializer):
    reads = ReadsSerializer(many=True)
    left_out = serializers.ListField(child=serializers.CharField())


def reads_to_json(table_reads: TableReads) -> dict[str, Any]:
    ranges = [_range_json(piece) for piece in table_reads.ranges]
    return {"dataset": table_reads.dataset, "ranges": ranges, "bounded": table_reads.bounded, "why": table_reads.why}


class MetricAnswersSerializer(AnswersSerializer):
    metric = serializers.CharField()
