"""Addresses below /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, path

from lakehub.catalog import api

urlpatterns: list[URLPattern] = [
    path("data-centers", api.DataCenterList.as_view(), name="data-centers"),
    path("connections", api.ConnectionList.as_view(), name="connections"),
    path("connections/test", api.ConnectionCheck.as_view(), name="connections-test"),
    path("connections/<str:name>", api.ConnectionDetail.as_view(), name="connection"),
    path("connections/<str:name>/limits", api.ConnectionLimits.as_view(), name="connection-limits"),
    path("datasets", api.DatasetList.as_view(), name="datasets"),
    path("datasets/bulk", api.BulkOnboarding.as_view(), name="datasets-bulk"),
    path("datasets/<str:name>", api.DatasetDetail.as_view(), name="dataset"),
    path("datasets/<str:name>/restore", api.RestoreDataset.as_view(), name="dataset-restore"),
    path("lineage", api.PostedLineage.as_view(), name="lineage"),
    path("lineage/days", api.LineageDayList.as_view(), name="lineage-days"),
]
