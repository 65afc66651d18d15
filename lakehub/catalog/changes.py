"""Changing what is known of a dataset, and letting it go. Each change raises `metadata_version` and is audited."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from lakehub.accounts import audit
from lakehub.catalog import grace
from lakehub.catalog.checking import Problems, check_evidence, check_length, check_overrides, find_table
from lakehub.catalog.metadata import TableMetadata
from lakehub.catalog.models import TIERS, Dataset, DatasetCopy, Feed
from lakehub.catalog.pushing import metadata_changed
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.suggest import did_you_mean

OF_DATASET = ("tier", "description", "primary_key", "freshness_sla", "grace_until", "overrides", "event_time")
OF_FEED = ("every", "inputs", "paused")
EDITABLE = OF_DATASET + OF_FEED


def live_dataset(name: str) -> Dataset:
    """The onboarded dataset with this name. Raises NotFound with the nearest name."""
    live = Dataset.objects.filter(offboarded_at=None)
    found = live.select_related("team").filter(name=name).first()
    if found is None:
        raise NotFound(f"There is no dataset `{name}`.{did_you_mean(name, live.values_list('name', flat=True)[:1000])}")
    return found


def any_dataset(name: str) -> Dataset:
    """The dataset with this name, off-boarded or not. Raises NotFound with the nearest name."""
    found = Dataset.objects.select_related("team").filter(name=name).first()
    return found if found is not None else live_dataset(name)


def change(dataset: Dataset, changes: dict[str, Any], *, actor: str, now: datetime) -> Dataset:
    """Sets the named fields. Raises Refused, or Conflict where the metadata changed since `dataset` was read."""
    _check(dataset, changes)
    was = {name: getattr(dataset.feed if name in OF_FEED else dataset, name) for name in changes}
    of_dataset = {name: value for name, value in changes.items() if name in OF_DATASET}
    of_feed = {name: value for name, value in changes.items() if name in OF_FEED}
    with transaction.atomic():
        unchanged = Dataset.objects.filter(pk=dataset.pk, metadata_version=dataset.metadata_version, offboarded_at=None)
        if not unchanged.update(**of_dataset, metadata_version=F("metadata_version") + 1):
            raise Conflict(
                f"Dataset `{dataset.name}` was changed by somebody else just now; nothing was changed. Look again."
            )
        if "grace_until" in changes:
            grace.note(dataset, changes["grace_until"], now=now)
        if of_feed:
            Feed.objects.filter(dataset=dataset).update(**of_feed)
        audit.record(actor, "change", f"dataset:{dataset.name}", now=now, was=_plain(was), becomes=_plain(changes))
        metadata_changed()
    dataset.refresh_from_db()
    return dataset


def refresh_columns(dataset: Dataset, *, actor: str, now: datetime) -> Dataset:
    """Reads the columns of the source again; a new version only where they differ. Raises Refused."""
    problems = Problems()
    table = find_table(problems, dataset.feed.connection, dataset.feed.object)
    problems.raise_any()
    assert table is not None  # a missing one is a problem
    return see_columns(dataset, table, actor=actor, now=now)


def see_columns(dataset: Dataset, table: TableMetadata, *, actor: str, now: datetime) -> Dataset:
    """The columns as they were read just now; a new version only where they differ."""
    columns = [{"name": c.name, "type": c.type.value, "nullable": c.nullable} for c in table.columns]
    if columns == dataset.columns:
        return dataset
    with transaction.atomic():
        Dataset.objects.filter(pk=dataset.pk).update(columns=columns, metadata_version=F("metadata_version") + 1)
        audit.record(actor, "schema", f"dataset:{dataset.name}", now=now, columns=[c["name"] for c in columns])
        metadata_changed()
    dataset.refresh_from_db()
    return dataset


def offboard(dataset: Dataset, *, actor: str, now: datetime, why: str = "") -> None:
    """Ends feeding, testing and gating. Open incidents are resolved as off-boarded; history and the lake's data stay."""
    with transaction.atomic():
        if not Dataset.objects.filter(pk=dataset.pk, offboarded_at=None).update(offboarded_at=now):
            raise Conflict(f"Dataset `{dataset.name}` is off-boarded already; nothing was changed.")
        _neighbour_changed(dataset)
        audit.record(actor, "offboard", f"dataset:{dataset.name}", now=now, **({"why": why} if why else {}))
        metadata_changed()
    dataset.offboarded_at = now


def restore(dataset: Dataset, *, actor: str, now: datetime) -> None:
    """Onboards again what was let go: it is fed from where it stood, or bootstrapped if its copies were dropped since."""
    with transaction.atomic():
        left = Dataset.objects.filter(pk=dataset.pk, offboarded_at__isnull=False)
        if not left.update(
            offboarded_at=None, missing_since=None, missing_looks=0, metadata_version=F("metadata_version") + 1
        ):
            raise Conflict(f"Dataset `{dataset.name}` is onboarded already; nothing was changed.")
        _neighbour_changed(dataset)
        audit.record(actor, "restore", f"dataset:{dataset.name}", now=now)
        metadata_changed()
    dataset.refresh_from_db()


def _neighbour_changed(upstream: Dataset) -> None:
    """What is made from it is compared with it, or no longer."""
    compared = Dataset.objects.filter(upstream_edges__upstream=upstream, upstream_edges__one_to_one=True)
    Dataset.objects.filter(pk__in=compared.values("pk")).update(metadata_version=F("metadata_version") + 1)


def _check(dataset: Dataset, changes: dict[str, Any]) -> None:
    problems = Problems()
    for name in changes:
        if name not in EDITABLE:
            problems.add(name, f"`{name}` cannot be changed after onboarding.{did_you_mean(name, EDITABLE)}")
    if "tier" in changes and changes["tier"] not in TIERS:
        problems.add("tier", f"There is no tier {changes['tier']}: tiers go from 0 (highest) to 5.")
    check_length(problems, "freshness_sla", changes.get("freshness_sla"))
    check_length(problems, "every", changes.get("every"), least=timedelta(seconds=1))
    if "overrides" in changes:
        check_overrides(problems, changes["overrides"], changes.get("tier", dataset.tier), dataset.partition_tz)
    if not hasattr(dataset, "feed"):
        for name in set(changes) & set(OF_FEED):
            problems.add(name, f"`{dataset.name}` is not fed, so there is no `{name}` to change.")
    _check_inputs(problems, dataset, changes.get("inputs"))
    known = [column["name"] for column in dataset.columns]
    named = {"primary_key": changes.get("primary_key", ()), "event_time": [changes.get("event_time") or known[0]]}
    for name, columns in named.items():
        for column in columns:
            if column not in known:
                problems.add(name, f"There is no column `{column}`.{did_you_mean(column, known)}")
    problems.raise_any()
    if changes.get("primary_key"):
        check_evidence(problems, "primary_key", changes["primary_key"], dataset.feed.connection, dataset.feed.object)
        problems.raise_any()
    if not changes:
        raise Refused("Nothing was named to change.")


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


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, datetime | timedelta) else value for name, value in values.items()}
