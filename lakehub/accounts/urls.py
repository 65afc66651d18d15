"""Addresses below /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, path

from lakehub.accounts import api

urlpatterns: list[URLPattern] = [
    path("tokens", api.TokenList.as_view(), name="tokens"),
    path("tokens/<str:prefix>", api.TokenDetail.as_view(), name="token"),
    path("audit", api.AuditLog.as_view(), name="audit"),
    path("audit/export", api.AuditExport.as_view(), name="audit-export"),
]
