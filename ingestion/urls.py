"""Addresses below /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, path

from ingestion import api

urlpatterns: list[URLPattern] = [
    path("datasets/<str:name>/runs", api.JobRunList.as_view(), name="runs"),
    path("datasets/<str:name>/runs/<int:number>/start", api.StartRun.as_view(), name="run-start"),
    path("datasets/<str:name>/runs/<int:number>/cancel", api.CancelRun.as_view(), name="run-cancel"),
    path("datasets/<str:name>/commits", api.CommitList.as_view(), name="commits"),
]
