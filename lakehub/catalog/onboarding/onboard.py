"""Onboarding a dataset: everything that was said is checked against the real table before anything is written.

It writes catalog rows only. Ingestion sees a copy without a bootstrap and plans one; quality sees metadata that it has
no tests for and generates them. The UI, the API and the commands all call `onboard_dataset`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Team
from lakehub.catalog.datasets import grace_periods
from lakehub.catalog.datasets.wake_on_change import wake_on_metadata_change
from lakehub.catalog.metadata import KeyEvidence, TableMetadata
from lakehub.catalog.models import (
    TIERS,
    Connection,
    DataCenter,
    Dataset,
    DatasetCopy,
    DatasetKind,
    Feed,
    LineageEdge,
)
from lakehub.catalog.onboarding.checks import check_keys, check_partition
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from lakehub.catalog.validation import Problems, check_duration, check_overrides, find_by_name, read_table_metadata
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.suggest import did_you_mean

RESERVED_NAMES = ("bulk",)
"""Below /api/v1/datasets/."""


@dataclass(frozen=True)
class OnboardingResult:
    """The dataset, and what the check of its key on the real rows showed."""

    dataset: Dataset
    evidence: KeyEvidence | None


@dataclass(frozen=True)
class CheckedRequest:
    """An application whose every name was found."""

    team: Team
    connection: Connection
    data_centers: list[DataCenter]
    upstream: list[tuple[Dataset, bool]]
    table: TableMetadata
    evidence: KeyEvidence | None


def onboard_dataset(application: OnboardingRequest, *, actor: str, now: datetime) -> OnboardingResult:
    """Raises Refused with a reason for each field, or Conflict; nothing is written then."""
    checked = check_request(application)
    try:
        with transaction.atomic():
            dataset = _create_dataset(application, checked, now)
            audit_log.record(
                actor, "onboard", f"dataset:{dataset.name}", now=now, tier=dataset.tier, table=application.table
            )
            wake_on_metadata_change()
    except IntegrityError as error:
        if Dataset.objects.filter(name=application.name).exists():
            raise Conflict(
                f"Dataset `{application.name}` was onboarded by somebody else just now; nothing was changed."
            ) from error
        raise
    return OnboardingResult(dataset, checked.evidence)


def check_request(application: OnboardingRequest) -> CheckedRequest:
    """Every problem at once, by field. Reads the source, writes nothing."""
    problems = Problems()
    team = find_by_name(problems, "team", Team, application.team)
    connection = find_by_name(problems, "connection", Connection, application.connection)
    data_centers = [find_by_name(problems, "data_centers", DataCenter, name) for name in application.data_centers]
    upstream = [
        (find_by_name(problems, "upstream", Dataset, request.dataset), request.one_to_one)
        for request in application.upstream
    ]
    _check_choices(problems, application)
    table = read_table_metadata(problems, connection, application.table) if connection else None
    evidence = None
    if table is not None and connection is not None:
        check_partition(problems, application, table)
        evidence = check_keys(problems, application, connection, table)
    problems.raise_if_any()
    assert team is not None
    assert connection is not None
    assert table is not None  # each missing one is a problem
    return CheckedRequest(
        team,
        connection,
        [d for d in data_centers if d],
        [(u, one_to_one) for u, one_to_one in upstream if u],
        table,
        evidence,
    )


def _check_choices(problems: Problems, application: OnboardingRequest) -> None:
    taken = Dataset.objects.filter(name=application.name).first()
    if taken is not None:
        left = (
            " (off-boarded; choose another name, or restore it with `manage.py restore`)" if taken.offboarded_at else ""
        )
        problems.add("name", f"There is a dataset `{application.name}` already{left}.")
    if application.name in RESERVED_NAMES:
        problems.add("name", f"`{application.name}` is an address of the REST API: choose another name.")
    if application.tier not in TIERS:
        problems.add("tier", f"There is no tier {application.tier}: tiers go from 0 (highest) to 5.")
    if application.kind not in DatasetKind.values:
        problems.add(
            "kind", f"There is no kind `{application.kind}`.{did_you_mean(application.kind, DatasetKind.values)}"
        )
    if not application.data_centers:
        problems.add("data_centers", "Name at least one data center.")
    check_overrides(problems, application.overrides, application.tier, application.partition_tz)
    check_duration(problems, "every", application.every, least=timedelta(seconds=1))
    check_duration(problems, "freshness_sla", application.freshness_sla)
    check_duration(problems, "grace", application.grace)
    if application.ingested and application.kind == DatasetKind.APPEND_PLUS_UPDATE and not application.reference_key:
        problems.add("reference_key", "Rows that change need a reference key: the column whose greater value wins.")


def _create_dataset(application: OnboardingRequest, checked: CheckedRequest, now: datetime) -> Dataset:
    dataset = Dataset(
        name=application.name,
        description=application.description,
        team=checked.team,
        tier=application.tier,
        kind=application.kind,
        ingested=application.ingested,
        columns=[{"name": c.name, "type": c.type.value, "nullable": c.nullable} for c in checked.table.columns],
        primary_key=list(application.primary_key),
        record_key=list(application.record_key or application.primary_key),
        reference_key=application.reference_key,
        partition_column=application.partition_column,
        grain=application.grain,
        partition_tz=application.partition_tz,
        event_time=application.event_time,
        freshness_sla=application.freshness_sla,
        overrides=dict(application.overrides),
        grace_until=now + application.grace if application.grace else None,
        onboarded_at=now,
    )
    _check_fields(dataset)
    dataset.save(force_insert=True)
    grace_periods.record_grace_period(dataset, dataset.grace_until, now=now)
    Feed.objects.create(
        dataset=dataset,
        connection=checked.connection,
        object=application.table,
        cursor_column=application.cursor_column,
        every=application.every,
    )
    for data_center in checked.data_centers:
        uri = f"{data_center.lake_uri.rstrip('/')}/{dataset.name}" if application.ingested else ""
        DatasetCopy.objects.create(dataset=dataset, data_center=data_center, uri=uri)
    for upstream, one_to_one in checked.upstream:
        LineageEdge.objects.create(upstream=upstream, downstream=dataset, one_to_one=one_to_one)
    return dataset


def _check_fields(dataset: Dataset) -> None:
    try:
        dataset.clean_fields()
    except ValidationError as error:
        raise Refused.for_fields({name: " ".join(why) for name, why in error.message_dict.items()}) from error
