from __future__ import annotations

from typing import ClassVar

from django.contrib import admin
from django.http import HttpRequest

from lakehub.catalog.models import Connection, DataCenter, Dataset, DatasetCopy, Feed, LineageEdge


@admin.register(DataCenter)
class DataCenterAdmin(admin.ModelAdmin[DataCenter]):
    list_display = ("name", "lake_uri")


@admin.register(Connection)
class ConnectionAdmin(admin.ModelAdmin[Connection]):
    """The URL holds a password, so it is never shown; `manage.py connect` makes a connection."""

    list_display = ("name", "plugin", "team")
    list_filter = ("plugin", "team")
    exclude = ("url",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


class CopyInline(admin.TabularInline[DatasetCopy, Dataset]):
    model = DatasetCopy
    extra = 0


class FeedInline(admin.StackedInline[Feed, Dataset]):
    model = Feed
    extra = 0


class UpstreamInline(admin.TabularInline[LineageEdge, Dataset]):
    model = LineageEdge
    fk_name = "downstream"
    extra = 0


@admin.register(Dataset)
class DatasetAdmin(admin.ModelAdmin[Dataset]):
    list_display = ("name", "tier", "team", "kind", "ingested", "onboarded_at", "offboarded_at")
    list_filter = ("tier", "team", "kind")
    search_fields = ("name", "description")
    readonly_fields = ("onboarded_at", "offboarded_at", "metadata_version", "columns")
    inlines: ClassVar = [FeedInline, CopyInline, UpstreamInline]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # onboarding checks the keys against the real table; a form here would not
