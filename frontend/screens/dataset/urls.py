"""Addresses of the dataset screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.dataset import actions, follow_actions, ingestion_actions, rejected_views, views

urlpatterns = [
    path("datasets/<str:name>", views.quality, name="dataset"),
    path("datasets/<str:name>/incidents", views.incidents, name="dataset-incidents"),
    path("datasets/<str:name>/data", views.data, name="dataset-data"),
    path("datasets/<str:name>/ingestion", views.ingestion, name="dataset-ingestion"),
    path("datasets/<str:name>/rejected", rejected_views.rejected_rows, name="dataset-rejected"),
    path("datasets/<str:name>/rejected/replay", rejected_views.replay_rows, name="dataset-rejected-replay"),
    path("datasets/<str:name>/rejected/<str:key>", rejected_views.raw_row, name="dataset-rejected-raw"),
    path("datasets/<str:name>/lineage", views.lineage, name="dataset-lineage"),
    path("datasets/<str:name>/runs/<int:number>/start", ingestion_actions.start_run, name="dataset-run-start"),
    path("datasets/<str:name>/runs/<int:number>/cancel", ingestion_actions.cancel_run, name="dataset-run-cancel"),
    path("datasets/<str:name>/runs/<int:number>/retry", ingestion_actions.retry_run, name="dataset-run-retry"),
    path("datasets/<str:name>/index", ingestion_actions.run_index_job, name="dataset-index"),
    path("datasets/<str:name>/pause", ingestion_actions.pause, name="dataset-pause"),
    path("datasets/<str:name>/resume", ingestion_actions.resume, name="dataset-resume"),
    path("datasets/<str:name>/hooks", ingestion_actions.create_hook, name="dataset-hook-make"),
    path("datasets/<str:name>/hooks/<str:key>/revoke", ingestion_actions.revoke_hook, name="dataset-hook-revoke"),
    path("datasets/<str:name>/follow", follow_actions.follow, name="dataset-follow"),
    path("datasets/<str:name>/rerun", actions.rerun, name="dataset-rerun"),
]
