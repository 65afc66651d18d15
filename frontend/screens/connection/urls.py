"""Addresses of the connection screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.connection import views

urlpatterns = [
    path("connections/<str:name>", views.edit_connection, name="connection-edit"),
    path("connections/<str:name>/limits", views.limit, name="connection-limit"),
]
