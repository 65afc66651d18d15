"""Changing what was said at onboarding: owner, source, copies, upstream, partition. What differs is checked as then.

Another partition of what is ingested starts a rebuild (`rebuild.py`); all else is so at once.

A change of these is a new application for the dataset that is there: what differs is written, and nothing before all of it
holds. The source is read only where the source, the copies or the partition differ: while it is down, owner and upstream can
be changed. `check_redefinition` says what is wrong and writes nothing; what would come of it, the port `ChangePreview` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NoReturn

from django.db import transaction
from django.db.models import F

from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Team
from lakehub.catalog.datasets.changes import EDITABLE_FIELDS, check_changes, write_changes
from lakehub.catalog.datasets.copies import CopySource, create_copy
from lakehub.catalog.datasets.hidden_columns import HASHED, LEFT_OUT, MASKED, hidden_names, stored_columns
from lakehub.catalog.datasets.offboarding import bump_compared_datasets
from lakehub.catalog.datasets.wake_on_change import wake_on_metadata_change
from lakehub.catalog.models import PARTITION_FIELDS, Dataset, DatasetCopy, Feed, LineageEdge
from lakehub.catalog.onboarding.onboard import CheckedRequest, check_request
from lakehub.catalog.onboarding.onboarding_request import CopyRequest, OnboardingRequest, UpstreamRequest
from lakehub.catalog.onboarding.rebuild import open_rebuild, start_rebuild
from lakehub.catalog.ports import loop_problem, retest_comparison, retest_copies, running_jobs
from lakehub.catalog.validation import Problems, find_by_name
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.partitions.form import split_columns
from lakehub.kernel.suggest import did_you_mean

SOURCE_FIELDS = ("connection", "table", "copies", "data_centers")
READ_FIELDS = (*SOURCE_FIELDS, *PARTITION_FIELDS)
"""What is checked against the real tables."""
REDEFINED_FIELDS = ("team", *SOURCE_FIELDS, "upstream", *PARTITION_FIELDS)
ALL_FIELDS = (*EDITABLE_FIELDS, *REDEFINED_FIELDS)


def change_dataset(dataset: Dataset, changes: Mapping[str, Any], *, actor: str, now: datetime) -> Dataset:
    """Sets the named fields, all or none. Raises Refused, or Conflict where the dataset changed since it was read."""
    return prepare_change(dataset, changes).write(actor=actor, now=now)


def prepare_change(dataset: Dataset, changes: Mapping[str, Any]) -> PreparedChange:
    """Checks what differs, against the real tables where it is read from them, and writes nothing. Raises Refused, by field."""
    for name in changes:
        if name not in ALL_FIELDS:
            raise Refused.for_fields(
                {name: f"`{name}` cannot be changed after onboarding.{did_you_mean(name, ALL_FIELDS)}"}
            )
    redefined = {name: value for name, value in changes.items() if name in REDEFINED_FIELDS}
    others = {name: value for name, value in changes.items() if name in EDITABLE_FIELDS}
    redefinition = check_redefinition(dataset, redefined) if redefined else None
    if others or redefinition is None:
        check_changes(dataset, others)
    return PreparedChange(dataset, redefinition, others)


@dataclass(frozen=True)
class PreparedChange:
    """A change that was checked: what is left to do reads no table, so that no transaction spans a scan."""

    dataset: Dataset
    redefinition: Redefinition | None
    others: dict[str, Any]

    def write(self, *, actor: str, now: datetime) -> Dataset:
        """Raises Conflict where the dataset changed since it was read, or a job is at work on it, which is named."""
        with transaction.atomic():
            if self.redefinition is not None:
                _write_redefinition(self.dataset, self.redefinition, actor=actor, now=now)
            if self.others:
                write_changes(self.dataset, self.others, actor=actor, now=now)
        return self.dataset


@dataclass(frozen=True)
class Redefinition:
    """A change that was checked: from `before` to `after`, both as applications for onboarding."""

    before: OnboardingRequest
    after: OnboardingRequest
    team: Team
    upstream: tuple[tuple[Dataset, bool], ...]
    checked: CheckedRequest | None
    """None: its source, copies and partition stay, so that nothing of them was looked at."""

    @property
    def changed(self) -> tuple[str, ...]:
        return tuple(name for name in REDEFINED_FIELDS if getattr(self.before, name) != getattr(self.after, name))

    @property
    def rebuilds(self) -> bool:
        """Its partitions are others: no unit of before says anything about them."""
        return any(name in PARTITION_FIELDS for name in self.changed)

    @property
    def starts_rebuild(self) -> bool:
        """The new tables are built beside the present ones; what is only monitored is read anew at once."""
        return self.rebuilds and self.after.ingested


def request_of_dataset(dataset: Dataset) -> OnboardingRequest:
    """The application that would onboard the dataset as it is; without a connection and a table where none reads it."""
    feed = dataset.feed_or_none
    copies = list(dataset.copies.select_related("data_center", "connection"))
    hidden = hidden_names(feed)
    return OnboardingRequest(
        name=dataset.name,
        team=dataset.team.name,
        tier=dataset.tier,
        connection=feed.connection.name if feed and feed.connection else "",
        table=feed.object if feed and feed.connection else "",
        data_centers=tuple(copy.data_center.name for copy in copies),
        copies=tuple(
            CopyRequest(copy.data_center.name, copy.connection.name, copy.object)
            for copy in copies
            if copy.connection is not None
        ),
        kind=dataset.kind,
        primary_key=tuple(dataset.primary_key),
        record_key=tuple(dataset.record_key),
        reference_key=dataset.reference_key,
        cursor_column=feed.cursor_column if feed else "",
        partition_column=dataset.partition_column,
        partition_form=dataset.partition_form,
        grain=dataset.grain,
        partition_tz=dataset.partition_tz,
        event_time=dataset.event_time,
        upstream=_upstream_of(dataset),
        ingested=dataset.ingested,
        freshness_sla=dataset.freshness_sla,
        description=dataset.description,
        overrides=dict(dataset.overrides),
        columns_left_out=hidden[LEFT_OUT],
        columns_hashed=hidden[HASHED],
        columns_masked=hidden[MASKED],
    )


def _upstream_of(dataset: Dataset) -> tuple[UpstreamRequest, ...]:
    edges = dataset.upstream_edges.order_by("upstream__name").values_list("upstream__name", "one_to_one")
    return tuple(UpstreamRequest(name, one_to_one) for name, one_to_one in edges)


def check_redefinition(dataset: Dataset, changes: Mapping[str, Any]) -> Redefinition:
    """Reads the tables where what is read differs, writes nothing. Raises Refused with a reason for each field."""
    before = request_of_dataset(dataset)
    after = replace(before, **_normalised(before, changes))
    is_read_otherwise = any(getattr(before, name) != getattr(after, name) for name in READ_FIELDS)
    redefinition = _checked(before, after) if is_read_otherwise else _checked_names(before, after)
    if not redefinition.changed:
        raise Refused("Nothing differs; nothing was changed.")
    if dataset.ingested:
        _check_rebuild(dataset, redefinition)
    _check_upstream(dataset, redefinition)
    return redefinition


def _checked(before: OnboardingRequest, after: OnboardingRequest) -> Redefinition:
    if not before.connection:
        _refuse_unread(before, after)
    checked = check_request(after, before=before)
    after = replace(after, partition_form=checked.partition_form)
    return Redefinition(before, after, checked.team, tuple(checked.upstream), checked)


def _refuse_unread(before: OnboardingRequest, after: OnboardingRequest) -> NoReturn:
    """Of a dataset whose rows come from a changelog or a pipeline, or that has no feed."""
    why = "`{}` is not read by a connection, so its {} stays."
    differing = [name for name in READ_FIELDS if getattr(before, name) != getattr(after, name)]
    raise Refused.for_fields({name: why.format(before.name, name) for name in differing})


def _checked_names(before: OnboardingRequest, after: OnboardingRequest) -> Redefinition:
    """Of a change of owner or upstream: no table is read."""
    problems = Problems()
    team = find_by_name(problems, "team", Team, after.team)
    named = after.upstream if after.upstream != before.upstream else ()
    upstream = [(find_by_name(problems, "upstream", Dataset, up.dataset), up.one_to_one) for up in named]
    problems.raise_if_any()
    assert team is not None  # a missing one is a problem
    return Redefinition(before, after, team, tuple((made_of, flag) for made_of, flag in upstream if made_of), None)


def _check_rebuild(dataset: Dataset, redefinition: Redefinition) -> None:
    """While tables are built, what they are built from stays."""
    source = [name for name in SOURCE_FIELDS if name in redefinition.changed]
    concerned = [name for name in READ_FIELDS if name in redefinition.changed]
    under_way = open_rebuild(dataset) if concerned else None
    if under_way is not None:
        why = (
            f"A rebuild of `{dataset.name}` is under way since {under_way.asked_at:%Y-%m-%d %H:%M} UTC, by "
            f"{under_way.asked_by}. Wait until it has switched, or cancel it."
        )
        raise Refused.for_fields(dict.fromkeys(concerned, why))
    if redefinition.rebuilds and source:
        why = "Another partition builds every table anew. Change the source before that, or after it has switched."
        raise Refused.for_fields(dict.fromkeys(source, why))
    feed = dataset.feed_or_none
    if redefinition.rebuilds and feed is not None and feed.paused:
        why = "The feed is paused, so no table can be built. Resume it first."
        raise Refused.for_fields({name: why for name in PARTITION_FIELDS if name in redefinition.changed})


def _normalised(before: OnboardingRequest, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Of copies that stay what was known; those of data centers that go are left out."""
    values = dict(changes)
    if "partition_column" in values:
        values["partition_column"] = ", ".join(split_columns(values["partition_column"]))
    if values.get("partition_column", before.partition_column) != before.partition_column:
        values.setdefault("partition_form", "")  # as the type of the other column says
    if "data_centers" in values:
        values["data_centers"] = tuple(sorted(dict.fromkeys(values["data_centers"])))
    if "upstream" in values:
        values["upstream"] = tuple(sorted(values["upstream"], key=lambda upstream: upstream.dataset))
    if set(values) & set(SOURCE_FIELDS):
        values["copies"] = _copies_elsewhere(before, values)
    return values


