"""The console for on-call: everything can be read; what changes an incident goes through its page or the API."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from incidents.models import (
    GatePolicy,
    GateQuestion,
    Incident,
    IncidentEvent,
    Message,
    MessageState,
    Span,
    UserReport,
    WeeklyLetter,
)
from lakehub import wiring
from lakehub.accounts.console import ReadOnly


class SpanInline(ReadOnly, admin.TabularInline[Span, Incident]):
    model = Span
    fields = ("unit", "copy", "start", "end", "began_at", "ended_at")
    extra = 0


class EventInline(ReadOnly, admin.TabularInline[IncidentEvent, Incident]):
    model = IncidentEvent
    fields = ("at", "kind", "actor", "was", "becomes", "text")
    extra = 0


class ReportInline(ReadOnly, admin.StackedInline[UserReport, Incident]):
    model = UserReport
    fk_name = "incident"


@admin.register(Incident)
class IncidentAdmin(ReadOnly, admin.ModelAdmin[Incident]):
    list_display = ("id", "title", "category", "state", "opened_at", "resolved_at", "resolution", "assignee")
    list_filter = ("state", "category", "resolution", "reported", "dataset__team")
    search_fields = ("title", "dataset__name")
    date_hierarchy = "opened_at"
    list_select_related = ("dataset", "assignee")
    inlines: ClassVar = [ReportInline, SpanInline, EventInline]


@admin.register(Message)
class MessageAdmin(ReadOnly, admin.ModelAdmin[Message]):
    list_display = ("created_at", "occasion", "channel", "shown_address", "state", "why", "attempt", "error")
    list_filter = ("state", "channel", "occasion")
    search_fields = ("subject", "address")
    actions = ("send_again",)

    @admin.action(description="Send again what failed or was dropped", permissions=["act"])
    def send_again(self, request: HttpRequest, chosen: QuerySet[Message]) -> None:
        unsent = chosen.filter(state__in=(MessageState.FAILED, MessageState.DROPPED))
        count = unsent.update(state=MessageState.PENDING, due_at=wiring.clock.now(), attempt=0, error="", why="")
        self.message_user(request, f"{count} due to be sent again.", messages.SUCCESS if count else messages.WARNING)


@admin.register(WeeklyLetter)
class WeeklyLetterAdmin(ReadOnly, admin.ModelAdmin[WeeklyLetter]):
    list_display = ("week", "team", "address", "state", "sent_at", "attempt", "error")
    list_filter = ("state", "team")
    list_select_related = ("team",)
    ordering = ("-week", "team__name")


@admin.register(GatePolicy)
class GatePolicyAdmin(admin.ModelAdmin[GatePolicy]):
    list_display = ("consumer", "tier", "blocks")
    list_filter = ("tier",)
    search_fields = ("consumer",)


@admin.register(GateQuestion)
class GateQuestionAdmin(ReadOnly, admin.ModelAdmin[GateQuestion]):
    list_display = ("at", "consumer", "copy", "start", "end", "verdict", "allowed", "request_id")
    list_filter = ("verdict", "allowed", "consumer")
    date_hierarchy = "at"

    def get_queryset(self, request: HttpRequest) -> QuerySet[GateQuestion]:
        return super().get_queryset(request).select_related("copy__dataset", "copy__data_center")

    def get_ordering(self, request: HttpRequest) -> list[Any]:
        return ["-at"]
