"""Addresses of the onboarding screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.onboarding import views

urlpatterns = [
    path("onboarding", views.onboarding, name="onboarding"),
    path("onboarding/<str:name>", views.onboarding_created, name="onboarding-made"),
]
