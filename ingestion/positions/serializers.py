"""What the API shows of where copies stand in their changelog, and how it is asked to set that."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from ingestion.domain.lag import LagCounts
from ingestion.models import CaptureHour, TapServer
from ingestion.positions.places import CopyPlace, PartitionPlace
from ingestion.positions.requests import MAX_REASON_LENGTH
from lakehub.kernel.interval import BEGINNING, FOREVER


class PartitionPlaceSerializer(serializers.Serializer[PartitionPlace]):
    topic = serializers.CharField(help_text="Of the events, or the one beside it with what could not be encoded.")
    partition = serializers.CharField()
    offset = serializers.IntegerField(help_text="Of the next message to read.")
    least = serializers.IntegerField(help_text="The earliest offset that the position may be set to.")
    end = serializers.IntegerField(help_text="Of the message to come.")
    waiting = serializers.IntegerField(help_text="How many lie between: a few of them may be notes of the log.")
    oldest_at = serializers.DateTimeField(
        allow_null=True, help_text="When the first that waits was logged; null: none waits."
    )


class CopyPlaceSerializer(serializers.Serializer[CopyPlace]):
    data_center = serializers.CharField(source="copy.data_center.name")
    instant = serializers.CharField(help_text="Of the commit that carries the position.")
    waiting = serializers.IntegerField()
    oldest_at = serializers.DateTimeField(allow_null=True)
    partitions = PartitionPlaceSerializer(many=True)


class BinlogPlaceSerializer(serializers.Serializer[Any]):
    """Empty where nothing was told yet."""

    file = serializers.CharField(default="")
    offset = serializers.IntegerField(default=0, help_text="Up to where the file was read.")
    begun = serializers.CharField(default="", help_text="GTID of the transaction that is being taken; empty: none.")
    taken = serializers.DictField(
        child=serializers.IntegerField(), default=dict, help_text="How many of its rows were taken, by topic."
    )


class TapPlaceSerializer(serializers.Serializer[TapServer]):
    """Where the tap of the server stands in the binlog, as it was told last: every ten seconds."""

    address = serializers.CharField()
    gtid = serializers.CharField(source="position", help_text="Of the last transaction that was taken whole.")
    place = BinlogPlaceSerializer()
    event_at = serializers.DateTimeField(allow_null=True, help_text="When the last transaction was committed there.")
    caught_up_at = serializers.DateTimeField(allow_null=True)
    seen_at = serializers.DateTimeField(allow_null=True, help_text="When the tap heard from the server last.")
    error = serializers.CharField(help_text="Why it is not tapped now; empty: it is.")


class PositionsSerializer(serializers.Serializer[Any]):
    tap = TapPlaceSerializer(allow_null=True, help_text="Null: no tap has taken the dataset on.")
    copies = CopyPlaceSerializer(many=True)
    problems = serializers.DictField(
        child=serializers.CharField(), help_text="By data center, why the place of a copy is not known."
    )


class CaptureHourSerializer(serializers.Serializer[CaptureHour]):
    """An hour of a copy, in UTC. Lags are rounded up by a fifth at most; null: no change came."""

    data_center = serializers.CharField(source="copy.data_center.name")
    start = serializers.DateTimeField()
    changes = serializers.SerializerMethodField(help_text="That came to the lake in this hour.")
    lag_p50_s = serializers.SerializerMethodField(help_text="From the commit at the source to the one in the lake.")
    lag_p95_s = serializers.SerializerMethodField()
    lag_longest_s = serializers.SerializerMethodField()
    read = serializers.IntegerField(
        help_text="Messages that were logged in this hour, and that commits of the copy have read: applied, superseded, redelivered or errors."
    )
    logged = serializers.IntegerField(allow_null=True, help_text="Messages that the log has of it; null: not counted.")
    at_source = serializers.IntegerField(
        source="source",
        allow_null=True,
        help_text="Messages expected in this hour: rows that the tap counted at the source, plus mended ones. Null if unknown.",
    )
    is_partial = serializers.BooleanField(
        help_text="The copy was loaded or put elsewhere, so it need not have read each message of the hour."
    )

    def get_changes(self, hour: CaptureHour) -> int:
        return LagCounts.from_json(hour.lags).events

    def get_lag_p50_s(self, hour: CaptureHour) -> float | None:
        return _lag_s(hour, 0.5)

    def get_lag_p95_s(self, hour: CaptureHour) -> float | None:
        return _lag_s(hour, 0.95)

    def get_lag_longest_s(self, hour: CaptureHour) -> float | None:
        return _lag_s(hour, 1.0)


def _lag_s(hour: CaptureHour, share: float) -> float | None:
    span = LagCounts.from_json(hour.lags).quantile(share)
    return None if span is None else round(span.total_seconds(), 1)


class SetPositionSerializer(serializers.Serializer[Any]):
    """One of `offsets`, `time` and `earliest`."""

    data_center = serializers.CharField(default="", allow_blank=True, max_length=100)
    offsets = serializers.DictField(
        child=serializers.IntegerField(min_value=0, max_value=2**63 - 1),
        default=dict,
        help_text="By partition of the topic the offset to read on from; others stay.",
    )
    time = serializers.DateTimeField(
        default=None, allow_null=True, help_text="The first messages that were logged then or later."
    )
    earliest = serializers.BooleanField(default=False, help_text="The earliest place that is possible.")
    may_skip = serializers.BooleanField(
        default=False,
        help_text="You know that changes are left out, and that the copy is incomplete until it is loaded again.",
    )
    why = serializers.CharField(max_length=MAX_REASON_LENGTH, help_text="Kept in the audit log.")

    def validate_time(self, time: Any) -> Any:
        if time is not None and not BEGINNING <= time < FOREVER:
            raise serializers.ValidationError("Give a time that a message can have.")
        return time
