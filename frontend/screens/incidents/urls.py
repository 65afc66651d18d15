"""Addresses of the incidents screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.incidents import bulk_actions, user_report_views, views

urlpatterns = [
    path("incidents", views.incident_inbox, name="incidents"),
    path("incidents/report", user_report_views.report_incident, name="incident-report"),
    path("incidents/together", bulk_actions.act_on_incidents, name="incidents-together"),
    path("incidents/together/<int:number>/undo", bulk_actions.undo, name="incidents-undo"),
]
