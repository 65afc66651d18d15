"""Addresses of the dataset settings screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.dataset_settings import views

urlpatterns = [
    path("datasets/<str:name>/settings", views.dataset_settings, name="dataset-settings"),
    path("datasets/<str:name>/offboard", views.offboard_dataset, name="dataset-offboard"),
    path("datasets/<str:name>/restore", views.restore_dataset, name="dataset-restore"),
]
