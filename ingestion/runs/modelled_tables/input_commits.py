"""When an input of a pipeline was committed to last."""

from __future__ import annotations

from django.db.models import OuterRef, Subquery

from ingestion.models import Commit
from ingestion.pipelines.registering import LINEAGE_SOURCE
from ingestion.spark.tables.timeline import TABLE_SERVICES
from lakehub.catalog.models import DatasetCopy, LineageEdge

SERVICES = [operation.lower() for operation in TABLE_SERVICES]
"""Operations of commits that change no row."""


def newest_input_commit() -> Subquery:
    """Of a query of copies that pipelines make: when the newest commit of an input beside each was completed. A look into an index for each input."""
    edges = LineageEdge.objects.filter(downstream=OuterRef(OuterRef("dataset")), source=LINEAGE_SOURCE)
    commits = Commit.objects.filter(copy=OuterRef("pk")).exclude(operation__in=SERVICES).order_by("-completed_at")
    inputs = DatasetCopy.objects.filter(data_center=OuterRef("data_center"), dataset__in=edges.values("upstream"))
    newest = inputs.annotate(newest=Subquery(commits.values("completed_at")[:1])).filter(newest__isnull=False)
    return Subquery(newest.order_by("-newest").values("newest")[:1])
