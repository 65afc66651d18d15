"""What the onboarding form says, as the use case takes it. Names and numbers only; the use case checks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from django.http import QueryDict

from frontend.ui.whole_numbers import parse_whole_number
from lakehub.catalog.metadata import KeyEvidence, TableMetadata
from lakehub.catalog.models import DatasetKind
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest, UpstreamRequest
from lakehub.kernel.errors import Refused
from lakehub.kernel.partitions import Grain
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
    "grain",
    "partition_tz",
    "event_time",
    "upstream",
    "description",
    "grace_days",
)


@dataclass(frozen=True)
class OnboardingForm:
    """The fields as typed, and why some cannot be used."""

    values: Mapping[str, str]
    data_centers: tuple[str, ...] = ()
    one_to_one: bool = False
    ingested: bool = True
    errors: Mapping[str, str] = field(default_factory=dict)


def prefilled_form(table: TableMetadata, name: str, team: str, data_centers: tuple[str, ...]) -> OnboardingForm:
    """What can be proposed from the table: its declared key, and columns whose names say what they are."""
    columns = {column.name: column for column in table.columns}
    changed = next(
        (
            candidate
            for candidate in ("updated_at", "modified_at", "last_modified", "changed_at")
            if candidate in columns
        ),
        "",
    )
    return OnboardingForm(
        {
            **dict.fromkeys(TEXT_FIELDS, ""),
            "name": name,
            "team": team,
            "tier": "2",
            "kind": DatasetKind.APPEND_PLUS_UPDATE if changed else DatasetKind.APPEND_ONLY,
            "primary_key": ", ".join(table.primary_key),
            "reference_key": changed,
            "cursor_column": changed,
            "grain": Grain.NONE,
            "partition_tz": "UTC",
        },
        data_centers,
    )


def form_from_post(posted: QueryDict) -> OnboardingForm:
    values = {name: posted.get(name, "").strip() for name in TEXT_FIELDS}
    return OnboardingForm(values, tuple(posted.getlist("data_centers")), "one_to_one" in posted, "ingested" in posted)


def application_of(form: OnboardingForm) -> OnboardingRequest:
    """Raises Refused only for days that are no number; the rest is the use case's to check."""
    values = form.values
    tier = parse_whole_number(values["tier"])
    return OnboardingRequest(
        name=values["name"],
        team=values["team"],
        tier=-1 if tier is None else tier,
        connection=values["connection"],
        table=values["table"],
        data_centers=form.data_centers,
        kind=values["kind"],
        primary_key=split_names(values["primary_key"]),
        record_key=split_names(values["record_key"]),
        reference_key=values["reference_key"],
        cursor_column=values["cursor_column"],
        partition_column=values["partition_column"],
        grain=values["grain"] or Grain.NONE,
        partition_tz=values["partition_tz"] or "UTC",
        event_time=values["event_time"],
        upstream=[UpstreamRequest(name, form.one_to_one) for name in split_names(values["upstream"])],
        ingested=form.ingested,
        grace=_grace_period(values["grace_days"], tier),
        description=values["description"],
    )


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


def evidence_line(evidence: KeyEvidence) -> str:
    """`26,112 of 26,115 rows have a key of their own, no nulls`."""
    nulls = f"{evidence.nulls:,} with a null" if evidence.nulls else "no nulls"
    return f"{evidence.distinct:,} keys in {evidence.rows:,} rows, {nulls}"
