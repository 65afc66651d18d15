"""Addresses of the datasets screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.datasets import views

urlpatterns = [
    path("datasets", views.datasets, name="datasets"),
]
