"""The console for on-call: everything can be read; what changes incidents goes through the use cases, by the role in their team."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from incidents.admin.forms import ResolveForm, SnoozeForm
from incidents.lifecycle.bulk import apply
from incidents.models import (
    Alert,
    Delivery,
    Digest,
    GateOverride,
    GatePolicy,
    GateQuestion,
    Incident,
    IncidentEvent,
    Message,
    MessageState,
    MessageTemplate,
    Route,
    Span,
    SuppressionRule,
    UnverifiedMail,
    UserReport,
    WeeklyReportMail,
)
from lakehub import wiring
from lakehub.accounts.admin_mixins import AuditedAdminMixin, ReadOnlyAdminMixin
from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import User
from lakehub.kernel.errors import Refused


class SpanInline(ReadOnlyAdminMixin, admin.TabularInline[Span, Incident]):
    model = Span
    fields = ("unit", "copy", "start", "end", "began_at", "ended_at")
    extra = 0


class EventInline(ReadOnlyAdminMixin, admin.TabularInline[IncidentEvent, Incident]):
    model = IncidentEvent
    fields = ("at", "kind", "actor", "was", "becomes", "text")
    extra = 0


class ReportInline(ReadOnlyAdminMixin, admin.StackedInline[UserReport, Incident]):
    model = UserReport
    fk_name = "incident"


@admin.register(Incident)
class IncidentAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[Incident]):
    list_display = ("id", "title", "category", "state", "opened_at", "resolved_at", "resolution", "assignee")
    list_filter = ("state", "category", "resolution", "reported", "dataset__team")
    search_fields = ("title", "dataset__name")
    date_hierarchy = "opened_at"
    list_select_related = ("dataset", "assignee")
    inlines: ClassVar = [ReportInline, SpanInline, EventInline]
    actions = ("acknowledge", "rerun", "snooze", "resolve")

    # Whoever sees the list may try; what each of them may is decided by their role in the team that owns the dataset.

    @admin.action(description="Acknowledge", permissions=["view"])
    def acknowledge(self, request: HttpRequest, chosen: QuerySet[Incident]) -> None:
        self._apply(request, chosen, apply.BulkRequest("acknowledge"))

    @admin.action(description="Rerun now", permissions=["view"])
    def rerun(self, request: HttpRequest, chosen: QuerySet[Incident]) -> None:
        self._apply(request, chosen, apply.BulkRequest("rerun"))

    @admin.action(description="Snooze…", permissions=["view"])
    def snooze(self, request: HttpRequest, chosen: QuerySet[Incident]) -> HttpResponse | None:
        return self._confirm(request, chosen, "snooze", SnoozeForm)

    @admin.action(description="Resolve by force…", permissions=["view"])
    def resolve(self, request: HttpRequest, chosen: QuerySet[Incident]) -> HttpResponse | None:
        return self._confirm(request, chosen, "resolve", ResolveForm)

    def _confirm(
        self, request: HttpRequest, chosen: QuerySet[Incident], action: str, kind: type[SnoozeForm | ResolveForm]
    ) -> HttpResponse | None:
        form = kind(request.POST) if "apply" in request.POST else kind()
        if form.is_bound and form.is_valid():
            self._apply(request, chosen, form.bulk_request())
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": {"snooze": "Snooze", "resolve": "Resolve by force"}[action],
            "hint": kind.__doc__,
            "action": action,
            "checkbox": ACTION_CHECKBOX_NAME,
            "chosen": chosen,
            "form": form,
        }
        return TemplateResponse(request, "incidents/console/ask.html", context)

    def _apply(self, request: HttpRequest, chosen: QuerySet[Incident], ask: apply.BulkRequest) -> None:
        numbers = list(chosen.values_list("pk", flat=True)[: apply.MAX_INCIDENTS + 1])
        assert isinstance(request.user, User)  # the console is for people who are signed in
        try:
            report = apply.apply_to_many(numbers, ask, actor=request.user, now=wiring.clock.now())
        except Refused as refused:
            self.message_user(request, f"{refused} Nothing was changed.", messages.ERROR)
            return
        if report.done:
            summary = f"{ask.action}: {', '.join(f'#{number}' for number in report.done)}"
            self.message_user(request, summary, messages.SUCCESS)
        for skipped in report.skipped:
            self.message_user(request, f"#{skipped.incident}: {skipped.why}", messages.WARNING)


@admin.register(Message)
class MessageAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[Message]):
    list_display = ("created_at", "occasion", "channel", "shown_address", "state", "why", "attempt", "error")
    list_filter = ("state", "channel", "occasion")
    search_fields = ("subject",)
    exclude = ("address", "address_key")
    readonly_fields = ("shown_address",)
    actions = ("send_again",)

    @admin.action(description="Send again what failed or was dropped", permissions=["act"])
    def send_again(self, request: HttpRequest, chosen: QuerySet[Message]) -> None:
        now, unsent = wiring.clock.now(), chosen.filter(state__in=(MessageState.FAILED, MessageState.DROPPED))
        numbers = list(unsent.order_by("pk").values_list("pk", flat=True))
        count = unsent.update(state=MessageState.PENDING, due_at=now, attempt=0, error="", why="")
        audit_log.record(request.user.get_username(), "send again", "messages", now=now, messages=numbers)
        self.message_user(request, f"{count} due to be sent again.", messages.SUCCESS if count else messages.WARNING)


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[Delivery]):
    list_display = ("at", "team", "occasion", "channel", "address", "ok", "status", "error", "ms")
    list_filter = ("ok", "channel", "team")
    list_select_related = ("team",)


@admin.register(MessageTemplate)
class MessageTemplateAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[MessageTemplate]):
    """Changed on the team's page, which checks the names in braces."""

    list_display = ("team", "occasion", "subject", "changed_at", "changed_by")
    list_filter = ("team",)
    list_select_related = ("team",)


