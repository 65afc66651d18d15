"""What the onboarding form says, as the use case takes it. Names and numbers only; the use case checks them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from django.http import QueryDict

from frontend.numbers import whole
from lakehub.catalog.metadata import KeyEvidence, TableMetadata
from lakehub.catalog.models import DatasetKind
from lakehub.catalog.onboarding import Application, Upstream
from lakehub.kernel.calendar import Grain
from lakehub.kernel.errors import Refused
from quality.domain.tiers import TIERS

TEXTS = (
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
class Form:
    """The fields as typed, and why some cannot be used."""

    values: Mapping[str, str]
    data_centers: tuple[str, ...] = ()
    one_to_one: bool = False
    ingested: bool = True
    errors: Mapping[str, str] = field(default_factory=dict)


def blank(table: TableMetadata, name: str, team: str, data_centers: tuple[str, ...]) -> Form:
    """What can be proposed from the table: its declared key, and columns whose names say what they are."""
    columns = {column.name: column for column in table.columns}
    changed = next(
        (known for known in ("updated_at", "modified_at", "last_modified", "changed_at") if known in columns), ""
    )
    return Form(
        {
            **dict.fromkeys(TEXTS, ""),
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


def typed(posted: QueryDict) -> Form:
    values = {name: posted.get(name, "").strip() for name in TEXTS}
    return Form(values, tuple(posted.getlist("data_centers")), "one_to_one" in posted, "ingested" in posted)


def application(form: Form) -> Application:
    """Raises Refused only for days that are no number; the rest is the use case's to check."""
    said = form.values
    tier = whole(said["tier"])
    return Application(
        name=said["name"],
        team=said["team"],
        tier=-1 if tier is None else tier,
        connection=said["connection"],
        table=said["table"],
        data_centers=form.data_centers,
        kind=said["kind"],
        primary_key=words(said["primary_key"]),
        record_key=words(said["record_key"]),
        reference_key=said["reference_key"],
        cursor_column=said["cursor_column"],
        partition_column=said["partition_column"],
        grain=said["grain"] or Grain.NONE,
        partition_tz=said["partition_tz"] or "UTC",
        event_time=said["event_time"],
        upstream=[Upstream(name, form.one_to_one) for name in words(said["upstream"])],
        ingested=form.ingested,
        grace=_grace(said["grace_days"], tier),
        description=said["description"],
    )


def _grace(days: str, tier: int | None) -> timedelta:
    """As many days as were said; where nothing was, as many as the tier gives."""
    if not days:
        return TIERS[tier].grace if tier in TIERS else timedelta()
    number = whole(days)
    if number is None:
        raise Refused.because({"grace": f"`{days}` is no number of days: write one such as 14, or nothing."})
    return timedelta(days=number)


def words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def evidence_line(evidence: KeyEvidence) -> str:
    """`26,112 of 26,115 rows have a key of their own, no nulls`."""
    nulls = f"{evidence.nulls:,} with a null" if evidence.nulls else "no nulls"
    return f"{evidence.distinct:,} keys in {evidence.rows:,} rows, {nulls}"
