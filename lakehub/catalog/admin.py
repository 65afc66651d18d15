"""The catalog in the console, to look at. Changes go through the use cases, which check, version and audit them."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from lakehub import wiring
from lakehub.accounts.admin_mixins import ReadOnlyAdminMixin
from lakehub.catalog.datasets import changes
from lakehub.catalog.models import (
    Connection,
    DataCenter,
    Dataset,
    DatasetCopy,
    Feed,
    GracePeriod,
    LineageDay,
    LineageEdge,
    LineageTable,
    PostedRun,
)


@admin.register(DataCenter)
class DataCenterAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[DataCenter]):
    list_display = ("name", "lake_uri")


@admin.register(Connection)
class ConnectionAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[Connection]):
    """The URL holds a password, so it is never shown."""

    list_display = ("name", "plugin", "team")
    list_filter = ("plugin", "team")
    exclude = ("url",)


class CopyInline(ReadOnlyAdminMixin, admin.TabularInline[DatasetCopy, Dataset]):
    model = DatasetCopy


class FeedInline(ReadOnlyAdminMixin, admin.StackedInline[Feed, Dataset]):
    model = Feed


class GracePeriodInline(ReadOnlyAdminMixin, admin.TabularInline[GracePeriod, Dataset]):
    model = GracePeriod


class UpstreamInline(ReadOnlyAdminMixin, admin.TabularInline[LineageEdge, Dataset]):
    model = LineageEdge
    fk_name = "downstream"


@admin.register(Dataset)
class DatasetAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[Dataset]):
    list_display = ("name", "tier", "team", "kind", "ingested", "onboarded_at", "offboarded_at")
    list_filter = ("tier", "team", "kind")
    search_fields = ("name", "description")
    inlines: ClassVar = [FeedInline, CopyInline, UpstreamInline, GracePeriodInline]
    actions = ("pause", "go_on")

    @admin.action(description="Pause the feed", permissions=["act"])
    def pause(self, request: HttpRequest, chosen: QuerySet[Dataset]) -> None:
        self._set_paused(request, chosen, True)

    @admin.action(description="Go on with a feed that was paused", permissions=["act"])
    def go_on(self, request: HttpRequest, chosen: QuerySet[Dataset]) -> None:
        self._set_paused(request, chosen, False)

    def _set_paused(self, request: HttpRequest, chosen: QuerySet[Dataset], paused: bool) -> None:
        actor, now = request.user.get_username(), wiring.clock.now()
        fed = chosen.filter(offboarded_at=None, feed__paused=not paused)
        changed = [changes.update_dataset(dataset, {"paused": paused}, actor=actor, now=now) for dataset in fed]
        self.message_user(request, f"{len(changed)} feeds {'paused' if paused else 'go on'}.")


@admin.register(LineageDay)
class LineageDayAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[LineageDay]):
    list_display = ("day", "source", "attempt", "ended_at", "error")


@admin.register(LineageTable)
class LineageTableAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[LineageTable]):
    """What lineage tells of, onboarded or not."""

    list_display = ("namespace", "name", "connection", "dataset", "dropped")
    list_filter = ("dropped", "connection")
    list_select_related = ("connection", "dataset")
    search_fields = ("name",)


@admin.register(PostedRun)
class PostedRunAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[PostedRun]):
    list_display = ("job_namespace", "job_name", "run_id", "team", "event_at", "completed_at")
    list_filter = ("team",)
    list_select_related = ("team",)
    search_fields = ("job_name",)
