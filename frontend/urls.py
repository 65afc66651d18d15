"""Every page, by screen. An action is a POST to an address of its own and calls one use case."""

from __future__ import annotations

from django.urls import include, path

SCREENS = (
    "account",
    "alerts",
    "connection",
    "coverage",
    "dataset",
    "dataset_definition",
    "dataset_settings",
    "datasets",
    "gate",
    "help",
    "home",
    "incident",
    "incidents",
    "loads",
    "metrics",
    "onboarding",
    "pipeline",
    "positions",
    "rules",
    "schemas",
    "scores",
    "setup",
    "team",
    "quality_test",
)

urlpatterns = [path("", include(f"frontend.screens.{screen}.urls")) for screen in SCREENS]
