"""Addresses of the loads screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.loads import views

urlpatterns = [
    path("datasets/<str:name>/loads", views.loads, name="dataset-loads"),
    path("datasets/<str:name>/loads/again", views.load_again, name="dataset-load-again"),
    path("datasets/<str:name>/loads/rows", views.read_rows, name="dataset-rows-again"),
]
