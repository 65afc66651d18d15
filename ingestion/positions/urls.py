"""The address of positions below /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, path

from ingestion.positions import api

urlpatterns: list[URLPattern] = [
    path("datasets/<str:name>/positions", api.PositionList.as_view(), name="positions"),
    path("datasets/<str:name>/capture-hours", api.CaptureHourList.as_view(), name="capture-hours"),
]
