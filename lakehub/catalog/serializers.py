"""How the catalog reads in JSON. Durations are seconds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from lakehub.catalog.connection_limits import BOUNDS
from lakehub.catalog.datasets.changes import MAX_REASON_LENGTH
from lakehub.catalog.datasets.feed_options import FEED_OPTIONS, FeedOption, effective_options_of, takes_feed_options
from lakehub.catalog.datasets.hidden_columns import (
    HASHED,
    HIDING_FIELDS,
    LEFT_OUT,
    MASKED,
    MAX_COLUMN_NAME,
    MAX_HIDDEN,
    hidden_names,
)
from lakehub.catalog.metadata.roles import DatabaseRole
from lakehub.catalog.models import MAX_COPIES, Connection, DataCenter, Dataset, DatasetKind, Feed, LineageDay
from lakehub.catalog.onboarding.along_lineage import Direction
from lakehub.catalog.onboarding.bulk import MAX_REQUESTS, OnboardingLine, OnboardingStatus
from lakehub.catalog.onboarding.onboarding_request import CopyRequest, OnboardingRequest, UpstreamRequest
from lakehub.catalog.ports import Consequence
from lakehub.http.instants import InstantField
from lakehub.kernel.partitions import Grain


@extend_schema_field({"type": "number", "description": "Seconds"})
class SecondsField(serializers.Field[timedelta, int, float, timedelta]):
    """A length of time as a number of seconds."""

    def to_internal_value(self, data: int) -> timedelta:
        if isinstance(data, bool) or not isinstance(data, int | float):
            raise serializers.ValidationError(f"{data!r} is not a number of seconds.")
        try:
            return timedelta(seconds=data)
        except (OverflowError, ValueError) as error:
            raise serializers.ValidationError(f"{data!r} seconds cannot be counted.") from error

    def to_representation(self, value: timedelta) -> float:
        return value.total_seconds()


class DataCenterSerializer(serializers.ModelSerializer[DataCenter]):
    class Meta:
        model = DataCenter
        fields = ("name", "lake_uri")
        extra_kwargs: ClassVar[dict[str, dict[str, Any]]] = {
            "name": {"validators": []}
        }  # the use case says what is wrong


class RoleSerializer(serializers.Serializer[DatabaseRole]):
    """The role of a connection, as its database knew it when the URL was tried. Null where the database does not say."""

    name = serializers.CharField()
    powers = serializers.ListField(
        child=serializers.CharField(), help_text="Beyond tables: superuser, files of the server, replication, ..."
    )
    writes = serializers.ListField(child=serializers.CharField(), help_text="What it may change; the first five.")


class ConnectionSerializer(serializers.Serializer[Connection]):
    """The URL goes in and never comes out."""

    name = serializers.CharField(max_length=63)
    plugin = serializers.CharField(max_length=30)
    url = serializers.CharField(max_length=1000, write_only=True)
    team = serializers.CharField(source="team.name", max_length=63)
    rows_per_s = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="How fast all jobs and looks together may read; null: as they can."
    )
    max_connections = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="How many jobs and looks may be at work there at once; null: any."
    )
    role = RoleSerializer(read_only=True, allow_null=True)
    role_warning = serializers.CharField(
        read_only=True, help_text="What the role may do besides reading, and the remedy; empty where it only reads."
    )


class ConnectionTestSerializer(serializers.Serializer[Any]):
    """What `POST /connections/test` takes."""

    plugin = serializers.CharField(max_length=30)
    url = serializers.CharField(max_length=1000, write_only=True)
    team = serializers.CharField(max_length=63)


class ConnectionTestResultSerializer(serializers.Serializer[Any]):
    tables = serializers.IntegerField(help_text="That it lists; 1,000 stands for as many or more.")
    sentence = serializers.CharField()
    role_warning = serializers.CharField(help_text="Empty where the role of the URL only reads, or is not known.")


class ConnectionUrlSerializer(serializers.Serializer[Connection]):
    """What `PATCH /connections/{name}` takes."""

    url = serializers.CharField(max_length=1000, write_only=True)


def _limit_text(name: str) -> str:
    least, most = BOUNDS[name]
    return f"From {least:,} to {most:,}."


class ConnectionLimitsSerializer(serializers.Serializer[Connection]):
    """What `PUT /connections/{name}/limits` takes. Null: no limit."""

    rows_per_s = serializers.IntegerField(allow_null=True, help_text=_limit_text("rows_per_s"))
    max_connections = serializers.IntegerField(allow_null=True, help_text=_limit_text("max_connections"))


class CopySerializer(serializers.Serializer[Any]):
    data_center = serializers.CharField(source="data_center.name")
    uri = serializers.CharField()
    connection = serializers.CharField(source="source_name")
    table = serializers.CharField(source="source_table")
    monitored_from = serializers.DateTimeField(allow_null=True)


def _options_schema() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {option.name: _option_schema(option) for option in FEED_OPTIONS.values()},
        "additionalProperties": False,
    }


def _option_schema(option: FeedOption) -> dict[str, Any]:
    schema = {"description": option.text, "default": option.in_force({})}
    if option.is_switch:
        return {"type": "boolean", **schema}
    if option.bounds is None:
        return {"type": "string", **schema}
    least, most = (0, option.bounds[1]) if option.zero_is_none else option.bounds
    return {"type": "integer" if option.is_whole else "number", "minimum": least, "maximum": most, **schema}


class PauseFactsSerializer(serializers.Serializer[Feed]):
    by = serializers.CharField(source="paused_by", help_text="Empty: not known.")
    at = serializers.DateTimeField(source="paused_at", allow_null=True)
    why = serializers.CharField(source="paused_why")


@extend_schema_field(_options_schema())
class FeedOptionsField(serializers.DictField):
    """The use case checks names and values."""


_LEFT_OUT_TEXT = "Of a captured table, columns that do not come into the lake."
_HASHED_TEXT = "Columns that come as HMAC-SHA-256 in hexadecimal digits, with a key of this instance."
_MASKED_TEXT = "Columns that are null in the lake."
_NAMES = serializers.ListField(child=serializers.CharField())


class DatasetSerializer(serializers.ModelSerializer[Dataset]):
    team = serializers.CharField(source="team.name")
    copies = CopySerializer(many=True)
    freshness_sla = SecondsField(allow_null=True)
    schema_changes = serializers.CharField()
    not_compared = serializers.ListField(child=serializers.CharField())
    feed_options = serializers.SerializerMethodField(
        help_text="Those that were set; empty where no job loads the dataset."
    )
    effective_feed_options = serializers.SerializerMethodField(help_text="All of them, set or by default.")
    columns_left_out = serializers.SerializerMethodField(help_text=_LEFT_OUT_TEXT)
    columns_hashed = serializers.SerializerMethodField(help_text=_HASHED_TEXT)
    columns_masked = serializers.SerializerMethodField(help_text=_MASKED_TEXT)

    paused = serializers.SerializerMethodField(
        help_text="Who has paused what brings its rows, when and why; null: nobody has."
    )

    class Meta:
        model = Dataset
        fields = (
            "name",
            "description",
            "team",
            "tier",
            "kind",
            "ingested",
            "columns",
            "primary_key",
            "record_key",
            "reference_key",
            "partition_column",
            "partition_form",
            "grain",
            "partition_tz",
            "event_time",
            "freshness_sla",
            "overrides",
            "schema_changes",
            "not_compared",
            "grace_until",
            "onboarded_at",
            "metadata_version",
            "missing_since",
            "feed_options",
            "effective_feed_options",
            *HIDING_FIELDS,
            "paused",
            "copies",
        )

    @extend_schema_field(PauseFactsSerializer(allow_null=True))
    def get_paused(self, dataset: Dataset) -> dict[str, Any] | None:
        feed = dataset.feed_or_none
        return PauseFactsSerializer(feed).data if feed is not None and feed.paused else None

    @extend_schema_field(_NAMES)
    def get_columns_left_out(self, dataset: Dataset) -> list[str]:
        return hidden_names(dataset.feed_or_none)[LEFT_OUT]

    @extend_schema_field(_NAMES)
    def get_columns_hashed(self, dataset: Dataset) -> list[str]:
        return hidden_names(dataset.feed_or_none)[HASHED]

    @extend_schema_field(_NAMES)
    def get_columns_masked(self, dataset: Dataset) -> list[str]:
        return hidden_names(dataset.feed_or_none)[MASKED]

    @extend_schema_field(FeedOptionsField)
    def get_feed_options(self, dataset: Dataset) -> dict[str, Any]:
        return dataset.feed.options if takes_feed_options(dataset) else {}

    @extend_schema_field(FeedOptionsField)
    def get_effective_feed_options(self, dataset: Dataset) -> dict[str, Any]:
        return effective_options_of(dataset)


class UpstreamSerializer(serializers.Serializer[UpstreamRequest]):
    dataset = serializers.CharField(max_length=63)
    one_to_one = serializers.BooleanField(default=False)


class CopyRequestSerializer(serializers.Serializer[CopyRequest]):
    """Where the copy in one data center lies, of a dataset that is only monitored."""

    data_center = serializers.CharField(max_length=63)
    connection = serializers.CharField(max_length=63)
    table = serializers.CharField(max_length=500)


def _column_names_field() -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(max_length=100), max_length=32, default=list)


MAX_OVERRIDES = 200


class OverridesField(serializers.DictField):
    """Each is understood by itself, so their number is bounded."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if isinstance(data, dict) and len(data) > MAX_OVERRIDES:
            raise serializers.ValidationError(f"There are {len(data):,} overrides: at most {MAX_OVERRIDES} are taken.")
        return dict(super().to_internal_value(data))


