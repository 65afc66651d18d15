"""Addresses of the dataset definition screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.dataset_definition import rebuild_views, views

urlpatterns = [
    path("datasets/<str:name>/definition", views.dataset_definition, name="dataset-definition"),
    path("datasets/<str:name>/rebuild/cancel", rebuild_views.cancel_rebuild, name="dataset-rebuild-cancel"),
    path("datasets/<str:name>/rebuild/accept", rebuild_views.accept_rebuild, name="dataset-rebuild-accept"),
    path("datasets/<str:name>/rebuild/drop", rebuild_views.drop_left_tables, name="dataset-rebuild-drop"),
]