@admin.register(Alert)
class AlertAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[Alert]):
    """Changed on the dataset's page, which says what the template asks for."""

    list_display = ("dataset", "category", "severity", "override", "overridden_by", "metadata_version", "because")
    list_filter = ("category", "severity", "dataset__team")
    search_fields = ("dataset__name",)
    list_select_related = ("dataset",)


@admin.register(Route)
class RouteAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[Route]):
    """Changed on the team's page, which checks the address."""

    list_display = ("team", "channel", "shown_address", "enabled", "tiers", "categories", "least", "digest")
    list_filter = ("channel", "enabled", "digest", "team")
    exclude = ("address",)
    readonly_fields = ("shown_address",)
    list_select_related = ("team",)


@admin.register(SuppressionRule)
class SuppressionRuleAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[SuppressionRule]):
    """Changed on the dataset's page, which refuses cycles."""

    list_display = ("dataset", "by_category", "suppresses", "enabled", "set_by", "set_at")
    list_filter = ("by_category", "suppresses", "enabled")
    search_fields = ("dataset__name",)
    list_select_related = ("dataset",)


@admin.register(Digest)
class DigestAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[Digest]):
    list_display = ("created_at", "team", "channel", "subject", "state", "sent_at", "attempt", "error")
    list_filter = ("state", "channel", "team")
    exclude = ("address",)
    list_select_related = ("team",)


@admin.register(WeeklyReportMail)
class WeeklyLetterAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[WeeklyReportMail]):
    list_display = ("week", "team", "address", "state", "sent_at", "attempt", "error")
    list_filter = ("state", "team")
    list_select_related = ("team",)
    ordering = ("-week", "team__name")


@admin.register(UnverifiedMail)
class UnverifiedLetterAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[UnverifiedMail]):
    list_display = ("created_at", "dataset", "address", "state", "sent_at", "over_at", "attempt", "error")
    list_filter = ("state", "dataset__team")
    list_select_related = ("dataset",)
    ordering = ("-created_at",)


@admin.register(GatePolicy)
class GatePolicyAdmin(AuditedAdminMixin, admin.ModelAdmin[GatePolicy]):
    list_display = ("consumer", "tier", "preset", "blocks", "shadow")
    list_filter = ("tier", "preset", "shadow")
    search_fields = ("consumer",)


@admin.register(GateOverride)
class GateOverrideAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[GateOverride]):
    list_display = (
        "created_at",
        "dataset",
        "copy",
        "consumer",
        "start",
        "end",
        "reason",
        "created_by",
        "expires_at",
        "ended_at",
    )
    list_filter = ("consumer",)
    search_fields = ("dataset__name", "reason", "created_by")
    list_select_related = ("dataset", "copy__dataset", "copy__data_center")
    ordering = ("-created_at",)


@admin.register(GateQuestion)
class GateQuestionAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[GateQuestion]):
    list_display = ("at", "consumer", "copy", "start", "end", "verdict", "allowed", "would_allow", "request_id")
    list_filter = ("verdict", "allowed", "consumer")
    date_hierarchy = "at"

    def get_queryset(self, request: HttpRequest) -> QuerySet[GateQuestion]:
        return super().get_queryset(request).select_related("copy__dataset", "copy__data_center")

    def get_ordering(self, request: HttpRequest) -> list[Any]:
        return ["-at"]
