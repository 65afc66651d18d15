from __future__ import annotations

from typing import ClassVar

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.http import HttpRequest

from lakehub.accounts.forms import ConsoleSignInForm
from lakehub.accounts.models import AuditEntry, Membership, SignInTries, Team, Token, User

admin.site.login_form = ConsoleSignInForm


class MembershipInline(admin.TabularInline[Membership, Team]):
    model = Membership
    extra = 0
    autocomplete_fields = ("user",)


@admin.register(User)
class PersonAdmin(UserAdmin[User]):
    fieldsets = (*(UserAdmin.fieldsets or ()), ("Display", {"fields": ("timezone",)}))


@admin.register(Team)
class TeamAdmin(admin.ModelAdmin[Team]):
    list_display = ("name", "email")
    search_fields = ("name",)
    inlines: ClassVar = [MembershipInline]


@admin.register(Token)
class TokenAdmin(admin.ModelAdmin[Token]):
    list_display = ("name", "prefix", "consumer", "data_center", "expires_at", "last_used_at", "revoked_at")
    list_filter = ("consumer",)
    readonly_fields = ("prefix", "created_by", "created_at", "last_used_at")
    exclude = ("digest",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # `manage.py issue_token` shows the text once; a form could not


@admin.register(SignInTries)
class SignInTriesAdmin(admin.ModelAdmin[SignInTries]):
    """To delete one is to let somebody in before the wait is over; which is whose, only the times tell."""

    list_display = ("key", "failures", "last_at", "locked_until")
    ordering = ("-last_at",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: SignInTries | None = None) -> bool:
        return False


@admin.register(AuditEntry)
class AuditAdmin(admin.ModelAdmin[AuditEntry]):
    list_display = ("at", "actor", "action", "subject")
    search_fields = ("actor", "subject")
    date_hierarchy = "at"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: AuditEntry | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: AuditEntry | None = None) -> bool:
        return False
