"""Addresses of the home screen."""

from __future__ import annotations

from django.urls import path

from frontend.screens.home import views

urlpatterns = [
    path("", views.home, name="home"),
]
