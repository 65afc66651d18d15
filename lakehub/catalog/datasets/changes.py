"""Changes of a dataset's metadata. Each raises `metadata_version` and is audited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from lakehub.accounts.audit import audit_log
from lakehub.catalog import ports
from lakehub.catalog.datasets import grace_periods
from lakehub.catalog.datasets.feed_options import effective_options, has_changelog, option_problems
from lakehub.catalog.datasets.hidden_columns import (
    HIDING_FIELDS,
    HiddenNames,
    check_generated,
    check_hidden_columns,
    check_types_stay,
    columns_in_lake,
    hidden_names,
    stored_columns,
    used_columns,
)
from lakehub.catalog.datasets.wake_on_change import wake_on_metadata_change
from lakehub.catalog.metadata import ColumnType, MetadataUnavailable, TableMetadata
from lakehub.catalog.models import TIERS, Connection, Dataset, DatasetCopy, Feed
from lakehub.catalog.storages import can_hide_columns, is_stream
from lakehub.catalog.validation import (
    Problems,
    check_duration,
    check_kind,
    check_overrides,
    read_key_evidence,
    read_table_metadata,
)
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.partitions.form import split_columns
from lakehub.kernel.suggest import did_you_mean

DATASET_FIELDS = (
    *("tier", "kind", "description", "primary_key", "freshness_sla", "grace_until", "overrides", "event_time"),
)
FEED_FIELDS = {
    "every": "every",
    "inputs": "inputs",
    "paused": "paused",
    "paused_why": "paused_why",
    "feed_options": "options",
    **{name: name for name in HIDING_FIELDS},
}
"""Each with the field of the feed that holds it."""
MAX_REASON_LENGTH = 2000
"""Characters of why a feed is paused."""
POLICY_FIELDS = ("schema_changes", "not_compared")
"""Kept among the overrides: what a change of columns is worth, and which columns are not compared across data centers."""
EDITABLE_FIELDS = (*DATASET_FIELDS, *FEED_FIELDS, *POLICY_FIELDS)


def update_dataset(dataset: Dataset, changes: dict[str, Any], *, actor: str, now: datetime) -> Dataset:
    """Sets the named fields. Raises Refused, or Conflict where the metadata changed since `dataset` was read."""
    check_changes(dataset, changes)
    return write_changes(dataset, changes, actor=actor, now=now)


def write_changes(dataset: Dataset, changes: dict[str, Any], *, actor: str, now: datetime) -> Dataset:
    """Sets the named fields, which were checked. Raises Conflict."""
    changes = _with_policies_as_overrides(dataset, changes)
    was = {name: current_value(dataset, name) for name in changes}
    of_dataset = {name: value for name, value in changes.items() if name in DATASET_FIELDS}
    if hiding := {name: changes[name] for name in HIDING_FIELDS if name in changes}:
        of_dataset["columns"] = columns_in_lake(dataset.columns, hidden_names(dataset.feed_or_none) | hiding)
    of_feed = {FEED_FIELDS[name]: value for name, value in changes.items() if name in FEED_FIELDS}
    of_feed |= _pause_facts(dataset, changes, actor, now)
    with transaction.atomic():
        unchanged = Dataset.objects.filter(pk=dataset.pk, metadata_version=dataset.metadata_version, offboarded_at=None)
        if not unchanged.update(**of_dataset, metadata_version=F("metadata_version") + 1):
            raise Conflict(
                f"Dataset `{dataset.name}` was changed by somebody else just now; nothing was changed. Look again."
            )
        if "grace_until" in changes:
            grace_periods.record_grace_period(dataset, changes["grace_until"], now=now)
        if of_feed:
            Feed.objects.filter(dataset=dataset).update(**of_feed)
        if "feed_options" in changes:
            _tell_index(dataset, was["feed_options"], changes["feed_options"], actor, now)
        audit_log.record(
            actor, "change", f"dataset:{dataset.name}", now=now, was=_json_values(was), becomes=_json_values(changes)
        )
        wake_on_metadata_change()
    dataset.refresh_from_db()
    return dataset


def _tell_index(
    dataset: Dataset, was: Mapping[str, Any], becomes: Mapping[str, Any], actor: str, now: datetime
) -> None:
    before, after = (effective_options(options)["index"] for options in (was, becomes))
    if before != after:
        ports.index_change_observer()(dataset.pk, before, after, actor=actor, now=now)


def _pause_facts(dataset: Dataset, changes: dict[str, Any], actor: str, now: datetime) -> dict[str, Any]:
    """Who pauses the feed, and when; nothing of it stays when it is resumed."""
    if "paused" not in changes or changes["paused"] == dataset.feed.paused:
        return {}
    if not changes["paused"]:
        return {"paused_by": "", "paused_at": None, "paused_why": ""}
    return {"paused_by": actor, "paused_at": now, "paused_why": changes.get("paused_why", "")}


def current_value(dataset: Dataset, name: str) -> Any:
    """What an editable field is now."""
    return getattr(dataset.feed, FEED_FIELDS[name]) if name in FEED_FIELDS else getattr(dataset, name)


def _with_policies_as_overrides(dataset: Dataset, changes: dict[str, Any]) -> dict[str, Any]:
    """An empty policy is the usual one."""
    policies = {name: changes[name] for name in POLICY_FIELDS if name in changes}
    if not policies:
        return changes
    overrides = {**changes.get("overrides", dataset.overrides), **policies}
    others = {name: value for name, value in changes.items() if name not in policies}
    return others | {
        "overrides": {name: value for name, value in overrides.items() if value or name not in POLICY_FIELDS}
    }


def refresh_columns(dataset: Dataset, *, actor: str, now: datetime) -> Dataset:
    """Reads the columns of the source again; a new version only where they differ. Raises Refused."""
    feed = dataset.feed
    if feed.connection is None:
        raise Refused(
            f"`{dataset.name}` comes from {feed.address}, which is not a table: its columns cannot be read again there."
        )
    problems = Problems()
    table = read_table_metadata(problems, feed.connection, feed.object)
    problems.raise_if_any()
    assert table is not None  # a missing one is a problem
    return record_columns(dataset, table, actor=actor, now=now)


def record_columns(dataset: Dataset, table: TableMetadata, *, actor: str, now: datetime) -> Dataset:
    """The columns as they were read just now; a new version only where they differ."""
    columns = stored_columns(table, hidden_names(dataset.feed_or_none))
    if _is_of_stream(dataset):
        names = {column["name"] for column in dataset.columns}
        columns = [*dataset.columns, *(column for column in columns if column["name"] not in names)]
    if columns == dataset.columns:
        return dataset
    with transaction.atomic():
        # Whoever reads them at the same time, for another copy, finds the same.
        known = Dataset.objects.select_for_update(of=("self",)).values_list("columns", flat=True).get(pk=dataset.pk)
        if columns == known:
            dataset.refresh_from_db()
            return dataset
        Dataset.objects.filter(pk=dataset.pk).update(columns=columns, metadata_version=F("metadata_version") + 1)
        audit_log.record(actor, "schema", f"dataset:{dataset.name}", now=now, columns=[c["name"] for c in columns])
        before, after = ({str(c["name"]): str(c["type"]) for c in each} for each in (known, columns))
        # A type that had no name, and has one now, is none that changed.
        before |= {name: after[name] for name, type_ in before.items() if type_ == ColumnType.OTHER and name in after}
        ports.schema_change_observer()(dataset.pk, dataset.overrides, before, after, now=now)
        wake_on_metadata_change()
    dataset.refresh_from_db()
    return dataset


def _is_of_stream(dataset: Dataset) -> bool:
    """A column that its newest messages lack is there all the same."""
    feed = dataset.feed_or_none
    return feed is not None and feed.connection is not None and is_stream(feed.connection.plugin)


def check_changes(dataset: Dataset, changes: dict[str, Any]) -> None:
    """Raises Refused with what is wrong, by field. A new key is looked up in the real rows."""
    problems = Problems()
    for name in changes:
        if name not in EDITABLE_FIELDS:
            problems.add(name, f"`{name}` cannot be changed after onboarding.{did_you_mean(name, EDITABLE_FIELDS)}")
    if "tier" in changes and changes["tier"] not in TIERS:
        problems.add("tier", f"There is no tier {changes['tier']}: tiers go from 0 (highest) to 5.")
    if "kind" in changes:
        check_kind(problems, changes["kind"])
    check_duration(problems, "freshness_sla", changes.get("freshness_sla"))
    check_duration(problems, "every", changes.get("every"), least=timedelta(seconds=1))
    if "overrides" in changes:
        check_overrides(problems, changes["overrides"], changes.get("tier", dataset.tier), dataset.partition_tz)
    _check_policies(problems, dataset, changes)
    if not hasattr(dataset, "feed"):
        for name in set(changes) & set(FEED_FIELDS):
            problems.add(name, f"`{dataset.name}` is not fed, so there is no `{name}` to change.")
    if "paused_why" in changes and not changes.get("paused"):
        problems.add("paused_why", "A reason belongs to a pause: give it together with `paused`.")
    _check_inputs(problems, dataset, changes.get("inputs"))
    options = changes.get("feed_options") or {}
    check_feed_options(problems, options, name=dataset.name, ingested=dataset.ingested, captured=has_changelog(dataset))
    _check_index(problems, dataset, options)
    _check_hidden(problems, dataset, changes)
    known_columns = [column["name"] for column in dataset.columns]
    named = {
        "primary_key": changes.get("primary_key", ()),
        "event_time": [changes.get("event_time") or known_columns[0]],
    }
    for name, columns in named.items():
        for column in columns:
            if column not in known_columns:
                problems.add(name, f"There is no column `{column}`.{did_you_mean(column, known_columns)}")
    problems.raise_if_any()
    feed = dataset.feed_or_none
    if changes.get("primary_key") and feed is not None and feed.connection is not None:
        read_key_evidence(problems, "primary_key", changes["primary_key"], feed.connection, feed.object)
        problems.raise_if_any()
    if not changes:
        raise Refused("Nothing was named to change.")


def _check_hidden(problems: Problems, dataset: Dataset, changes: dict[str, Any]) -> None:
    """What is named is looked up in the real table; a key or a time must not be one of them."""
    feed = dataset.feed_or_none
    before = hidden_names(feed)
    after = before | {name: changes[name] for name in HIDING_FIELDS if name in changes}
    if feed is None or not (
        (after != before) or ({"primary_key", "event_time"} & changes.keys() and any(after.values()))
    ):
        return
    captured = dataset.ingested and feed.connection is not None and can_hide_columns(feed.connection.plugin)
    table = None
    if captured and after != before and feed.connection is not None:
        table = read_table_metadata(problems, feed.connection, feed.object)
        if table is None:
            return
        check_types_stay(problems, before, after, table)
        _check_generated(problems, after, feed.connection, feed.object)
    used = used_columns(
        record_key=dataset.record_key,
        primary_key=changes.get("primary_key", dataset.primary_key),
        partition=split_columns(dataset.partition_column),
        others={
            "the event time": changes.get("event_time", dataset.event_time),
            "the reference key": dataset.reference_key,
        },
        table=table,
    )
    check_hidden_columns(problems, after, used, table, name=dataset.name, captured=captured)


def _check_generated(problems: Problems, hidden: HiddenNames, connection: Connection, table: str) -> None:
    try:
        check_generated(problems, hidden, ports.capture_findings(connection.url, table).generated)
    except MetadataUnavailable as error:
        problems.add("columns_masked", str(error))


def _check_policies(problems: Problems, dataset: Dataset, changes: dict[str, Any]) -> None:
    """Whoever leaves a column out of a comparison ought to hear when there is none by that name."""
    for name in POLICY_FIELDS:
        if changes.get(name):
            check_overrides(problems, {name: changes[name]}, dataset.tier, dataset.partition_tz, name=name)
    known_columns = [column["name"] for column in dataset.columns]
    key = changes.get("primary_key", dataset.primary_key)
    for column in changes.get("not_compared") or ():
        if column in key:
            problems.add("not_compared", f"`{column}` is part of the primary key, by which records are found.")
        elif known_columns and column not in known_columns:
            problems.add("not_compared", f"There is no column `{column}`.{did_you_mean(column, known_columns)}")


def check_feed_options(
    problems: Problems, options: Mapping[str, Any], *, name: str, ingested: bool, captured: bool
) -> None:
    """Of the dataset `name`, whether it is there already or to be onboarded."""
    if options and not ingested:
        problems.add("feed_options", f"`{name}` is only monitored: no job loads it, so its feed takes no options.")
        return
    for why in option_problems(options, captured=captured).values():
        problems.add("feed_options", why)


def _check_index(problems: Problems, dataset: Dataset, options: Mapping[str, Any]) -> None:
    """Only another one than the feed has: what is there already is no reason to refuse other changes."""
    feed = dataset.feed_or_none
    if feed is not None and options.get("index") not in (None, feed.options.get("index")):
        centers = dataset.copies.order_by("data_center__name").values_list("data_center__name", flat=True)
        check_index(problems, options, [*centers])


def check_index(problems: Problems, options: Mapping[str, Any], data_centers: Sequence[str]) -> None:
    index = options.get("index")
    if isinstance(index, str):
        for why in ports.index_check()(index, data_centers):
            problems.add("feed_options", why)


def _check_inputs(problems: Problems, dataset: Dataset, inputs: list[str] | None) -> None:
    """Each has a copy wherever the dataset has one, so that every run finds it."""
    for name in inputs or ():
        if name == dataset.name:
            problems.add("inputs", f"`{name}` is no input of itself.")
            continue
        copies = DatasetCopy.objects.filter(dataset__name=name, dataset__offboarded_at=None)
        lacking = dataset.copies.exclude(data_center__in=copies.values("data_center"))
        where = ", ".join(lacking.values_list("data_center__name", flat=True))
        if where:
            near = did_you_mean(name, Dataset.objects.filter(offboarded_at=None).values_list("name", flat=True)[:1000])
            problems.add("inputs", f"`{name}` has no copy in {where}.{near}")


def _json_values(values: dict[str, Any]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, datetime | timedelta) else value for name, value in values.items()}
