"""Addresses of the pipeline screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.pipeline import views

urlpatterns = [
    path("datasets/<str:name>/pipeline", views.pipeline, name="dataset-pipeline"),
    path("datasets/<str:name>/pipeline/backfills", views.ask_backfill, name="dataset-pipeline-backfills"),
    path(
        "datasets/<str:name>/pipeline/backfills/<int:number>",
        views.act_on_backfill,
        name="dataset-pipeline-backfill",
    ),
    path("datasets/<str:name>/pipeline/refused/<int:number>", views.decide, name="dataset-pipeline-decide"),
]
