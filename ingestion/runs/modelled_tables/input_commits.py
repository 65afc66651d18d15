"""When an input of a pipeline was committed to last."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db.models import OuterRef, Subquery

from ingestion.domain.pipelines.reading import inputs_of
from ingestion.models import Commit
from ingestion.spark.tables.timeline import TABLE_SERVICES
from lakehub.catalog.models import DatasetCopy

SERVICES = [operation.lower() for operation in TABLE_SERVICES]
"""Operations of commits that change no row."""


def newest_input_commits(copies: Collection[DatasetCopy]) -> dict[int, datetime]:
    """Of copies whose datasets pipelines make: by copy when the newest commit was completed that has changed rows of an input, whose changes are followed, beside it. One query."""
    followed = {
        copy.pk: {each.dataset for each in inputs_of(copy.dataset.pipeline.files) if each.is_followed}
        for copy in copies
    }
    commits = Commit.objects.filter(copy=OuterRef("pk")).exclude(operation__in=SERVICES)
    commits = commits.exclude(inserts=0, updates=0, deletes=0).order_by("-completed_at")
    inputs = DatasetCopy.objects.filter(
        dataset__name__in=set().union(*followed.values()), data_center__in={copy.data_center_id for copy in copies}
    ).annotate(newest=Subquery(commits.values("completed_at")[:1]))
    newest = {
        (name, data_center): at
        for name, data_center, at in inputs.values_list("dataset__name", "data_center", "newest")
        if at is not None
    }
    return {
        copy.pk: max(times)
        for copy in copies
        if (
            times := [
                newest[name, copy.data_center_id] for name in followed[copy.pk] if (name, copy.data_center_id) in newest
            ]
        )
    }