def _hidden_columns_field(text: str, **options: Any) -> serializers.ListField:
    """Names of columns may begin with a space."""
    child = serializers.CharField(max_length=MAX_COLUMN_NAME, trim_whitespace=False)
    return serializers.ListField(child=child, max_length=MAX_HIDDEN, help_text=text, **options)


class OnboardingRequestSerializer(serializers.Serializer[OnboardingRequest]):
    """What `POST /datasets` takes: the application for onboarding."""

    name = serializers.CharField(max_length=63)
    team = serializers.CharField(max_length=63)
    tier = serializers.IntegerField()
    connection = serializers.CharField(max_length=63)
    table = serializers.CharField(max_length=500)
    data_centers = serializers.ListField(child=serializers.CharField(max_length=63), max_length=MAX_COPIES)
    copies = serializers.ListField(child=CopyRequestSerializer(), default=list, max_length=MAX_COPIES)
    kind = serializers.CharField(max_length=20, default=DatasetKind.APPEND_PLUS_UPDATE.value)
    primary_key = _column_names_field()
    record_key = _column_names_field()
    reference_key = serializers.CharField(max_length=100, default="", allow_blank=True)
    cursor_column = serializers.CharField(max_length=100, default="", allow_blank=True)
    partition_column = serializers.CharField(max_length=200, default="", allow_blank=True)
    partition_form = serializers.CharField(max_length=200, default="", allow_blank=True)
    grain = serializers.CharField(max_length=10, default=Grain.NONE.value)
    partition_tz = serializers.CharField(max_length=64, default="UTC")
    event_time = serializers.CharField(max_length=100, default="", allow_blank=True)
    upstream = serializers.ListField(child=UpstreamSerializer(), max_length=100, default=list)
    ingested = serializers.BooleanField(default=True)
    every = SecondsField(default=timedelta(minutes=5))
    freshness_sla = SecondsField(default=None, allow_null=True)
    grace = SecondsField(default=timedelta())
    description = serializers.CharField(default="", allow_blank=True, max_length=4000)
    overrides = OverridesField(default=dict)
    feed_options = FeedOptionsField(default=dict)
    columns_left_out = _hidden_columns_field(_LEFT_OUT_TEXT, default=list)
    columns_hashed = _hidden_columns_field(_HASHED_TEXT, default=list)
    columns_masked = _hidden_columns_field(_MASKED_TEXT, default=list)

    def to_request(self) -> OnboardingRequest:
        values = dict(self.validated_data)
        values["upstream"] = tuple(UpstreamRequest(**upstream) for upstream in values["upstream"])
        values["copies"] = tuple(CopyRequest(**copy) for copy in values["copies"])
        return OnboardingRequest(**values)


