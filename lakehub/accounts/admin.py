from __future__ import annotations

from typing import ClassVar

from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest

from lakehub import wiring
from lakehub.accounts.admin_mixins import AuditedAdminMixin, ReadOnlyAdminMixin
from lakehub.accounts.models import AuditEntry, Consumer, Membership, SignInTries, Team, Token, User
from lakehub.accounts.sign_in.forms import ConsoleSignInForm
from lakehub.accounts.tokens import api_tokens

admin.site.login_form = ConsoleSignInForm
admin.site.unregister(Group)


@admin.register(Group)
class PermissionGroupAdmin(AuditedAdminMixin, GroupAdmin):
    """Sets of permissions for the console."""


class MembershipInline(admin.TabularInline[Membership, Team]):
    model = Membership
    extra = 0
    autocomplete_fields = ("user",)


@admin.register(User)
class PersonAdmin(AuditedAdminMixin, UserAdmin[User]):
    fieldsets = (*(UserAdmin.fieldsets or ()), ("Display", {"fields": ("timezone",)}))


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
    list_display = ("at", "actor", "action", "subject")
    search_fields = ("actor", "subject")
    date_hierarchy = "at"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: AuditEntry | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: AuditEntry | None = None) -> bool:
        return False