def _copies_elsewhere(before: OnboardingRequest, values: Mapping[str, Any]) -> tuple[CopyRequest, ...]:
    centers = values.get("data_centers", before.data_centers)
    named: Sequence[CopyRequest] = values.get("copies", ())
    by_center = {copy.data_center: copy for copy in before.copies if copy.data_center in centers}
    connection, table = (values.get(name, getattr(before, name)) for name in ("connection", "table"))
    by_center |= {copy.data_center: copy for copy in named}
    copies = (copy for copy in by_center.values() if (copy.connection, copy.table) != (connection, table))
    return tuple(sorted(copies, key=lambda copy: copy.data_center))


def _check_upstream(dataset: Dataset, redefinition: Redefinition) -> None:
    """Nothing is made from itself, however far around; what lineage tells of, lineage takes back."""
    if "upstream" not in redefinition.changed:
        return
    wanted = {upstream.pk for upstream, _ in redefinition.upstream}
    from_lineage = (
        dataset.upstream_edges.exclude(source="").exclude(upstream__in=wanted).select_related("upstream").first()
    )
    if from_lineage is not None:
        raise Refused.for_fields(
            {
                "upstream": f"{from_lineage.upstream} is upstream by the lineage of {from_lineage.source}: it goes only where that says so."
            }
        )
    _refuse_circle(dataset, redefinition)


