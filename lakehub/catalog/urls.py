"""Addresses below /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, path

from lakehub.catalog import api

urlpatterns: list[URLPattern] = [
    path("data-centers", api.DataCenters.as_view(), name="data-centers"),
    path("connections", api.Connections.as_view(), name="connections"),
    path("datasets", api.Datasets.as_view(), name="datasets"),
    path("datasets/bulk", api.Bulk.as_view(), name="datasets-bulk"),
    path("datasets/<str:name>", api.OneDataset.as_view(), name="dataset"),
    path("datasets/<str:name>/restore", api.Restore.as_view(), name="dataset-restore"),
    path("lineage/days", api.LineageDays.as_view(), name="lineage-days"),
]
