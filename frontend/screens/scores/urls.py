"""Addresses of the scores screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.scores import views

urlpatterns = [
    path("scores", views.scores, name="scores"),
    path("scores.csv", views.scores_csv, name="scores-csv"),
]
