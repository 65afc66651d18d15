"""What the onboarding form says, as the use case takes it. Names and numbers only; the use case checks them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from zoneinfo import ZoneInfo

from django.http import QueryDict

from frontend.ui.feed_fields import hidden_columns as hidden_column_fields
from frontend.ui.feed_fields import options as feed_option_fields
from frontend.ui.feed_fields.hidden_columns import FormWithHiddenColumns
from frontend.ui.feed_fields.options import FormWithFeedOptions
from frontend.ui.whole_numbers import parse_whole_number
from lakehub.catalog.datasets.hidden_columns import HASHED, LEFT_OUT, MASKED
from lakehub.catalog.metadata import TableMetadata
from lakehub.catalog.models import MAX_COPIES, DatasetKind
from lakehub.catalog.onboarding.column_proposals import (
    CHANGE_COLUMNS,
    PARTITION_COLUMNS,
    ColumnProposal,
    propose_columns,
)
from lakehub.catalog.onboarding.onboarding_request import CopyRequest, OnboardingRequest, UpstreamRequest
from lakehub.catalog.onboarding.partition_proposal import (
    SAMPLE_VALUES,
    form_by_types,
    newest_meaning,
    partition_form_or_problem,
    propose_partition,
)
from lakehub.catalog.storages import Storage
from lakehub.kernel.errors import Refused
from lakehub.kernel.partitions import Grain
from lakehub.kernel.partitions.form import split_columns
from lakehub.kernel.partitions.zones import UnknownZone, zone_named
from quality.domain.slas import TIERS

TEXT_FIELDS = (
    "connection",
    "table",
    "name",
    "team",
    "tier",
    "kind",
    "primary_key",
    "record_key",
    "reference_key",
    "cursor_column",
    "partition_column",
    "partition_form",
    "grain",
    "partition_tz",
    "event_time",
    "upstream",
    "description",
    "grace_days",
)


@dataclass(frozen=True)
class OnboardingForm(FormWithFeedOptions, FormWithHiddenColumns):
    """The fields as typed, and why some cannot be used."""

    values: Mapping[str, str]
    data_centers: tuple[str, ...] = ()
    copies: tuple[CopyRequest, ...] = ()
    """By data center, where a copy lies elsewhere than the table."""
    one_to_one: bool = False
    ingested: bool = True
    errors: Mapping[str, str] = field(default_factory=dict)
    proposed: tuple[ColumnProposal, ...] = ()
    """What was filled in by the values of the columns."""


def proposed_name(table: str) -> str:
    """A dataset's name for a table: `ops.Flights` is flights, `raw/orders/dt=*/*.parquet` is orders, `readings.parquet` is readings."""
    table = re.sub(r"\?\w+=.*", "", table)  # what is said of its columns
    named = [part for part in table.split("/") if "*" not in part and "=" not in part]
    last = named[-1] if named else ""
    file = re.fullmatch(r"(.+?)\.(?:parquet|csv|tsv|jsonl?|ndjson|avro)(?:\.gz)?", last, re.IGNORECASE)
    word = file[1] if file else last.rsplit(".", 1)[-1]
    return re.sub(r"[^a-z0-9_-]+", "_", word.lower()).strip("_-")


def prefilled_form(
    table: TableMetadata, name: str, team: str, data_centers: tuple[str, ...], *, is_captured: bool = False
) -> OnboardingForm:
    """What can be proposed from the table: its declared key, and columns whose names say what they are. Changes that are captured have an order
    of their own, and no column says it."""
    columns = {column.name: column for column in table.columns}
    changed = next((candidate for candidate in CHANGE_COLUMNS if candidate in columns and not is_captured), "")
    is_updated = is_captured or bool(changed)
    return OnboardingForm(
        {
            **dict.fromkeys(TEXT_FIELDS, ""),
            "name": name,
            "team": team,
            "tier": "2",
            "kind": DatasetKind.APPEND_PLUS_UPDATE if is_updated else DatasetKind.APPEND_ONLY,
            "primary_key": ", ".join(table.primary_key),
            "reference_key": changed,
            "cursor_column": changed,
            "partition_column": next((name for name in PARTITION_COLUMNS if name in columns), ""),
            "grain": Grain.NONE,
            "partition_tz": "UTC",
        },
        data_centers,
    )


def names_an_order(form: OnboardingForm) -> bool:
    return bool(form.values["reference_key"] or form.values["cursor_column"])


