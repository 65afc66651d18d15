"""Addresses below /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, path

from incidents.api import actions, bulk, gate, incidents, scores

ACTIONS: tuple[tuple[str, type[actions.Action]], ...] = (
    ("acknowledge", actions.Acknowledge),
    ("release", actions.Release),
    ("annotate", actions.Annotate),
    ("comment", actions.Comment),
    ("assign", actions.Assign),
    ("snooze", actions.Snooze),
    ("rerun", actions.Rerun),
    ("resolve", actions.Resolve),
    ("reopen", actions.Reopen),
    ("reject", actions.Reject),
    ("merge", actions.Merge),
    ("split", actions.Split),
)

urlpatterns: list[URLPattern] = [
    path("gate", gate.Gate.as_view(), name="gate"),
    path("scores", scores.ScoresOfWindow.as_view(), name="scores"),
    path("incidents", incidents.Incidents.as_view(), name="incidents"),
    path("incidents/bulk", bulk.Together.as_view(), name="incidents-bulk"),
    path("incidents/bulk/<int:number>/undo", bulk.Undo.as_view(), name="incidents-undo"),
    path("incidents/<int:number>", incidents.OneIncident.as_view(), name="incident"),
    path("incidents/<int:number>/dispute", actions.Dispute.as_view(), name="incident-dispute"),
    *(path(f"incidents/<int:number>/{name}", view.as_view(), name=f"incident-{name}") for name, view in ACTIONS),
]
