"""Addresses of the metrics screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.metrics import views

urlpatterns = [
    path("business-metrics", views.metric_list, name="metric-list"),
    path("new-metric", views.new_metric, name="metric-new"),
    path("business-metrics/<str:name>", views.metric_page, name="metric-page"),
    path("business-metrics/<str:name>/edit", views.edit_metric, name="metric-edit"),
    path("business-metrics/<str:name>/remove", views.remove_metric, name="metric-remove"),
]
