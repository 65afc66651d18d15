"""Addresses below /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, path

from incidents import api

ACTIONS: tuple[tuple[str, type[api.Action]], ...] = (
    ("acknowledge", api.Acknowledge),
    ("release", api.Release),
    ("annotate", api.Annotate),
    ("comment", api.Comment),
    ("assign", api.Assign),
    ("snooze", api.Snooze),
    ("rerun", api.Rerun),
    ("resolve", api.Resolve),
    ("reopen", api.Reopen),
    ("reject", api.Reject),
    ("merge", api.Merge),
    ("split", api.Split),
)

urlpatterns: list[URLPattern] = [
    path("gate", api.Gate.as_view(), name="gate"),
    path("scores", api.ScoresOfWindow.as_view(), name="scores"),
    path("incidents", api.Incidents.as_view(), name="incidents"),
    path("incidents/<int:number>", api.OneIncident.as_view(), name="incident"),
    path("incidents/<int:number>/dispute", api.Dispute.as_view(), name="incident-dispute"),
    *(path(f"incidents/<int:number>/{name}", view.as_view(), name=f"incident-{name}") for name, view in ACTIONS),
]
