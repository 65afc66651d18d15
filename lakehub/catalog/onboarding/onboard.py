"""Onboarding a dataset: everything that was said is checked against the real table before anything is written.

It writes catalog rows only. Ingestion sees a copy without a bootstrap and plans one; quality sees metadata that it has
no tests for and generates them. The UI, the API and the commands all call `onboard_dataset`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Team
from lakehub.catalog.datasets import grace_periods
from lakehub.catalog.datasets.changes import check_feed_options, check_index
from lakehub.catalog.datasets.copies import CopySource, create_copy
from lakehub.catalog.datasets.hidden_columns import stored_columns
from lakehub.catalog.datasets.wake_on_change import wake_on_metadata_change
from lakehub.catalog.metadata import KeyEvidence, TableMetadata
from lakehub.catalog.models import (
    TIERS,
    Connection,
    DataCenter,
    Dataset,
    DatasetKind,
    Feed,
    LineageEdge,
)
from lakehub.catalog.onboarding.checks import (
    check_capture,
    check_cells,
    check_copies,
    check_hidden,
    check_keys,
    check_lake_columns,
    check_partition,
    proposals_for,
)
from lakehub.catalog.onboarding.column_proposals import ColumnProposal
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from lakehub.catalog.storages import can_hide_columns, has_cells, is_captured, is_stream
from lakehub.catalog.validation import (
    Problems,
    check_duration,
    check_kind,
    check_overrides,
    find_by_name,
    read_table_metadata,
)
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.partitions.form import split_columns
from lakehub.kernel.suggest import HintBudget

_CAPTURED_INDEX = "memory"
RESERVED_NAMES = ("bulk",)
"""Below /api/v1/datasets/."""


@dataclass(frozen=True)
class OnboardingResult:
    """The dataset, what the check of its key on the real rows showed, and what was left out and the data says."""

    dataset: Dataset
    evidence: KeyEvidence | None
    proposals: tuple[ColumnProposal, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        return notes_of(self.evidence, self.proposals)


def notes_of(evidence: KeyEvidence | None, proposals: Sequence[ColumnProposal]) -> tuple[str, ...]:
    """Both, as sentences for people."""
    of_key = () if evidence is None else (f"Key: {evidence.sentence}.",)
    return (*of_key, *(proposed.sentence for proposed in proposals))


@dataclass(frozen=True)
class CheckedRequest:
    """An application whose every name was found."""

    team: Team
    connection: Connection
    data_centers: list[DataCenter]
    upstream: list[tuple[Dataset, bool]]
    table: TableMetadata
    evidence: KeyEvidence | None
    locations: dict[str, CopySource]
    """By data center, of the copies that lie elsewhere than the table."""
    partition_form: str
    proposals: tuple[ColumnProposal, ...] = ()


def onboard_dataset(
    application: OnboardingRequest, *, actor: str, now: datetime, hints: HintBudget | None = None
) -> OnboardingResult:
    """`hints`: of a request for several datasets. Raises Refused with a reason for each field, or Conflict; nothing is written then."""
    checked = check_request(application, hints=hints)
    try:
        with transaction.atomic():
            dataset = _create_dataset(application, checked, now)
            detail: dict[str, Any] = {"tier": dataset.tier, "table": application.table}
            if application.feed_options:
                detail["feed_options"] = application.feed_options
            detail |= {name: [*columns] for name, columns in application.hidden.items() if columns}
            audit_log.record(actor, "onboard", f"dataset:{dataset.name}", now=now, **detail)
            wake_on_metadata_change()
    except IntegrityError as error:
        if Dataset.objects.filter(name=application.name).exists():
            raise Conflict(
                f"Dataset `{application.name}` was onboarded by somebody else just now; nothing was changed."
            ) from error
        raise
    return OnboardingResult(dataset, checked.evidence, checked.proposals)


def check_request(
    application: OnboardingRequest, *, before: OnboardingRequest | None = None, hints: HintBudget | None = None
) -> CheckedRequest:
    """Every problem at once, by field. Reads the source, writes nothing.

    `before`: the application changes a dataset that was this one. Keys are searched only in tables that it was not read from,
    and `upstream` is looked up only where it differs.
    """
    problems = Problems(hints)
    team = find_by_name(problems, "team", Team, application.team)
    connection = find_by_name(problems, "connection", Connection, application.connection)
    data_centers = [find_by_name(problems, "data_centers", DataCenter, name) for name in application.data_centers]
    upstream = [
        (find_by_name(problems, "upstream", Dataset, request.dataset), request.one_to_one)
        for request in (application.upstream if before is None or application.upstream != before.upstream else ())
    ]
    if before is None:
        _check_name(problems, application)
    captured = connection is not None and is_captured(connection.plugin)
    _check_choices(problems, application, captured=captured)
    if connection is not None and is_stream(connection.plugin) and not application.ingested:
        problems.add(
            "ingested", f"`{application.table}` is a topic, which no test can read where it lies: ingest the dataset."
        )
    table = read_table_metadata(problems, connection, application.table) if connection else None
    evidence, form = None, ""
    proposals: tuple[ColumnProposal, ...] = ()
    if table is not None and connection is not None:
        check_hidden(problems, application, table, captured=can_hide_columns(connection.plugin))
        if not application.hides_partition:  # nobody looks at values of it
            form = check_partition(problems, application, connection, table)
        if before is None or (application.connection, application.table) != (before.connection, before.table):
            evidence = check_keys(problems, application, connection, table)
        proposals = proposals_for(application, connection, table) if before is None else ()
        check_lake_columns(problems, application, table.names)
        if has_cells(connection.plugin):
            check_cells(problems, application)
        if captured and application.ingested:
            check_capture(problems, application, connection)
    locations = check_copies(problems, application, connection, before=before)
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
        locations,
        form,
        proposals,
    )


def _check_name(problems: Problems, application: OnboardingRequest) -> None:
    taken = Dataset.objects.filter(name=application.name).first()
    if taken is not None:
        left = (
            " (off-boarded; choose another name, or restore it with `manage.py restore`)" if taken.offboarded_at else ""
        )
        problems.add("name", f"There is a dataset `{application.name}` already{left}.")
    if application.name in RESERVED_NAMES:
        problems.add("name", f"`{application.name}` is an address of the REST API: choose another name.")


def _check_choices(problems: Problems, application: OnboardingRequest, *, captured: bool) -> None:
    if application.tier not in TIERS:
        problems.add("tier", f"There is no tier {application.tier}: tiers go from 0 (highest) to 5.")
    check_kind(problems, application.kind)
    if not application.data_centers:
        problems.add("data_centers", "Name at least one data center.")
    check_overrides(problems, application.overrides, application.tier, application.partition_tz)
    options = application.feed_options
    check_feed_options(problems, options, name=application.name, ingested=application.ingested, captured=captured)
    check_index(problems, options, application.data_centers)
    check_duration(problems, "every", application.every, least=timedelta(seconds=1))
    check_duration(problems, "freshness_sla", application.freshness_sla)
    check_duration(problems, "grace", application.grace)
    has_order = captured or bool(application.reference_key)  # the changes of a log have one of their own
    if application.ingested and application.kind == DatasetKind.APPEND_PLUS_UPDATE and not has_order:
        problems.add("reference_key", "Rows that change need a reference key: the column whose greater value wins.")


def _create_dataset(application: OnboardingRequest, checked: CheckedRequest, now: datetime) -> Dataset:
    dataset = Dataset(
        name=application.name,
        description=application.description,
        team=checked.team,
        tier=application.tier,
        kind=application.kind,
        ingested=application.ingested,
        columns=stored_columns(checked.table, application.hidden),
        primary_key=list(application.primary_key),
        record_key=list(application.record_key or application.primary_key),
        reference_key=application.reference_key,
        partition_column=", ".join(split_columns(application.partition_column)),
        partition_form=checked.partition_form,
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
        options=_options_of_feed(application, checked.connection),
        **{name: [*columns] for name, columns in application.hidden.items()},
    )
    for data_center in checked.data_centers:
        create_copy(dataset, data_center, checked.locations.get(data_center.name))
    for upstream, one_to_one in checked.upstream:
        LineageEdge.objects.create(upstream=upstream, downstream=dataset, one_to_one=one_to_one)
    return dataset


def _options_of_feed(application: OnboardingRequest, connection: Connection) -> dict[str, Any]:
    """A change of a captured row says nothing of the partition that the row is in now: an index has to know."""
    needs_index = application.ingested and is_captured(connection.plugin)
    return ({"index": _CAPTURED_INDEX} if needs_index else {}) | dict(application.feed_options)


def _check_fields(dataset: Dataset) -> None:
    try:
        dataset.clean_fields()
    except ValidationError as error:
        raise Refused.for_fields({name: " ".join(why) for name, why in error.message_dict.items()}) from error
