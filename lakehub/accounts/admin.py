from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from lakehub import wiring
from lakehub.accounts.admin_mixins import AuditedAdminMixin, ReadOnlyAdminMixin, RecentSignInAdminMixin
from lakehub.accounts.models import AuditEntry, Consumer, Membership, SignInTries, Team, Token, User
from lakehub.accounts.permissions import is_operator
from lakehub.accounts.sign_in import second_step, sessions
from lakehub.accounts.tokens import api_tokens


@login_not_required
def sign_in_on_the_pages(request: HttpRequest, extra_context: Any = None) -> HttpResponse:
    """The console has no door of its own: one form, one count of failures, one second step."""
    if request.user.is_authenticated and not admin.site.has_permission(request):
        raise PermissionDenied("The console is for staff only. Ask a superuser for access.")
    next_url = request.GET.get("next") or reverse("admin:index")
    return redirect(f"{reverse('sign-in')}?{urlencode({'next': next_url})}")


def change_password_on_the_pages(request: HttpRequest, extra_context: Any = None) -> HttpResponse:
    return redirect("account-password")


admin.site.login = sign_in_on_the_pages  # type: ignore[method-assign]
admin.site.password_change = change_password_on_the_pages  # type: ignore[assignment,method-assign]
admin.site.unregister(Group)


@admin.register(Group)
class PermissionGroupAdmin(RecentSignInAdminMixin, AuditedAdminMixin, GroupAdmin):
    """Sets of permissions for the console, made by superusers: whoever could would give themselves all of them."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_operator(request.user)

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return is_operator(request.user)

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return is_operator(request.user)


class MembershipInline(admin.TabularInline[Membership, Team]):
    model = Membership
    extra = 0
    autocomplete_fields = ("user",)


@admin.register(User)
class PersonAdmin(RecentSignInAdminMixin, AuditedAdminMixin, UserAdmin[User]):
    """Who may enter the console, and do what there, is for superusers to say: others do not change those who do."""

    fieldsets = (*(UserAdmin.fieldsets or ()), ("Display", {"fields": ("timezone",)}))
    actions = ("end_sessions", "remove_second_step")

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return _may_touch(request, obj) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return _may_touch(request, obj) and super().has_delete_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        return () if is_operator(request.user) else ("is_staff", "is_superuser", "groups", "user_permissions")

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Whoever is deactivated is signed out everywhere, also should they be let in again."""
        super().save_model(request, obj, form, change)
        if not obj.is_active:
            _end_sessions(request, obj)

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        response: HttpResponse = super().user_change_password(request, id, form_url)
        if request.method == "POST" and response.status_code == 302:
            _end_sessions(request, User.objects.get(pk=id))
        return response

    @admin.action(description="End all sessions", permissions=["run_the_instance"])
    def end_sessions(self, request: HttpRequest, chosen: QuerySet[User]) -> None:
        session_count = sum(_end_sessions(request, person) for person in chosen)
        self.message_user(request, f"{session_count} sessions ended.", messages.SUCCESS)

    @admin.action(description="Remove the second step", permissions=["run_the_instance"])
    def remove_second_step(self, request: HttpRequest, chosen: QuerySet[User]) -> None:
        for person in chosen:
            second_step.reset(person, actor=request.user.get_username(), now=wiring.clock.now())
            _end_sessions(request, person)
        self.message_user(request, f"{len(chosen)} people sign in by the first step alone.", messages.SUCCESS)

    def has_run_the_instance_permission(self, request: HttpRequest) -> bool:
        return is_operator(request.user)


def _may_touch(request: HttpRequest, person: User | None) -> bool:
    return person is None or is_operator(request.user) or not (person.is_staff or person.is_superuser)


def _end_sessions(request: HttpRequest, person: User) -> int:
    keep = request.session.session_key if person == request.user else None
    return sessions.end_sessions(person, actor=request.user.get_username(), now=wiring.clock.now(), keep=keep)


@admin.register(Team)
class TeamAdmin(AuditedAdminMixin, admin.ModelAdmin[Team]):
    list_display = ("name", "email")
    search_fields = ("name",)
    inlines: ClassVar = [MembershipInline]


@admin.register(Consumer)
class ConsumerAdmin(AuditedAdminMixin, admin.ModelAdmin[Consumer]):
    """Held by the team that has the first token made; here a name is kept for a team, or given to another."""

    list_display = ("name", "team")
    list_filter = ("team",)
    list_select_related = ("team",)
    search_fields = ("name",)

    def get_readonly_fields(self, request: HttpRequest, obj: Consumer | None = None) -> tuple[str, ...]:
        return ("name",) if obj else ()


@admin.register(Token)
class TokenAdmin(ReadOnlyAdminMixin, admin.ModelAdmin[Token]):
    """Made on the page Tokens, which shows the text once; here they are looked at, and revoked."""

    list_display = ("name", "prefix", "team", "consumer", "data_center", "expires_at", "last_used_at", "revoked_at")
    list_filter = ("team", "consumer")
    list_select_related = ("team",)
    search_fields = ("name", "prefix", "consumer")
    exclude = ("digest",)
    actions = ("revoke",)

    @admin.action(description="Revoke", permissions=["act"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[Token]) -> None:
        live = list(chosen.filter(revoked_at=None).select_related("team"))
        for token in live:
            api_tokens.revoke_token(token, actor=request.user.get_username(), now=wiring.clock.now())
        self.message_user(request, f"{len(live)} revoked.", messages.SUCCESS if live else messages.WARNING)


@admin.register(SignInTries)
class SignInTriesAdmin(AuditedAdminMixin, admin.ModelAdmin[SignInTries]):
    """To delete one is to let somebody in before the wait is over; which is whose, only the times tell."""

    list_display = ("key", "failures", "last_at", "locked_until")
    ordering = ("-last_at",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: SignInTries | None = None) -> bool:
        return False


@admin.register(AuditEntry)
class AuditEntryAdmin(admin.ModelAdmin[AuditEntry]):
    list_display = ("number", "at", "actor", "action", "subject", "team")
    list_select_related = ("team",)
    ordering = ("-at", "-pk")
    search_fields = ("actor", "subject")
    date_hierarchy = "at"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: AuditEntry | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: AuditEntry | None = None) -> bool:
        return False
