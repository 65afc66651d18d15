"""What the API shows of ingestion."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from ingestion.lake import error_rows, readers
from ingestion.models import BlockedInput, Commit, JobKind, JobRun, ReaderPosition
from ingestion.runs import job_runs
from ingestion.runs.source_use.kept_loads import KeptLoad
from lakehub.accounts.permissions import teams_permitting
from lakehub.catalog.datasets.changes import MAX_REASON_LENGTH
from lakehub.catalog.models import DatasetCopy

SHOWS_KEYS = {"shows_keys": True}
"""The context of JobRunSerializer for the operator at the terminal."""
_JSON_OBJECT = {"type": "object", "additionalProperties": {}}
_PARAMS = "What the run was asked for. The `keys` of a delete are for members of the owning team."
_TIME_LEFT = (
    "Seconds that the phase of a run at work still takes, counted from `progress_at`; null where that is not known."
)
_REPORT = "What the job reported, without its checkpoint. `output.examples` names records by their keys: for members of the owning team."


class BlockedInputSerializer(serializers.ModelSerializer[BlockedInput]):
    """An input that a run waits for: what the gate says of the range that it reads."""

    dataset = serializers.CharField(source="copy.dataset.name", read_only=True)
    data_center = serializers.CharField(source="copy.data_center.name", read_only=True)
    incidents = serializers.ListField(child=serializers.IntegerField(), read_only=True)

    class Meta:
        model = BlockedInput
        fields: ClassVar = ["dataset", "data_center", "start", "end", "verdict", "reason", "incidents", "retry_at"]
        read_only_fields = fields


class JobRunSerializer(serializers.ModelSerializer[JobRun]):
    """A job run. Keys of records are rows of data: only members of the owning team see them."""

    dataset = serializers.CharField(source="copy.dataset.name", read_only=True)
    data_center = serializers.CharField(source="copy.data_center.name", read_only=True)
    time_left_s = serializers.SerializerMethodField(help_text=_TIME_LEFT)
    params = serializers.SerializerMethodField(help_text=_PARAMS)
    report = serializers.SerializerMethodField(help_text=_REPORT)
    blocked_by = BlockedInputSerializer(many=True, read_only=True)

    class Meta:
        model = JobRun
        fields: ClassVar = [
            "id",
            "key",
            "dataset",
            "data_center",
            "kind",
            "params",
            "asked_by",
            "state",
            "due_at",
            "attempt",
            "started_at",
            "ended_at",
            "progress",
            "progress_at",
            "time_left_s",
            "report",
            "error",
            "waits_since",
            "blocked_by",
            "regardless_by",
            "regardless_why",
        ]
        read_only_fields = fields

    def get_time_left_s(self, run: JobRun) -> int | None:
        left = job_runs.time_left(run)
        return None if left is None else round(left.total_seconds())

    @extend_schema_field(_JSON_OBJECT)
    def get_params(self, run: JobRun) -> dict[str, Any]:
        return self._without_keys(run, run.params, "keys")

    @extend_schema_field(_JSON_OBJECT)
    def get_report(self, run: JobRun) -> dict[str, Any]:
        """Nobody reads the checkpoint but jobs, from the commit; of a load in several commits it names the last key that was read."""
        report = {name: value for name, value in run.report.items() if name != "checkpoint"}
        if report.get("output"):
            report["output"] = self._without_keys(run, report["output"], "examples")
        return report

    def _without_keys(self, run: JobRun, values: dict[str, Any], name: str) -> dict[str, Any]:
        if name not in values or self._shows_keys(run):
            return values
        return {each: value for each, value in values.items() if each != name}

    def _shows_keys(self, run: JobRun) -> bool:
        return bool(self.context.get("shows_keys")) or run.copy.dataset.team_id in self._teams

    @cached_property
    def _teams(self) -> frozenset[int]:
        """Asked once for all runs of a list."""
        request = self.context.get("request")
        return frozenset() if request is None else teams_permitting(request.user, "see rows")


class JobRunRequestSerializer(serializers.Serializer[JobRun]):
    """`params`: what the kind needs, such as {"partitions": ["2026-11-16"]} for a backfill."""

    kind = serializers.ChoiceField(JobKind.choices)
    data_center = serializers.CharField(default="", allow_blank=True)
    params = serializers.DictField(default=dict)


class StartRegardlessSerializer(serializers.Serializer[JobRun]):
    """Why a run may read what the gate blocks."""

    why = serializers.CharField(max_length=2000)


class PauseRequestSerializer(serializers.Serializer[Any]):
    """Why ingestion is paused: who waits for the data will ask."""

    why = serializers.CharField(max_length=MAX_REASON_LENGTH)


class BuiltCopySerializer(serializers.Serializer[Any]):
    """A table that is being built. `state`: failed, loading, behind (what came meanwhile is read) or whole."""

    data_center = serializers.CharField(source="copy.data_center.name")
    uri = serializers.CharField(source="copy.uri")
    state = serializers.CharField()
    run = JobRunSerializer(allow_null=True)


class LeftTableSerializer(serializers.Serializer[DatasetCopy]):
    """A table that a removed copy left in the lake."""

    data_center = serializers.CharField(source="data_center.name")
    uri = serializers.CharField()
    removed_at = serializers.DateTimeField()


class RebuildSerializer(serializers.Serializer[Any]):
    """The newest rebuild. `problem`: why it does not switch: somebody accepts that, or cancels it."""

    state = serializers.CharField(source="rebuild.state")
    partition_column = serializers.CharField(source="rebuild.partition_column")
    grain = serializers.CharField(source="rebuild.grain")
    partition_form = serializers.CharField(source="rebuild.partition_form")
    partition_tz = serializers.CharField(source="rebuild.partition_tz")
    asked_by = serializers.CharField(source="rebuild.asked_by")
    asked_at = serializers.DateTimeField(source="rebuild.asked_at")
    ended_by = serializers.CharField(source="rebuild.ended_by")
    ended_at = serializers.DateTimeField(source="rebuild.ended_at", allow_null=True)
    problem = serializers.CharField(source="rebuild.problem")
    accepted_by = serializers.CharField(source="rebuild.accepted_by")
    copies = BuiltCopySerializer(many=True)
    left_tables = LeftTableSerializer(many=True)


class KeptLoadSerializer(serializers.Serializer[KeptLoad]):
    uri = serializers.CharField()
    run = serializers.IntegerField(allow_null=True, help_text="That began the load; null: it is not known any more.")
    is_whole = serializers.BooleanField(help_text="All rows are there: `from_chunks` can load them again.")
    rows = serializers.IntegerField(
        allow_null=True, help_text="Null: the load is not whole, and goes on with what is there."
    )
    written_at = serializers.DateTimeField(help_text="When its newest file was written.")
    kept_until = serializers.DateTimeField(allow_null=True, help_text="At least; null: until a load has ended.")


class RawChunkPlaceSerializer(serializers.Serializer[Any]):
    """Where the raw chunks of a copy lie: a folder for each load."""

    data_center = serializers.CharField()
    uri = serializers.CharField()
    loads = KeptLoadSerializer(many=True, help_text="Newest first.")
    problem = serializers.CharField(help_text="Why the folder cannot be read; empty: it can.")


class RequestedDropsSerializer(serializers.Serializer[Any]):
    runs = JobRunSerializer(many=True)


class CommitSerializer(serializers.ModelSerializer[Commit]):
    data_center = serializers.CharField(source="copy.data_center.name", read_only=True)

    class Meta:
        model = Commit
        fields: ClassVar = [
            "data_center",
            "instant",
            "completed_at",
            "operation",
            "read",
            "applied",
            "superseded",
            "redelivered",
            "errors",
            "inserts",
            "updates",
            "deletes",
            "source_committed_upto",
        ]
        read_only_fields = fields


class ReaderSerializer(serializers.ModelSerializer[ReaderPosition]):
    """How far a reader of a copy's increments is. Until `expires_at` what it has not read is kept, within the operator's bound."""

    data_center = serializers.CharField(source="copy.data_center.name", read_only=True)

    class Meta:
        model = ReaderPosition
        fields: ClassVar = ["data_center", "name", "position", "seen_at", "expires_at"]
        read_only_fields = fields


class ReaderPositionSerializer(serializers.Serializer[Any]):
    """`position`: the completion instant of the newest commit that was read, as the timeline has it (17 digits)."""

    data_center = serializers.CharField(default="", allow_blank=True, max_length=100)
    position = serializers.CharField(max_length=30)
    lasts_s = serializers.IntegerField(
        default=int(readers.LASTS.total_seconds()),
        min_value=60,
        max_value=366 * 24 * 3600,
        help_text="For how many seconds without a word of the reader its position counts.",
    )


class ErrorFilterSerializer(serializers.Serializer[Any]):
    """Which rows of which error table. `data_center` may be left out where the dataset has one copy."""

    data_center = serializers.CharField(default="", allow_blank=True, max_length=100)
    column = serializers.CharField(
        default="", allow_blank=True, max_length=1000, help_text="The column that is to blame."
    )
    reason = serializers.CharField(
        default="", allow_blank=True, max_length=1000, help_text="A part of the reason, in any case."
    )
    run = serializers.IntegerField(
        default=None, allow_null=True, min_value=1, max_value=2**63 - 1, help_text="The number of a run of the dataset."
    )


class ErrorStateSerializer(ErrorFilterSerializer):
    state = serializers.ChoiceField(
        [state.value for state in error_rows.ErrorState],
        default=error_rows.ErrorState.OPEN.value,
        help_text="`open`: rejected still; `resolved`: a replay has applied them.",
    )


class ErrorRowsRequestSerializer(ErrorStateSerializer):
    cursor = serializers.CharField(
        default="", allow_blank=True, max_length=1000, help_text="`next_cursor` of the page before."
    )
    limit = serializers.IntegerField(default=50, min_value=1, max_value=error_rows.MAX_ROWS)


class ErrorRowSerializer(serializers.Serializer[error_rows.ErrorRow]):
    """A row that did not fit. `raw` is the row as JSON, or the text that was no row; in lists its first 2,000 characters."""

    error_key = serializers.CharField()
    column = serializers.CharField(help_text="Empty: it was no row at all.")
    reason = serializers.CharField()
    raw = serializers.CharField()
    raw_length = serializers.IntegerField(help_text="Characters of all of it.")
    source = serializers.CharField(help_text="The table or file that it was read from.")  # type: ignore[assignment]
    run = serializers.CharField(help_text="`key` of the run that read or replayed it last; empty: not known.")
    read_at = serializers.DateTimeField()
    fixed = serializers.CharField(help_text="The values that the last replay was given for it, as JSON; empty: none.")
    resolved_at = serializers.DateTimeField(allow_null=True, help_text="Null: it is rejected still.")
    resolved_by = serializers.CharField(help_text="Who asked for the replay that applied it.")


class ReplayedRowSerializer(serializers.Serializer[Any]):
    error_key = serializers.CharField(max_length=100)
    values = serializers.DictField(default=dict, help_text="By column what takes the place of the row's own values.")


class ReplayRequestSerializer(serializers.Serializer[Any]):
    """Either `rows`, or `kind` with `column`: all open rows of one group of the counts. `values` are for rows that have none of their own."""

    data_center = serializers.CharField(default="", allow_blank=True, max_length=100)
    rows = ReplayedRowSerializer(many=True, default=list)
    column = serializers.CharField(default="", allow_blank=True, max_length=1000)
    kind = serializers.CharField(default="", allow_blank=True, max_length=1000)
    values = serializers.DictField(default=dict)


class ErrorRowPageSerializer(serializers.Serializer[Any]):
    data_center = serializers.CharField()
    rows = ErrorRowSerializer(many=True)
    next_cursor = serializers.CharField(help_text="Empty: there are no older rows.")


class ErrorGroupSerializer(serializers.Serializer[error_rows.ErrorGroup]):
    """Rows that one column rejects for one kind of reason: the reason without the value, such as `not a valid decimal(12,2)`."""

    column = serializers.CharField()
    kind = serializers.CharField()
    rows = serializers.IntegerField()
    newest_at = serializers.DateTimeField()


class ErrorCountsSerializer(serializers.Serializer[Any]):
    data_center = serializers.CharField()
    rows = serializers.IntegerField(help_text="Of all groups, named or not.")
    group_count = serializers.IntegerField()
    groups = ErrorGroupSerializer(many=True, help_text="The 50 largest.")