def form_from_post(posted: QueryDict) -> OnboardingForm:
    values = {name: posted.get(name, "").strip() for name in TEXT_FIELDS}
    centers = tuple(posted.getlist("data_centers"))
    return OnboardingForm(
        values | feed_option_fields.fields_from_post(posted) | hidden_column_fields.fields_from_post(posted),
        centers,
        tuple(_copies_from_post(posted, centers, values["connection"])),
        "one_to_one" in posted,
        "ingested" in posted,
    )


def _copies_from_post(posted: QueryDict, centers: Sequence[str], connection: str) -> Iterator[CopyRequest]:
    """Of the data centers that are chosen, those for which a connection or a table is named."""
    for center in centers[:MAX_COPIES]:
        named, table = (posted.get(f"{name}.{center}", "").strip() for name in ("copy_connection", "copy_table"))
        if named or table:
            yield CopyRequest(center, named or connection, table or posted.get("table", ""))


def application_of(form: OnboardingForm) -> OnboardingRequest:
    """Raises Refused only for days that are no number; the rest is the use case's to check."""
    values = form.values
    tier = parse_whole_number(values["tier"])
    hidden = hidden_column_fields.names_of_fields(values)
    return OnboardingRequest(
        name=values["name"],
        team=values["team"],
        tier=-1 if tier is None else tier,
        connection=values["connection"],
        table=values["table"],
        data_centers=form.data_centers,
        copies=() if form.ingested else form.copies,
        kind=values["kind"],
        primary_key=split_names(values["primary_key"]),
        record_key=split_names(values["record_key"]),
        reference_key=values["reference_key"],
        cursor_column=values["cursor_column"],
        partition_column=values["partition_column"],
        partition_form=values["partition_form"],
        grain=values["grain"] or Grain.NONE,
        partition_tz=values["partition_tz"] or "UTC",
        event_time=values["event_time"],
        upstream=[UpstreamRequest(name, form.one_to_one) for name in split_names(values["upstream"])],
        ingested=form.ingested,
        grace=_grace_period(values["grace_days"], tier),
        description=values["description"],
        feed_options=feed_option_fields.options_of_fields(values),
        columns_left_out=hidden[LEFT_OUT],
        columns_hashed=hidden[HASHED],
        columns_masked=hidden[MASKED],
    )


def with_proposed_partition(form: OnboardingForm, table: TableMetadata, source: Storage) -> OnboardingForm:
    """Grain and form of the partition column, from its type and its newest values; as it was where they say no time."""
    column, zone = form.values["partition_column"], _zone_of(form)
    if not column or zone is None or any(name not in table.names for name in split_columns(column)):
        return form
    newest = source.newest_values(form.values["table"], split_columns(column), SAMPLE_VALUES)
    proposed = propose_partition(table, column, newest.values, zone)
    if proposed is None:
        return form
    return replace(form, values={**form.values, "grain": proposed.grain.value, "partition_form": proposed.form})


def with_proposed_columns(form: OnboardingForm, table: TableMetadata, source: Storage) -> OnboardingForm:
    """A partition and an event time where none is named and the values of a column say one; the owner may empty the fields."""
    zone = _zone_of(form)
    if zone is None:
        return form
    proposals = propose_columns(
        table,
        source,
        form.values["table"],
        partition=not form.values["partition_column"],
        event_time=not form.values["event_time"],
        zone=zone,
    )
    values = dict(form.values)
    for proposed in proposals:
        values[proposed.field] = proposed.column
        if proposed.field == "partition_column":
            values |= {"grain": proposed.grain, "partition_form": proposed.form}
    return replace(form, values=values, proposed=proposals)


def partition_note(form: OnboardingForm, table: TableMetadata, source: Storage) -> str:
    """What the newest value of the partition column means; empty where that is not known."""
    column, zone, grain = form.values["partition_column"], _zone_of(form), form.values["grain"]
    names = split_columns(column)
    if not names or zone is None or grain not in list(Grain) or any(name not in table.names for name in names):
        return ""
    text = form_by_types(table, column, Grain(grain), form.values["partition_form"])
    read = partition_form_or_problem(column, Grain(grain), zone, text)
    if isinstance(read, str):
        return ""
    return newest_meaning(read, source.newest_values(form.values["table"], names, SAMPLE_VALUES))


def _zone_of(form: OnboardingForm) -> ZoneInfo | None:
    try:
        return zone_named(form.values["partition_tz"] or "UTC")
    except UnknownZone:
        return None


def _grace_period(days: str, tier: int | None) -> timedelta:
    """As many days as were said; where nothing was, as many as the tier gives."""
    if not days:
        return TIERS[tier].grace if tier in TIERS else timedelta()
    number = parse_whole_number(days)
    if number is None:
        raise Refused.for_fields({"grace": f"`{days}` is no number of days: write one such as 14, or nothing."})
    return timedelta(days=number)


def split_names(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