def _refuse_circle(dataset: Dataset, redefinition: Redefinition) -> None:
    below, waiting = {dataset.pk}, {dataset.pk}
    while waiting:
        edges = LineageEdge.objects.filter(upstream__in=waiting).values_list("downstream", flat=True)
        waiting = set(edges) - below
        below |= waiting
    for upstream, _ in redefinition.upstream:
        if upstream.pk in below:
            raise Refused.for_fields(
                {"upstream": f"{upstream} is made from {dataset.name}: it cannot be its upstream."}
            )


def _write_redefinition(dataset: Dataset, redefinition: Redefinition, *, actor: str, now: datetime) -> None:
    unchanged = Dataset.objects.filter(pk=dataset.pk, metadata_version=dataset.metadata_version, offboarded_at=None)
    if not unchanged.update(**_dataset_values(redefinition), metadata_version=F("metadata_version") + 1):
        raise Conflict(
            f"Dataset `{dataset.name}` was changed by somebody else just now; nothing was changed. Look again."
        )
    dataset.refresh_from_db()
    if redefinition.starts_rebuild:
        partition = {name: getattr(redefinition.after, name) for name in PARTITION_FIELDS}
        start_rebuild(dataset, partition, actor=actor, now=now)
    else:
        _write_copies(dataset, redefinition, now=now)
    if "upstream" in redefinition.changed:
        _write_upstream(dataset, redefinition)
    if _is_compared_otherwise(dataset, redefinition):
        retest_comparison(dataset.pk, now=now)
    bump_compared_datasets(dataset)
    was, becomes = (_audited(side, redefinition.changed) for side in (redefinition.before, redefinition.after))
    audit_log.record(actor, "redefine", f"dataset:{dataset.name}", now=now, was=was, becomes=becomes)
    wake_on_metadata_change()


def _is_compared_otherwise(dataset: Dataset, redefinition: Redefinition) -> bool:
    """With another dataset row by row, or, where jobs load it, with another table."""
    if dataset.ingested and {"connection", "table"} & set(redefinition.changed):
        return True
    before, after = (
        {upstream.dataset for upstream in side.upstream if upstream.one_to_one}
        for side in (redefinition.before, redefinition.after)
    )
    return before != after


def _dataset_values(redefinition: Redefinition) -> dict[str, Any]:
    after, checked = redefinition.after, redefinition.checked
    side = redefinition.before if redefinition.starts_rebuild else after
    values: dict[str, Any] = {name: getattr(side, name) for name in PARTITION_FIELDS}
    if checked is not None and {"connection", "table"} & set(redefinition.changed):
        values["columns"] = stored_columns(checked.table, after.hidden)
    return values | {"team": redefinition.team}