class BulkOnboardingSerializer(serializers.Serializer[Any]):
    """What `POST /datasets/bulk` takes: a list of applications, the dataset whose lineage is onboarded, or a pattern of the names of tables of a connection
    whose changes are captured, with `connection`, `team`, `tier` and `data_centers`."""

    datasets = serializers.ListField(child=serializers.DictField(), max_length=MAX_REQUESTS, default=list)
    """Each is what `POST /datasets` takes."""
    lineage_of = serializers.CharField(max_length=63, default="", allow_blank=True)
    direction = serializers.ChoiceField([direction.value for direction in Direction], default=Direction.BOTH.value)
    tables = serializers.CharField(
        max_length=500, default="", allow_blank=True, help_text="Such as `sales_*`, several with commas between."
    )
    chosen = serializers.ListField(
        child=serializers.CharField(max_length=500),
        max_length=MAX_REQUESTS,
        default=None,
        allow_null=True,
        help_text="With `tables`: of those that match, these only. Where one does not match, nothing is onboarded.",
    )
    connection = serializers.CharField(max_length=63, default="", allow_blank=True)
    data_centers = serializers.ListField(
        child=serializers.CharField(max_length=63), max_length=MAX_COPIES, default=list
    )
    tier = serializers.IntegerField(default=None, allow_null=True)
    team = serializers.CharField(max_length=63, default="", allow_blank=True)
    grace = SecondsField(default=timedelta())


