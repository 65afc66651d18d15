"""Addresses of the incident screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.incident import actions, csv_export, ownership_actions, views

urlpatterns = [
    path("incidents/<int:pk>/answer", actions.answer_report, name="incident-answer"),
    path("incidents/<int:pk>", views.incident_page, name="incident"),
    path("incidents/<int:pk>/missing.csv", csv_export.missing_records_csv, name="incident-missing"),
    path("incidents/<int:pk>/differences.csv", csv_export.differing_records_csv, name="incident-differences"),
    path("incidents/<int:pk>/acknowledge", actions.acknowledge, name="incident-acknowledge"),
    path("incidents/<int:pk>/release", ownership_actions.release, name="incident-release"),
    path("incidents/<int:pk>/assign", ownership_actions.assign, name="incident-assign"),
    path("incidents/<int:pk>/merge", ownership_actions.merge, name="incident-merge"),
    path("incidents/<int:pk>/split", ownership_actions.split, name="incident-split"),
    path("incidents/<int:pk>/backfill", ownership_actions.backfill, name="incident-backfill"),
    path("incidents/<int:pk>/rerun", actions.rerun, name="incident-rerun"),
    path("incidents/<int:pk>/annotate", actions.annotate, name="incident-annotate"),
    path("incidents/<int:pk>/comment", actions.comment, name="incident-comment"),
    path("incidents/<int:pk>/snooze", actions.snooze, name="incident-snooze"),
    path("incidents/<int:pk>/wake", actions.end_snooze, name="incident-wake"),
    path("incidents/<int:pk>/resolve", actions.resolve, name="incident-resolve"),
    path("incidents/<int:pk>/reopen", actions.reopen, name="incident-reopen"),
]
