"""For on-call: what is tested, what came out, and rerunning it. Nothing here edits a fact."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from lakehub import wiring
from lakehub.accounts.admin_mixins import ReadOnlyAdminMixin
from lakehub.accounts.audit import audit_log
from quality.models import (
    BaselineAttempt,
    ChangePoll,
    ColumnRule,
    ExternalRun,
    Flip,
    GenerationStatus,
    Metric,
    PipelineHook,
    QualityTest,
    QualityTestVersion,
    Result,
    SkippedCheck,
    Unit,
)
from quality.planning import pipeline_hooks
from quality.state.waivers import request_rerun


class _ReadOnlyAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[Any]):
    """They are appended by the product, not by hand."""


class VersionInline(ReadOnlyAdminMixin, admin.TabularInline[QualityTestVersion, QualityTest]):
    model = QualityTestVersion
    fk_name = "test"
    extra = 0
    fields = ("number", "expression", "flattened", "sustain", "cadence", "created_at", "because")
    ordering = ("-number",)


@admin.register(QualityTest)
class QualityTestAdmin(_ReadOnlyAdmin):
    list_display = ("dataset", "key", "title", "category", "version", "gating", "generated", "retired_at")
    list_filter = ("category", "check_name", "generated", ("retired_at", admin.EmptyFieldListFilter))
    list_select_related = ("dataset", "version__test__dataset")
    search_fields = ("dataset__name", "key", "title")
    inlines: ClassVar = [VersionInline]


@admin.register(Unit)
class UnitAdmin(_ReadOnlyAdmin):
    list_display = ("test", "copy", "start", "end", "verdict", "reason", "latest_at", "due_at", "lane", "attempt")
    list_filter = ("verdict", "test__category", "copy__data_center", "lane")
    list_select_related = ("test__dataset", "copy__dataset", "copy__data_center")
    search_fields = ("test__dataset__name", "test__key")
    actions = ("rerun",)

    @admin.action(description="Rerun now", permissions=["act"])
    def rerun(self, request: HttpRequest, queryset: QuerySet[Unit]) -> None:
        now = wiring.clock.now()
        unit_count = request_rerun(list(queryset.values_list("pk", flat=True)), now=now)
        audit_log.record(request.user.get_username(), "run tests", "units", now=now, units=unit_count)
        self.message_user(request, f"{unit_count} units are run now.")


@admin.register(Result)
class ResultAdmin(_ReadOnlyAdmin):
    list_display = ("unit", "outcome", "observed", "threshold", "trigger", "read_at", "instant")
    list_filter = ("outcome", "trigger")
    list_select_related = ("unit__test__dataset", "unit__copy__dataset", "unit__copy__data_center")
    date_hierarchy = "read_at"


@admin.register(Flip)
class FlipAdmin(_ReadOnlyAdmin):
    list_display = ("unit", "was", "becomes", "reason", "at", "claimed_at")
    list_filter = ("becomes", ("claimed_at", admin.EmptyFieldListFilter))
    list_select_related = ("unit__test__dataset", "unit__copy__dataset", "unit__copy__data_center")


@admin.register(SkippedCheck)
class SkippedCheckAdmin(_ReadOnlyAdmin):
    list_display = ("dataset", "check_name", "reason")
    list_filter = ("check_name",)


@admin.register(GenerationStatus)
class GenerationStatusAdmin(_ReadOnlyAdmin):
    list_display = ("dataset", "metadata_version", "generated_at", "problem", "attempted_at", "attempts", "retry_at")
    list_select_related = ("dataset",)
    search_fields = ("dataset__name", "problem")


@admin.register(BaselineAttempt)
class BaselineAttemptAdmin(_ReadOnlyAdmin):
    list_display = ("copy", "problem", "attempts", "attempted_at", "retry_at")
    list_select_related = ("copy__dataset", "copy__data_center")


@admin.register(ChangePoll)
class ChangePollAdmin(_ReadOnlyAdmin):
    """Tables that others write, and when they are looked at for changes."""

    list_display = ("copy", "polled_at", "due_at")
    list_select_related = ("copy__dataset", "copy__data_center")


@admin.register(ColumnRule)
class ColumnRuleAdmin(_ReadOnlyAdmin):
    """Set by the API and the pages, which check it and make its test at once."""

    list_display = ("dataset", "column", "kind", "parameters", "by", "enabled", "set_by", "set_at")
    list_filter = ("kind", "enabled")
    list_select_related = ("dataset",)
    search_fields = ("dataset__name", "column")


@admin.register(Metric)
class MetricAdmin(_ReadOnlyAdmin):
    list_display = ("name", "dataset", "team", "week_over_week", "low", "high", "anomaly", "set_by", "set_at")
    list_filter = ("team", "anomaly")
    list_select_related = ("dataset", "team")
    search_fields = ("name", "dataset__name")


@admin.register(ExternalRun)
class ExternalRunAdmin(_ReadOnlyAdmin):
    list_display = ("run_id", "copy", "start", "end", "reported_at", "reported_by", "via", "units_made_due")
    list_filter = ("copy__data_center",)
    search_fields = ("run_id", "copy__dataset__name")
    date_hierarchy = "reported_at"
    list_select_related = ("copy__dataset", "copy__data_center")


@admin.register(PipelineHook)
class PipelineHookAdmin(_ReadOnlyAdmin):
    list_display = ("name", "key", "team", "dataset", "created_by", "created_at", "last_used_at", "revoked_at")
    list_filter = ("team", ("revoked_at", admin.EmptyFieldListFilter))
    search_fields = ("name", "key", "dataset__name")
    list_select_related = ("team", "dataset", "created_by")
    exclude = ("secret",)
    actions = ("revoke",)

    @admin.action(description="Revoke: what they sign is refused", permissions=["act"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[PipelineHook]) -> None:
        for hook in chosen:
            pipeline_hooks.revoke_hook(hook, actor=request.user.get_username(), now=wiring.clock.now())
