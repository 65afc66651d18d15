"""The console: whatever has a form there leaves a line in the audit log, and tokens are looked at only."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.test import Client, RequestFactory

from lakehub import clock
from lakehub.accounts.admin_mixins import AuditedAdminMixin
from lakehub.accounts.models import AuditEntry, SignInTries, Team, Token
from lakehub.accounts.tokens import api_tokens
from tests import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def root() -> Client:
    client = Client()
    client.force_login(make.user("root", is_staff=True, is_superuser=True))
    return client


def told() -> list[tuple[str, str, str]]:
    return list(AuditEntry.objects.order_by("pk").values_list("actor", "action", "subject"))


def test_every_form_of_the_console_is_audited() -> None:
    request = RequestFactory().get("/")
    request.user = make.user(is_staff=True, is_superuser=True)
    silent = [
        model.__name__
        for model, shown in admin.site._registry.items()
        if not isinstance(shown, AuditedAdminMixin)
        and any(getattr(shown, f"has_{what}_permission")(request) for what in ("add", "change", "delete"))
    ]
    assert silent == []


def test_adding_changing_and_deleting_are_lines(root: Client) -> None:
    inline = {"memberships-TOTAL_FORMS": "0", "memberships-INITIAL_FORMS": "0"}
    root.post("/console/accounts/team/add/", {"name": "fleet", **inline})
    made = Team.objects.get(name="fleet")
    root.post(f"/console/accounts/team/{made.pk}/change/", {"name": "fleet", "email": "f@example.org", **inline})
    assert AuditEntry.objects.get(action="change team in the console").detail == {"fields": ["Email"]}
    root.post(f"/console/accounts/team/{made.pk}/delete/", {"post": "yes"})
    assert told() == [("root", f"{what} team in the console", "team:fleet") for what in ("add", "change", "delete")]


def test_ending_a_wait_is_a_line(root: Client) -> None:
    SignInTries.objects.create(key="k", last_at=make.NOW)
    chosen = {"action": "delete_selected", "_selected_action": [SignInTries.objects.get().pk], "post": "yes"}
    root.post("/console/accounts/signintries/", chosen)
    assert [action for _, action, _ in told()] == ["delete signintries in the console"]


def test_tokens_have_no_form_there_and_can_be_revoked(root: Client) -> None:
    token, text = api_tokens.issue_token(
        name="t", consumer="etl", team=make.team(), created_by=make.user(), scopes=["gate:read"], now=clock.now()
    )
    page = root.get(f"/console/accounts/token/{token.pk}/change/").content.decode()
    assert token.digest not in page
    assert 'name="scopes"' not in page
    root.post("/console/accounts/token/", {"action": "revoke", "_selected_action": [token.pk]})
    assert Token.objects.get().revoked_at is not None
    assert api_tokens.authenticate(text, now=clock.now()) is None
    assert told()[-1] == ("root", "revoke token", f"token:{token.prefix}")
