"""Addresses of the alerts screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.alerts import views

urlpatterns = [
    path("datasets/<str:name>/alerts", views.dataset_alerts, name="dataset-alerts"),
    path("datasets/<str:name>/alerts/<str:category>", views.override_alert, name="dataset-alert"),
    path("datasets/<str:name>/suppress", views.set_suppression, name="dataset-suppress"),
    path("datasets/<str:name>/suppress/reset", views.reset_suppressions, name="dataset-suppress-reset"),
]
