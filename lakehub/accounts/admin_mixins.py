"""The admin console: rows that only use cases write have no form there, and what a form changes is in the audit log."""

from __future__ import annotations

from typing import Any

from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import URLPattern

from lakehub import clock
from lakehub.accounts.audit import audit_log
from lakehub.accounts.recent_sign_in import needs_recent_sign_in


class ReadOnlyAdminMixin:
    """To be mixed into a ModelAdmin or an inline, before it. An action that changes something names `permissions=["act"]`."""

    model: Any

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_act_permission(self, request: HttpRequest) -> bool:
        """The right to change, which `has_change_permission` gives no form for."""
        meta = self.model._meta
        return bool(request.user.has_perm(f"{meta.app_label}.change_{meta.model_name}"))


class RecentSignInAdminMixin:
    """To be mixed into a ModelAdmin, before it: what is posted to any of its pages changes how people get in, or what they may."""

    def get_urls(self) -> list[URLPattern]:
        urls: list[URLPattern] = super().get_urls()  # type: ignore[misc]  # of the ModelAdmin behind it
        for pattern in urls:
            pattern.callback = needs_recent_sign_in()(pattern.callback)
        return urls


class AuditedAdminMixin:
    """To be mixed into a ModelAdmin with a form, before it: each change is a line of the audit log, by the names of its fields."""

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        _record(request, "add", obj)
        return super().log_addition(request, obj, message)  # type: ignore[misc]  # of the ModelAdmin behind it

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        entries = message if isinstance(message, list) else []
        fields = [name for entry in entries for name in entry.get("changed", {}).get("fields", ())]
        _record(request, "change", obj, fields=fields)
        return super().log_change(request, obj, message)  # type: ignore[misc]

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        for obj in queryset:
            _record(request, "delete", obj)
        return super().log_deletions(request, queryset)  # type: ignore[misc]


def _record(request: HttpRequest, action: str, obj: Model, **detail: Any) -> None:
    kind = obj._meta.model_name
    actor = request.user.get_username()
    audit_log.record(actor, f"{action} {kind} in the console", f"{kind}:{obj}"[:200], now=clock.now(), **detail)
