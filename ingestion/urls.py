"""Addresses below /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from ingestion import api
from ingestion.runs.backfills.api import BackfillAction, BackfillDetail, BackfillList
from ingestion.runs.index_use.api import IndexStateList
from ingestion.runs.modelled_tables.api import (
    ModelledTables,
    PipelineDetail,
    PipelineLineage,
    PipelineProgress,
    RefusedBatchDecision,
    RefusedBatchList,
)
from ingestion.runs.replicas.api import ReplicaDetail, ReplicaList

urlpatterns: list[URLPattern | URLResolver] = [
    path("datasets/<str:name>/runs", api.JobRunList.as_view(), name="runs"),
    path("datasets/<str:name>/runs/<int:number>", api.JobRunDetail.as_view(), name="run"),
    path("datasets/<str:name>/runs/<int:number>/start", api.StartRun.as_view(), name="run-start"),
    path("datasets/<str:name>/runs/<int:number>/cancel", api.CancelRun.as_view(), name="run-cancel"),
    path("datasets/<str:name>/runs/<int:number>/retry", api.RetryRun.as_view(), name="run-retry"),
    path("datasets/<str:name>/raw-chunks", api.RawChunkList.as_view(), name="raw-chunks"),
    path("datasets/<str:name>/index", IndexStateList.as_view(), name="index-states"),
    path("datasets/<str:name>/pipeline", PipelineDetail.as_view(), name="pipeline"),
    path("datasets/<str:name>/pipeline/lineage", PipelineLineage.as_view(), name="pipeline-lineage"),
    path("datasets/<str:name>/pipeline/progress", PipelineProgress.as_view(), name="pipeline-progress"),
    path("datasets/<str:name>/backfills", BackfillList.as_view(), name="backfills"),
    path("datasets/<str:name>/backfills/<int:number>", BackfillDetail.as_view(), name="backfill"),
    path("datasets/<str:name>/backfills/<int:number>/action", BackfillAction.as_view(), name="backfill-action"),
    path("datasets/<str:name>/refused-batches", RefusedBatchList.as_view(), name="refused-batches"),
    path(
        "datasets/<str:name>/refused-batches/<int:number>/decision",
        RefusedBatchDecision.as_view(),
        name="refused-batch-decision",
    ),
    path("modelled-tables", ModelledTables.as_view(), name="modelled-tables"),
    path("datasets/<str:name>/replicas", ReplicaList.as_view(), name="replicas"),
    path("datasets/<str:name>/replicas/<str:data_center>", ReplicaDetail.as_view(), name="replica"),
    path("datasets/<str:name>/pause", api.PauseIngestion.as_view(), name="ingestion-pause"),
    path("datasets/<str:name>/resume", api.ResumeIngestion.as_view(), name="ingestion-resume"),
    path("datasets/<str:name>/rebuild", api.RebuildDetail.as_view(), name="rebuild"),
    path("datasets/<str:name>/rebuild/accept", api.RebuildAcceptance.as_view(), name="rebuild-accept"),
    path("datasets/<str:name>/rebuild/drop", api.LeftTableDrop.as_view(), name="rebuild-drop"),
    path("datasets/<str:name>/commits", api.CommitList.as_view(), name="commits"),
    path("datasets/<str:name>/readers", api.ReaderList.as_view(), name="readers"),
    path("datasets/<str:name>/readers/<str:reader>", api.ReaderDetail.as_view(), name="reader"),
    path("datasets/<str:name>/errors", api.ErrorRowList.as_view(), name="error-rows"),
    path("datasets/<str:name>/errors/counts", api.ErrorCountList.as_view(), name="error-counts"),
    path("datasets/<str:name>/errors/replay", api.ErrorReplay.as_view(), name="error-replay"),
    path("datasets/<str:name>/errors/<str:key>", api.ErrorRowDetail.as_view(), name="error-row"),
    path("", include("ingestion.positions.urls")),
    path("schema-registry/", include("ingestion.schemas.urls")),
    path("", include("ingestion.schemas.subjects.urls")),
]
