"""Addresses of the positions screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.positions import views

urlpatterns = [
    path("datasets/<str:name>/positions", views.positions, name="dataset-positions"),
    path("datasets/<str:name>/positions/set", views.set_position, name="dataset-position-set"),
]
