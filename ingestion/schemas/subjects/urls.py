"""Addresses below /api/v1/schemas."""

from __future__ import annotations

from django.urls import URLPattern, path

from ingestion.schemas.subjects import api

urlpatterns: list[URLPattern] = [
    path("schemas", api.Subjects.as_view(), name="subject-list"),
    path("schemas/<str:subject>", api.SubjectVersions.as_view(), name="subject-versions"),
    path("schemas/<str:subject>/versions/<str:version>", api.VersionColumns.as_view(), name="subject-columns"),
    path("schemas/<str:subject>/diff", api.VersionDiff.as_view(), name="subject-diff"),
    path("schemas/<str:subject>/proposal", api.SchemaProposal.as_view(), name="subject-proposal"),
]
