"""Addresses of the coverage screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.coverage import views

urlpatterns = [
    path("coverage", views.coverage_page, name="coverage"),
    path("coverage/unverified", views.unverified_page, name="unverified"),
]
