"""Addresses of the rules screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.rules import views

urlpatterns = [
    path("datasets/<str:name>/rules", views.dataset_rules, name="dataset-rules"),
    path("datasets/<str:name>/rules/take", views.accept_suggestions, name="dataset-rules-take"),
    path("datasets/<str:name>/rules/<int:number>/remove", views.remove_rule, name="dataset-rule-remove"),
]
