"""Addresses of the gate screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.gate import policy_views, views

urlpatterns = [
    path("gate", views.gate, name="gate"),
    path("gate/query", views.ask_with_sql, name="gate-query"),
    path("gate/policies", policy_views.policy_page, name="gate-policies"),
    path("gate/policies/remove", policy_views.remove_policy, name="gate-policy-remove"),
    path("gate/override", views.override, name="gate-override"),
    path("gate/overrides/<int:number>/end", views.end_override, name="gate-override-end"),
]
