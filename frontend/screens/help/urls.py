"""Addresses of the help screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.help import views

urlpatterns = [
    path("help/glossary", views.glossary_page, name="glossary"),
]
