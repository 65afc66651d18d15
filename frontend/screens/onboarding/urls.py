"""Addresses of the onboarding screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.onboarding import many_views, views

urlpatterns = [
    path("onboarding", views.onboarding, name="onboarding"),
    path("onboard-tables", many_views.onboard_tables, name="onboard-tables"),
    path("onboarding/<str:name>", views.onboarding_created, name="onboarding-made"),
]
