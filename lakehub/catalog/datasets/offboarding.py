"""Off-boarding a dataset, and restoring it."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import F

from lakehub.accounts.audit import audit_log
from lakehub.catalog.datasets.copies import check_distinct_tables, copy_sources
from lakehub.catalog.datasets.wake_on_change import wake_on_metadata_change
from lakehub.catalog.models import Dataset, DatasetCopy, Rebuild, RebuildState
from lakehub.catalog.ports import loop_problem
from lakehub.catalog.validation import Problems
from lakehub.kernel.errors import Conflict, Refused


def offboard_dataset(dataset: Dataset, *, actor: str, now: datetime, why: str = "") -> None:
    """Ends feeding, testing and gating. Open incidents are resolved as off-boarded; history and the lake's data stay."""
    with transaction.atomic():
        if not Dataset.objects.filter(pk=dataset.pk, offboarded_at=None).update(offboarded_at=now):
            raise Conflict(f"Dataset `{dataset.name}` is off-boarded already; nothing was changed.")
        _cancel_open_rebuild(dataset, actor=actor, now=now)
        bump_compared_datasets(dataset)
        audit_log.record(actor, "offboard", f"dataset:{dataset.name}", now=now, **({"why": why} if why else {}))
        wake_on_metadata_change()
    dataset.offboarded_at = now


def _cancel_open_rebuild(dataset: Dataset, *, actor: str, now: datetime) -> None:
    """What was being built is dropped; nothing else of the dataset's is."""
    for rebuild in Rebuild.objects.filter(dataset=dataset, state=RebuildState.BUILDING):
        Rebuild.objects.filter(pk=rebuild.pk).update(state=RebuildState.CANCELLED, ended_by=actor, ended_at=now)
        DatasetCopy.with_removed.filter(rebuild=rebuild).update(removed_at=now)


def restore_dataset(dataset: Dataset, *, actor: str, now: datetime) -> None:
    """Onboards again what was let go: it is fed from where it stood, or bootstrapped if its copies were dropped since.

    Raises Conflict, or Refused where two of its copies have become one place since, or a pipeline would read what it makes.
    """
    if not dataset.ingested:
        problems = Problems()
        check_distinct_tables(problems, copy_sources(dataset))
        problems.raise_if_any()
    with transaction.atomic():
        left = Dataset.objects.filter(pk=dataset.pk, offboarded_at__isnull=False)
        if not left.update(
            offboarded_at=None, missing_since=None, missing_checks=0, metadata_version=F("metadata_version") + 1
        ):
            raise Conflict(f"Dataset `{dataset.name}` is onboarded already; nothing was changed.")
        if problem := loop_problem(dataset.pk):  # pipelines that were registered meanwhile have not seen it
            raise Refused(problem)
        bump_compared_datasets(dataset)
        audit_log.record(actor, "restore", f"dataset:{dataset.name}", now=now)
        wake_on_metadata_change()
    dataset.refresh_from_db()


def bump_compared_datasets(upstream: Dataset) -> None:
    """What is made from it is compared with it, or no longer."""
    compared = Dataset.objects.filter(upstream_edges__upstream=upstream, upstream_edges__one_to_one=True)
    Dataset.objects.filter(pk__in=compared.values("pk")).update(metadata_version=F("metadata_version") + 1)
