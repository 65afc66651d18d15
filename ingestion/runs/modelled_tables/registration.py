"""Registering a pipeline, with the jobs that it takes where its table has rows that may be others by the new files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from ingestion.models import JobKind
from ingestion.pipelines.checking import Checked
from ingestion.pipelines.registering import register_pipeline
from ingestion.runs import job_runs
from ingestion.runs.copy_lag import has_table
from lakehub.catalog.models import Dataset


@dataclass(frozen=True)
class Registration:
    """`rebuilds`: how many of its tables are recomputed."""

    dataset: Dataset
    is_new: bool
    rebuilds: int


def register(
    texts: Mapping[str, str],
    *,
    actor: str,
    may: Callable[[Checked], None] = lambda checked: None,
    basis: str = "",
    now: datetime,
) -> Registration:
    """`may` raises PermissionDenied. `basis`: of the plan that was shown; empty: none was. Raises BadPipeline, Refused and Conflict."""
    with transaction.atomic():
        registered = register_pipeline(texts, actor=actor, may=may, basis=basis, now=now)
        # Replicas follow the copy that they are made from.
        copies = registered.dataset.copies.filter(replica=None).select_related("dataset", "data_center")
        with_rows = [copy for copy in copies if has_table(copy)] if registered.remakes_rows else []
        for copy in with_rows:
            job_runs.request_run(copy, JobKind.BOOTSTRAP, {"replace": True}, asked_by=actor, now=now)
    return Registration(registered.dataset, registered.is_new, len(with_rows))