def parse_requests(items: Sequence[Any]) -> tuple[tuple[OnboardingRequest, ...], tuple[OnboardingLine, ...]]:
    """The applications, and a line for each item that is none."""
    applications, lines = [], []
    for item in items:
        serializer = OnboardingRequestSerializer(data=item)
        if serializer.is_valid():
            applications.append(serializer.to_request())
        else:
            name = str(item.get("name", "")) if isinstance(item, dict) else str(item)
            lines.append(
                OnboardingLine(
                    name,
                    OnboardingStatus.REFUSED,
                    {field: _error_text(why) for field, why in serializer.errors.items()},
                )
            )
    return tuple(applications), tuple(lines)


def _error_text(why: Any) -> str:
    """What the framework says of a field: a list of words, or one for each item."""
    return " ".join(map(str, why)) if isinstance(why, list) else str(why)


class OnboardingLineSerializer(serializers.Serializer[OnboardingLine]):
    """What became of one dataset of many: created, exists or refused, and why by field; `ready`: nothing speaks against it. `table`: of a pattern."""

    name = serializers.CharField()
    table = serializers.CharField()
    result = serializers.ChoiceField([status.value for status in OnboardingStatus])
    why = serializers.DictField(child=serializers.CharField())
    notes = serializers.ListField(child=serializers.CharField())


class LineageDaySerializer(serializers.Serializer[LineageDay]):
    """A look of one day, at the lineage `read_from` a source or, where that is empty, at the tables: what it changed, by kind."""

    day = serializers.DateField()
    read_from = serializers.CharField(source="source")
    attempt = serializers.IntegerField()
    ended_at = serializers.DateTimeField(allow_null=True)
    report = serializers.JSONField()
    error = serializers.CharField()


