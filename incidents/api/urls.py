"""Addresses below /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, path

from incidents.api import (
    actions,
    alerts,
    bulk,
    following,
    gate,
    gate_decisions,
    incidents,
    messages,
    scores,
    status,
)

ACTIONS: tuple[tuple[str, type[actions.Action]], ...] = (
    ("acknowledge", actions.Acknowledge),
    ("release", actions.Release),
    ("annotate", actions.Annotate),
    ("comment", actions.Comment),
    ("assign", actions.Assign),
    ("snooze", actions.Snooze),
    ("wake", actions.Wake),
    ("rerun", actions.Rerun),
    ("resolve", actions.Resolve),
    ("reopen", actions.Reopen),
    ("reject", actions.Reject),
    ("backfill", actions.Backfill),
    ("merge", actions.Merge),
    ("split", actions.Split),
)

urlpatterns: list[URLPattern] = [
    path("gate", gate.Gate.as_view(), name="gate"),
    path("gate/query", gate.QueryGate.as_view(), name="gate-query"),
    path("gate/metrics/<str:name>", gate.MetricGate.as_view(), name="gate-metric"),
    path("gate/policies", gate_decisions.Policies.as_view(), name="gate-policies"),
    path("gate/overrides", gate_decisions.Overrides.as_view(), name="gate-overrides"),
    path("gate/overrides/<int:number>/end", gate_decisions.EndOverride.as_view(), name="gate-override-end"),
    path("scores", scores.WindowScores.as_view(), name="scores"),
    path("scores/noisy-tests", scores.NoisyTests.as_view(), name="noisy-tests"),
    path("status", status.Status.as_view(), name="status"),
    path("alerts/coverage", alerts.AlertCoverage.as_view(), name="alert-coverage"),
    path("datasets/<str:name>/alerts", alerts.Alerts.as_view(), name="alerts"),
    path("datasets/<str:name>/alerts/<str:category>", alerts.AlertDetail.as_view(), name="alert"),
    path("datasets/<str:name>/suppression", alerts.Suppression.as_view(), name="suppression"),
    path("datasets/<str:name>/upstream-incidents", alerts.UpstreamIncidents.as_view(), name="upstream-incidents"),
    path("teams/<str:name>/routes", alerts.Routes.as_view(), name="routes"),
    path("teams/<str:name>/routes/<int:number>", alerts.RouteDetail.as_view(), name="route"),
    path("teams/<str:name>/routes/<int:number>/test", messages.RouteTest.as_view(), name="route-test"),
    path("teams/<str:name>/channels/test", messages.ChannelTest.as_view(), name="channel-test"),
    path("teams/<str:name>/deliveries", messages.Deliveries.as_view(), name="deliveries"),
    path("teams/<str:name>/messages", messages.MessageTemplates.as_view(), name="messages"),
    path("teams/<str:name>/messages/<str:occasion>", messages.MessageTemplateDetail.as_view(), name="message"),
    path(
        "teams/<str:name>/messages/<str:occasion>/preview",
        messages.MessageTemplatePreview.as_view(),
        name="message-preview",
    ),
    path("message-variables", messages.MessageVariables.as_view(), name="message-variables"),
    path("incidents", incidents.Incidents.as_view(), name="incidents"),
    path("subscriptions", following.Subscriptions.as_view(), name="subscriptions"),
    path("datasets/<str:name>/subscription", following.SubscriptionDetail.as_view(), name="subscription"),
    path("incidents/bulk", bulk.BulkActions.as_view(), name="incidents-bulk"),
    path("incidents/bulk/<int:number>/undo", bulk.UndoBulkAction.as_view(), name="incidents-undo"),
    path("incidents/<int:number>", incidents.IncidentDetail.as_view(), name="incident"),
    path("incidents/<int:number>/impact", following.Impact.as_view(), name="incident-impact"),
    path("incidents/<int:number>/evidence", following.EvidenceList.as_view(), name="incident-evidence"),
    path("incidents/<int:number>/dispute", actions.Dispute.as_view(), name="incident-dispute"),
    *(path(f"incidents/<int:number>/{name}", view.as_view(), name=f"incident-{name}") for name, view in ACTIONS),
]
