"""Ingestion as on-call sees it: rows are read here, changed by jobs; a run that waits can be cancelled, or started."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from ingestion.domain.index_cluster.fractions import as_percent
from ingestion.models import (
    Backfill,
    BlockedInput,
    Capture,
    CaptureHour,
    Commit,
    CopyLease,
    Finding,
    IndexAllowance,
    IndexCluster,
    IndexShare,
    JobRun,
    LineageReceiver,
    Pipeline,
    RefusedBatch,
    Replica,
    SchemaSubject,
    SchemaVersion,
    TapServer,
    TouchedPartition,
)
from ingestion.runs import blocked_inputs, job_runs
from ingestion.runs.index_use.states import allowed_of, used_of, with_verifications, with_waits
from lakehub import clock
from lakehub.accounts.admin_mixins import ReadOnlyAdminMixin
from lakehub.kernel.errors import Conflict, Refused


class _ReadOnlyAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[Any]):
    """They are appended by jobs, and a form would only make them untrue."""


class StartRegardlessForm(forms.Form):
    """They begin without asking the gate; the reason is kept with each run and in the audit log."""

    why = forms.CharField(label="Reason", widget=forms.Textarea(attrs={"rows": 3}), max_length=2000)


class BlockedInputInline(ReadOnlyAdminMixin, admin.TabularInline[BlockedInput, JobRun]):
    model = BlockedInput
    verbose_name_plural = "waits for"
    fields = ("copy", "start", "end", "verdict", "reason", "incidents", "retry_at")
    extra = 0


@admin.register(JobRun)
class JobRunAdmin(_ReadOnlyAdmin):
    list_display = ("id", "copy", "kind", "state", "attempt", "asked_by", "due_at", "started_at", "ended_at", "error")
    list_filter = ("state", "kind", "copy__data_center")
    search_fields = ("copy__dataset__name", "error")
    date_hierarchy = "due_at"
    list_select_related = ("copy__dataset", "copy__data_center")
    inlines = (BlockedInputInline,)
    actions = ("cancel", "start_regardless")

    @admin.action(description="Cancel the runs that wait", permissions=["act"])
    def cancel(self, request: HttpRequest, chosen: QuerySet[JobRun]) -> None:
        for run in chosen.select_related("copy__dataset", "copy__data_center"):
            try:
                job_runs.cancel_run(run, actor=request.user.get_username(), now=clock.now())
            except Conflict as problem:
                self.message_user(request, str(problem), messages.WARNING)

    @admin.action(description="Start although an input is blocked…", permissions=["act"])
    def start_regardless(self, request: HttpRequest, chosen: QuerySet[JobRun]) -> HttpResponse | None:
        form = StartRegardlessForm(request.POST) if "apply" in request.POST else StartRegardlessForm()
        runs = job_runs.with_details(chosen)
        if not (form.is_bound and form.is_valid()):
            context = {
                **self.admin_site.each_context(request),
                "title": "Start although an input is blocked",
                "hint": StartRegardlessForm.__doc__,
                "checkbox": ACTION_CHECKBOX_NAME,
                "chosen": runs,
                "form": form,
            }
            return TemplateResponse(request, "ingestion/console/start.html", context)
        for run in runs:
            try:
                actor, why = request.user.get_username(), form.cleaned_data["why"]
                blocked_inputs.start_regardless(run, why=why, actor=actor, now=clock.now())
            except (Conflict, Refused) as problem:
                self.message_user(request, str(problem), messages.WARNING)
        return None


@admin.register(Commit)
class CommitAdmin(_ReadOnlyAdmin):
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
class TouchedPartitionAdmin(_ReadOnlyAdmin):
    list_display = ("copy", "start", "end", "rows", "claimed_at")
    list_filter = (("claimed_at", admin.EmptyFieldListFilter), "copy__data_center")
    list_select_related = ("copy__dataset", "copy__data_center")


@admin.register(Finding)
class FindingAdmin(_ReadOnlyAdmin):
    list_display = ("copy", "kind", "start", "end", "raised_at", "cleared_at")
    list_filter = ("kind", ("cleared_at", admin.EmptyFieldListFilter))
    list_select_related = ("copy__dataset", "copy__data_center")


@admin.register(CopyLease)
class CopyLeaseAdmin(_ReadOnlyAdmin):
    list_display = ("copy", "holder", "until")
    list_select_related = ("copy__dataset", "copy__data_center")


@admin.register(SchemaVersion)
class SchemaVersionAdmin(_ReadOnlyAdmin):
    list_display = ("id", "subject", "version", "registered_by", "registered_at", "deprecated_at")
    list_filter = (("deprecated_at", admin.EmptyFieldListFilter), "subject__compatibility")
    search_fields = ("subject__name",)
    list_select_related = ("subject",)


@admin.register(SchemaSubject)
class SchemaSubjectAdmin(_ReadOnlyAdmin):
    list_display = ("name", "team", "compatibility")
    list_filter = ("team", "compatibility")
    search_fields = ("name",)
    list_select_related = ("team",)


@admin.register(TapServer)
class TapServerAdmin(_ReadOnlyAdmin):
    list_display = ("address", "captured", "position", "event_at", "caught_up_at", "seen_at", "leased_by", "error")
    search_fields = ("address", "error")


@admin.register(CaptureHour)
class CaptureHourAdmin(_ReadOnlyAdmin):
    list_display = ("copy", "start", "source", "logged", "read", "is_partial")
    list_filter = ("is_partial", "copy__data_center")
    list_select_related = ("copy__dataset", "copy__data_center")


@admin.register(Capture)
class CaptureAdmin(_ReadOnlyAdmin):
    list_display = (
        "topic",
        "feed",
        "load",
        "captured_load",
        "captured_table",
        "captured_from",
        "stopped_load",
        "stopped_why",
    )
    search_fields = ("topic", "captured_table", "stopped_why")
    list_select_related = ("feed__dataset", "feed__connection")


@admin.register(IndexCluster)
class IndexClusterAdmin(_ReadOnlyAdmin):
    list_display = ("name", "data_center", "qps_per_server", "benchmarked_at", "indexes_lost_at")
    fields = list_display
    """Without the address: HBase asks nobody who reaches it for a password."""
    list_select_related = ("data_center",)


@admin.display(description="of the cluster", ordering="fraction")
def _part(row: IndexShare | IndexAllowance) -> str:
    return as_percent(row.fraction)


@admin.register(IndexShare)
class IndexShareAdmin(_ReadOnlyAdmin):
    list_display = (
        "copy",
        "cluster",
        "rows",
        "servers",
        "part_by_hand",
        _part,
        "allowed_per_s",
        "used_per_s",
        "requests",
        "used_at",
        "verified_at",
        "is_right",
        "waits_for",
    )
    list_filter = ("cluster",)
    list_select_related = ("copy__dataset", "copy__data_center", "cluster")

    def get_queryset(self, request: HttpRequest) -> QuerySet[IndexShare]:
        return with_waits(with_verifications(super().get_queryset(request)))

    @admin.display(description="of the cluster, by hand")
    def part_by_hand(self, share: IndexShare) -> str | None:
        return None if share.fraction_by_hand is None else as_percent(share.fraction_by_hand)

    @admin.display(description="may ask, requests/s")
    def allowed_per_s(self, share: IndexShare) -> int | None:
        return allowed_of(share)

    @admin.display(description="last asked, requests/s")
    def used_per_s(self, share: IndexShare) -> int | None:
        return used_of(share)

    @admin.display(description="last verified")
    def verified_at(self, share: Any) -> Any:
        return share.verified_at

    @admin.display(description="right, as far as is known", boolean=True)
    def is_right(self, share: Any) -> bool:
        return not share.is_wrong

    @admin.display(description="waits for")
    def waits_for(self, share: Any) -> Any:
        return share.waits_for


@admin.register(IndexAllowance)
class IndexAllowanceAdmin(_ReadOnlyAdmin):
    list_display = ("run", "share", _part, "told_part", "leased_by", "leased_until")
    list_select_related = ("run__copy__dataset", "run__copy__data_center", "share__copy__dataset", "share__cluster")

    @admin.display(description="of the cluster, as the job was told last")
    def told_part(self, allowance: IndexAllowance) -> str:
        return as_percent(allowance.told_fraction)


@admin.register(Backfill)
class BackfillAdmin(_ReadOnlyAdmin):
    """Asked for and changed by API, page and `manage.py backfills`, which check it."""

    list_display = ("id", "copy", "first", "last", "state", "asked_by", "asked_at", "ended_at", "error")
    list_filter = ("state",)
    search_fields = ("copy__dataset__name",)
    exclude = ("noted",)


@admin.register(RefusedBatch)
class RefusedBatchAdmin(_ReadOnlyAdmin):
    """Decided on the dataset's page, with a reason. Without samples, which are rows of data."""

    list_display = ("copy", "kind", "refused_at", "outcome", "decided_by", "ended_at")
    list_filter = ("outcome",)
    search_fields = ("copy__dataset__name",)
    exclude = ("samples",)


@admin.register(Replica)
class ReplicaAdmin(_ReadOnlyAdmin):
    """Set by API and `manage.py replicate`, which check it."""

    list_display = ("copy", "source", "mib_per_s", "asked_by", "asked_at")
    list_select_related = ("copy__dataset", "copy__data_center", "source__dataset", "source__data_center")


@admin.register(Pipeline)
class PipelineAdmin(_ReadOnlyAdmin):
    """Its files are changed by registering them again, which checks them."""

    list_display = ("dataset", "changed_at", "changed_by")
    search_fields = ("dataset__name",)


@admin.register(LineageReceiver)
class LineageReceiverAdmin(_ReadOnlyAdmin):
    list_display = ("id", "last_sent_at", "failures", "next_try_at", "last_error")
