"""Addresses of the pipeline screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.pipeline import files_views, views

urlpatterns = [
    path("datasets/<str:name>/pipeline", views.pipeline, name="dataset-pipeline"),
    path("datasets/<str:name>/pipeline/files", files_views.edit_files, name="dataset-pipeline-files"),
    path("datasets/<str:name>/pipeline/files/apply", files_views.apply_files, name="dataset-pipeline-apply"),
    path("new-pipeline", files_views.new_pipeline, name="new-pipeline"),
    path("new-pipeline/register", files_views.register_new, name="new-pipeline-register"),
    path("datasets/<str:name>/pipeline/backfills", views.ask_backfill, name="dataset-pipeline-backfills"),
    path(
        "datasets/<str:name>/pipeline/backfills/<int:number>",
        views.act_on_backfill,
        name="dataset-pipeline-backfill",
    ),
    path("datasets/<str:name>/pipeline/refused/<int:number>", views.decide, name="dataset-pipeline-decide"),
]
