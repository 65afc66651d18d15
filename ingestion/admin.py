"""Ingestion as on-call sees it: rows are read here, changed by jobs; a run that waits can be cancelled."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from ingestion import runs
from ingestion.models import Commit, CopyLease, Finding, JobRun, TouchedPartition
from lakehub import clock
from lakehub.accounts.console import ReadOnly
from lakehub.kernel.errors import Conflict


class _Facts(ReadOnly, admin.ModelAdmin[Any]):
    """They are appended by jobs, and a form would only make them untrue."""


@admin.register(JobRun)
class JobRunAdmin(_Facts):
    list_display = ("id", "copy", "kind", "state", "attempt", "asked_by", "due_at", "started_at", "ended_at", "error")
    list_filter = ("state", "kind", "copy__data_center")
    search_fields = ("copy__dataset__name", "error")
    date_hierarchy = "due_at"
    list_select_related = ("copy__dataset", "copy__data_center")
    actions = ("cancel",)

    @admin.action(description="Cancel the runs that wait", permissions=["act"])
    def cancel(self, request: HttpRequest, chosen: QuerySet[JobRun]) -> None:
        for run in chosen.select_related("copy__dataset", "copy__data_center"):
            try:
                runs.cancel(run, actor=request.user.get_username(), now=clock.now())
            except Conflict as problem:
                self.message_user(request, str(problem), messages.WARNING)


@admin.register(Commit)
class CommitAdmin(_Facts):
    list_display = (
        "copy",
        "instant",
        "completed_at",
        "operation",
        "read",
        "applied",
        "errors",
        "inserts",
        "updates",
        "deletes",
    )
    list_filter = ("operation", "copy__data_center")
    search_fields = ("copy__dataset__name", "instant")
    list_select_related = ("copy__dataset", "copy__data_center")


@admin.register(TouchedPartition)
class TouchedPartitionAdmin(_Facts):
    list_display = ("copy", "start", "end", "rows", "claimed_at")
    list_filter = (("claimed_at", admin.EmptyFieldListFilter), "copy__data_center")
    list_select_related = ("copy__dataset", "copy__data_center")


@admin.register(Finding)
class FindingAdmin(_Facts):
    list_display = ("copy", "kind", "start", "end", "raised_at", "cleared_at")
    list_filter = ("kind", ("cleared_at", admin.EmptyFieldListFilter))
    list_select_related = ("copy__dataset", "copy__data_center")


@admin.register(CopyLease)
class CopyLeaseAdmin(_Facts):
    list_display = ("copy", "holder", "until")
    list_select_related = ("copy__dataset", "copy__data_center")
