"""Addresses below /api/v1/schema-registry/: those of Confluent's Schema Registry, and deprecation."""

from __future__ import annotations

from django.urls import URLPattern, path

from ingestion.schemas import api

urlpatterns: list[URLPattern] = [
    path("subjects", api.SubjectList.as_view(), name="schema-subjects"),
    path("subjects/<str:subject>", api.SubjectLookup.as_view(), name="schema-lookup"),
    path("subjects/<str:subject>/team", api.SubjectTeam.as_view(), name="schema-team"),
    path("subjects/<str:subject>/versions", api.VersionList.as_view(), name="schema-versions"),
    path("subjects/<str:subject>/versions/<str:version>", api.VersionDetail.as_view(), name="schema-version"),
    path("subjects/<str:subject>/versions/<str:version>/schema", api.VersionText.as_view(), name="schema-text"),
    path(
        "subjects/<str:subject>/versions/<str:version>/deprecate",
        api.VersionDeprecation.as_view(),
        name="schema-deprecate",
    ),
    path("schemas/types", api.SchemaTypes.as_view(), name="schema-types"),
    path("schemas/ids/<int:number>", api.SchemaDetail.as_view(), name="schema"),
    path("schemas/ids/<int:number>/versions", api.SchemaVersions.as_view(), name="schema-subject"),
    path(
        "compatibility/subjects/<str:subject>/versions", api.CompatibilityCheckOfAll.as_view(), name="schema-check-all"
    ),
    path(
        "compatibility/subjects/<str:subject>/versions/<str:version>",
        api.CompatibilityCheck.as_view(),
        name="schema-check",
    ),
    path("config", api.Rule.as_view(), name="schema-rule"),
    path("config/<str:subject>", api.SubjectRule.as_view(), name="schema-subject-rule"),
    path("mode", api.Mode.as_view(), name="schema-mode"),
]
