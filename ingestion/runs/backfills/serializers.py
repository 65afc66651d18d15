"""The bodies of what the API says of backfills."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from ingestion.domain.backfills.chunks import DEFAULT_CHUNK_SIZE, MAX_CHUNK_SIZE, MAX_PARTITIONS
from ingestion.domain.backfills.states import ACTIONS
from ingestion.models import BackfillState, ChunkState
from ingestion.runs.backfills.progress import MAX_CHUNKS_SHOWN, BackfillProgress, failed_chunks, running_chunk

_MAX_NAME = 500


class ChunkedBackfillRequestSerializer(serializers.Serializer[Any]):
    data_center = serializers.CharField(max_length=63, default="", allow_blank=True)
    first = serializers.CharField(
        max_length=_MAX_NAME,
        default="",
        allow_blank=True,
        help_text="The name of the first partition of a range, such as 2013-01-01.",
    )
    last = serializers.CharField(
        max_length=_MAX_NAME, default="", allow_blank=True, help_text="The name of the last one, which is included."
    )
    partitions = serializers.ListField(
        child=serializers.CharField(max_length=_MAX_NAME),
        default=list,
        max_length=MAX_PARTITIONS,
        help_text=f"Names instead of a range; {MAX_PARTITIONS:,} at most.",
    )
    chunk_size = serializers.IntegerField(
        default=DEFAULT_CHUNK_SIZE,
        min_value=1,
        max_value=MAX_CHUNK_SIZE,
        help_text="Partitions that one run recomputes, in one commit.",
    )


class BackfillActionSerializer(serializers.Serializer[Any]):
    action = serializers.ChoiceField(
        ACTIONS, help_text="`retry`: the chunks that failed, of a backfill that has ended so."
    )


class ChunkCountsSerializer(serializers.Serializer[Any]):
    waiting = serializers.IntegerField()
    running = serializers.IntegerField()
    succeeded = serializers.IntegerField()
    failed = serializers.IntegerField()


class ChunkedBackfillSerializer(serializers.Serializer[BackfillProgress]):
    """Partitions of a copy that are recomputed, chunk by chunk."""

    id = serializers.IntegerField(source="backfill.pk")
    data_center = serializers.CharField(source="backfill.copy.data_center.name")
    state = serializers.ChoiceField(BackfillState.choices, source="backfill.state")
    first = serializers.CharField(source="backfill.first")
    last = serializers.CharField(source="backfill.last")
    chunk_size = serializers.IntegerField(source="backfill.chunk_size")
    asked_by = serializers.CharField(source="backfill.asked_by")
    asked_at = serializers.DateTimeField(source="backfill.asked_at")
    ended_at = serializers.DateTimeField(source="backfill.ended_at", allow_null=True)
    error = serializers.CharField(source="backfill.error", help_text="Why it has ended otherwise than done.")
    chunks = ChunkCountsSerializer(help_text="How many, by state.")
    partitions = ChunkCountsSerializer(help_text="How many, by the state of their chunk.")
    rows = serializers.IntegerField(help_text="New, changed and deleted.")
    time_left_s = serializers.SerializerMethodField(
        help_text="By what the chunks that are done took; null: none is done yet, or it does not run."
    )

    def get_time_left_s(self, progress: BackfillProgress) -> float | None:
        return None if progress.time_left is None else progress.time_left.total_seconds()


class ChunkSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField(help_text="From 1, in the order of the partitions.")
    state = serializers.ChoiceField(ChunkState.choices)
    partitions = serializers.ListField(child=serializers.CharField())
    run = serializers.IntegerField(source="run_id", allow_null=True)
    error = serializers.CharField()


class ChunkedBackfillDetailSerializer(ChunkedBackfillSerializer):
    """With the chunk that is at work, and those that failed."""

    running_chunk = serializers.SerializerMethodField(help_text="Null: none is at work.")
    failed_chunks = serializers.SerializerMethodField(help_text=f"The first {MAX_CHUNKS_SHOWN}.")

    @extend_schema_field(ChunkSerializer(allow_null=True))
    def get_running_chunk(self, progress: BackfillProgress) -> Any:
        chunk = running_chunk(progress.backfill)
        return None if chunk is None else ChunkSerializer(chunk).data

    @extend_schema_field(ChunkSerializer(many=True))
    def get_failed_chunks(self, progress: BackfillProgress) -> Any:
        return ChunkSerializer(failed_chunks(progress.backfill), many=True).data
