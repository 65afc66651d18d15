"""Another partition of an ingested dataset, by a rebuild: new tables beside the present ones, then one switch, or none.

Until the switch the present tables are read, tested and fed by changes as before; the new ones are loaded and fed, and nothing
else. Ingestion says when they are whole (`ingestion.runs.rebuilds`). Definition, copies and lake paths switch in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import F

from lakehub.accounts.audit import audit_log
from lakehub.catalog.datasets.copies import create_copy
from lakehub.catalog.datasets.offboarding import bump_compared_datasets
from lakehub.catalog.datasets.wake_on_change import wake_on_metadata_change
from lakehub.catalog.models import PARTITION_FIELDS, Dataset, DatasetCopy, Rebuild, RebuildState
from lakehub.kernel.errors import Conflict, NotFound


def open_rebuild(dataset: Dataset) -> Rebuild | None:
    return Rebuild.objects.filter(dataset=dataset, state=RebuildState.BUILDING).first()


def find_rebuild(dataset: Dataset) -> Rebuild:
    """The one that is under way. Raises NotFound."""
    rebuild = open_rebuild(dataset)
    if rebuild is None:
        raise NotFound(f"No rebuild of `{dataset.name}` is under way. Change its partition to start one.")
    return rebuild


def start_rebuild(dataset: Dataset, partition: Mapping[str, str], *, actor: str, now: datetime) -> Rebuild:
    """A copy to be built for each present one, with the fields PARTITION_FIELDS. Raises Conflict where one is under way."""
    try:
        with transaction.atomic():
            rebuild = Rebuild.objects.create(dataset=dataset, asked_by=actor, asked_at=now, **partition)
            for copy in dataset.copies.select_related("data_center"):
                built = create_copy(dataset, copy.data_center, None, rebuild=rebuild)
                _audit(actor, "start rebuild", rebuild, now=now, data_center=copy.data_center.name, table=built.uri)
    except IntegrityError:
        raise Conflict(f"A rebuild of `{dataset.name}` is under way already; nothing was changed.") from None
    return rebuild


def accept_fewer_rows(rebuild: Rebuild, *, actor: str, now: datetime) -> None:
    """It may switch though the new tables hold fewer rows than the present ones. Raises Conflict."""
    with transaction.atomic():
        held = Rebuild.objects.filter(pk=rebuild.pk, state=RebuildState.BUILDING, accepted_by="").exclude(problem="")
        if not held.update(accepted_by=actor):
            raise Conflict(f"The rebuild of `{rebuild.dataset.name}` waits for nobody's decision; nothing was changed.")
        _audit(actor, "accept fewer rows", rebuild, now=now, why=rebuild.problem)


def switch_rebuild(rebuild: Rebuild, *, now: datetime) -> None:
    """The new tables take the place of the present ones. Raises Conflict where it has ended, or the dataset was off-boarded."""
    with transaction.atomic():
        dataset = Dataset.objects.select_for_update(of=("self",)).get(pk=rebuild.dataset_id)
        _end(rebuild, RebuildState.SWITCHED, actor="", now=now)
        old = {copy.data_center.name: copy.uri for copy in dataset.copies.select_related("data_center")}
        was = {name: getattr(dataset, name) for name in PARTITION_FIELDS}
        becomes = {name: getattr(rebuild, name) for name in PARTITION_FIELDS}
        dataset.copies.update(removed_at=now)
        DatasetCopy.with_removed.filter(rebuild=rebuild, removed_at=None).update(rebuild=None)
        Dataset.objects.filter(pk=dataset.pk).update(**becomes, metadata_version=F("metadata_version") + 1)
        bump_compared_datasets(dataset)
        _audit(rebuild.asked_by, "switch rebuild", rebuild, now=now, was=was, becomes=becomes, left=old)
        wake_on_metadata_change()


def cancel_rebuild(rebuild: Rebuild, *, actor: str, now: datetime) -> None:
    """The present tables stay as they are; what was built is dropped when no job is at work on it. Raises Conflict."""
    with transaction.atomic():
        _end(rebuild, RebuildState.CANCELLED, actor=actor, now=now)
        DatasetCopy.with_removed.filter(rebuild=rebuild).update(removed_at=now)
        _audit(actor, "cancel rebuild", rebuild, now=now)


def left_tables(dataset: Dataset) -> list[DatasetCopy]:
    """Copies that were removed and that had a table in the lake, newest first."""
    removed = DatasetCopy.with_removed.filter(dataset=dataset, removed_at__isnull=False).exclude(uri="")
    return list(removed.select_related("dataset", "data_center").order_by("-removed_at", "data_center__name"))


def _end(rebuild: Rebuild, state: RebuildState, *, actor: str, now: datetime) -> None:
    under_way = Rebuild.objects.filter(pk=rebuild.pk, state=RebuildState.BUILDING)
    if state is RebuildState.SWITCHED:
        under_way = under_way.filter(dataset__offboarded_at=None)
    if not under_way.update(state=state, ended_by=actor, ended_at=now):
        raise Conflict(f"The rebuild of `{rebuild.dataset.name}` has ended already; nothing was changed.")


def _audit(actor: str, action: str, rebuild: Rebuild, *, now: datetime, **facts: object) -> None:
    audit_log.record(actor, action, f"dataset:{rebuild.dataset.name}", now=now, rebuild=rebuild.pk, **facts)
