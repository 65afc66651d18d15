"""Addresses of the scores screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.scores import csv_export, views

urlpatterns = [
    path("scores", views.scores, name="scores"),
    path("scores.csv", csv_export.scores_csv, name="scores-csv"),
]