def _write_copies(dataset: Dataset, redefinition: Redefinition, *, now: datetime) -> None:
    """The feed, and each copy that goes, comes, lies elsewhere or is built anew."""
    checked, changed = redefinition.checked, redefinition.changed
    if checked is None or not set(READ_FIELDS) & set(changed):
        return
    stays = () if redefinition.rebuilds else redefinition.after.data_centers
    gone = dataset.copies.exclude(data_center__name__in=stays)
    moved = [] if redefinition.rebuilds else _moved_copies(dataset, redefinition.after, checked)
    is_reloaded = dataset.ingested and bool({"connection", "table"} & set(changed))
    _refuse_at_work([*gone, *(dataset.copies.all() if is_reloaded else moved)])
    gone.update(removed_at=now)
    source, locations = _with_a_copy_at_the_feed(redefinition.after, checked)
    Feed.objects.filter(dataset=dataset).update(connection=source.connection, object=source.table)
    kept = {copy.data_center_id: copy.pk for copy in dataset.copies.all()}
    # In two steps: of two copies that change places, none may be where the other still is.
    dataset.copies.update(removed_at=now)
    for data_center in checked.data_centers:
        location = locations.get(data_center.name)
        if data_center.pk not in kept:
            create_copy(dataset, data_center, location)
            continue
        connection, table = (location.connection, location.table) if location else (None, "")
        DatasetCopy.with_removed.filter(pk=kept[data_center.pk]).update(
            removed_at=None, connection=connection, object=table
        )
    if not dataset.ingested:
        _refuse_loop(dataset, changed)
    if moved:
        retest_copies([copy.pk for copy in moved], now=now)


def _with_a_copy_at_the_feed(
    after: OnboardingRequest, checked: CheckedRequest
) -> tuple[CopySource, Mapping[str, CopySource]]:
    """Where the feed reads, and which copies lie elsewhere: of what is monitored one lies where the feed reads."""
    at_feed, locations = CopySource(checked.connection, after.table), dict(checked.locations)
    if not after.ingested and set(after.data_centers) <= set(locations):
        at_feed = locations.pop(after.data_centers[0])
    return at_feed, locations


def _moved_copies(dataset: Dataset, after: OnboardingRequest, checked: CheckedRequest) -> list[DatasetCopy]:
    """Of what is monitored, the copies that are read elsewhere from now on."""
    if dataset.ingested:
        return []
    at_table = CopySource(checked.connection, after.table)
    return [
        copy
        for copy in dataset.copies.select_related("data_center", "connection", "dataset__feed__connection")
        if copy.source is not None
        and copy.data_center.name in after.data_centers
        and CopySource(*copy.source) != checked.locations.get(copy.data_center.name, at_table)
    ]


def _refuse_loop(dataset: Dataset, changed: Sequence[str]) -> None:
    """By where its copies are now. Raises Refused."""
    elsewhere = [name for name in SOURCE_FIELDS if name in changed]
    if elsewhere and (problem := loop_problem(dataset.pk)):
        raise Refused.for_fields(dict.fromkeys(elsewhere, problem))


def _refuse_at_work(copies: Sequence[DatasetCopy]) -> None:
    at_work = running_jobs([copy.pk for copy in copies])
    if at_work:
        raise Conflict(f"{', '.join(at_work)}: a job is at work. Nothing was changed; change it when that has ended.")


def _write_upstream(dataset: Dataset, redefinition: Redefinition) -> None:
    """Looks once more for a circle: another change may have closed it since this one was checked."""
    concerned = Dataset.objects.filter(pk__in=[dataset.pk, *(upstream.pk for upstream, _ in redefinition.upstream)])
    list(concerned.select_for_update().order_by("pk").values_list("pk"))
    _refuse_circle(dataset, redefinition)
    wanted = {upstream.pk: one_to_one for upstream, one_to_one in redefinition.upstream}
    dataset.upstream_edges.exclude(upstream__in=wanted).delete()
    for upstream, one_to_one in wanted.items():
        LineageEdge.objects.update_or_create(
            upstream_id=upstream, downstream=dataset, defaults={"one_to_one": one_to_one}
        )


def _audited(side: OnboardingRequest, names: Sequence[str]) -> dict[str, Any]:
    """Names only: a connection's URL is not among them."""
    return {name: _json_value(getattr(side, name)) for name in names}


def _json_value(value: Any) -> Any:
    if isinstance(value, CopyRequest):
        return f"{value.data_center}: {value.connection}.{value.table}"
    if isinstance(value, UpstreamRequest):
        return f"{value.dataset}{' (one to one)' if value.one_to_one else ''}"
    return [_json_value(item) for item in value] if isinstance(value, tuple | list) else value