class ConsequenceSerializer(serializers.Serializer[Consequence]):
    """What a change would do: `about` tests, reads, incidents or the gate."""

    about = serializers.CharField()
    text = serializers.CharField()


class ConsequencesSerializer(serializers.Serializer[Any]):
    consequences = ConsequenceSerializer(many=True)


class DatasetChangeSerializer(serializers.Serializer[Dataset]):
    """What `PATCH /datasets/{name}` takes; a field left out stays. `every`, `inputs`, `paused` and `feed_options` are the feed's.

    `data_centers` and `upstream` are all that there are to be; `copies` names those that lie elsewhere from now on.
    """

    team = serializers.CharField(max_length=63, required=False)
    connection = serializers.CharField(max_length=63, required=False)
    table = serializers.CharField(max_length=500, required=False)
    data_centers = serializers.ListField(
        child=serializers.CharField(max_length=63), max_length=MAX_COPIES, required=False
    )
    copies = serializers.ListField(child=CopyRequestSerializer(), max_length=MAX_COPIES, required=False)
    upstream = serializers.ListField(child=UpstreamSerializer(), max_length=100, required=False)
    partition_column = serializers.CharField(max_length=200, required=False, allow_blank=True)
    grain = serializers.CharField(max_length=10, required=False)
    partition_form = serializers.CharField(
        max_length=200, required=False, allow_blank=True, help_text="Empty: as the type of the column says."
    )
    partition_tz = serializers.CharField(max_length=64, required=False)

    tier = serializers.IntegerField(required=False)
    kind = serializers.CharField(max_length=20, required=False)
    description = serializers.CharField(required=False, allow_blank=True, max_length=4000)
    primary_key = serializers.ListField(child=serializers.CharField(max_length=100), max_length=32, required=False)
    freshness_sla = SecondsField(required=False, allow_null=True)
    grace_until = InstantField(required=False, allow_null=True)
    event_time = serializers.CharField(required=False, allow_blank=True, max_length=100)
    overrides = OverridesField(required=False)
    schema_changes = serializers.CharField(
        max_length=20,
        required=False,
        allow_blank=True,
        help_text="Which changes of columns open an incident: `incident` (all), `breaking` (gone or retyped, the usual one) or `show` (none).",
    )
    not_compared = serializers.ListField(
        child=serializers.CharField(max_length=100),
        max_length=100,
        required=False,
        help_text="Columns that each data center writes for itself: `difference@...` leaves them out.",
    )
    every = SecondsField(required=False)
    inputs = serializers.ListField(
        child=serializers.CharField(max_length=63),
        max_length=100,
        required=False,
        allow_null=True,
        help_text="Datasets in the lake that the gate is asked about before a job starts; null: as lineage has it.",
    )
    paused = serializers.BooleanField(required=False)
    paused_why = serializers.CharField(
        max_length=MAX_REASON_LENGTH,
        required=False,
        help_text="Only with `paused`: the reason, which pages and runs show.",
    )
    feed_options = FeedOptionsField(
        required=False,
        help_text="All that are to be set: what is left out has its default. How the feed's jobs read and write.",
    )
    columns_left_out = _hidden_columns_field(_LEFT_OUT_TEXT, required=False)
    columns_hashed = _hidden_columns_field(_HASHED_TEXT, required=False)
    columns_masked = _hidden_columns_field(_MASKED_TEXT, required=False)

    def to_changes(self) -> dict[str, Any]:
        """As the use case takes them."""
        values = dict(self.validated_data)
        if "copies" in values:
            values["copies"] = tuple(CopyRequest(**copy) for copy in values["copies"])
        if "upstream" in values:
            values["upstream"] = tuple(UpstreamRequest(**upstream) for upstream in values["upstream"])
        return values
