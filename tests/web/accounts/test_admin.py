"""The console: whatever has a form there leaves a line in the audit log, and tokens are looked at only."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.test import Client, RequestFactory

from lakehub import clock
from lakehub.accounts.admin_mixins import AuditedAdminMixin
from lakehub.accounts.models import AuditEntry, SignInTries, Team, Token, User
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


NEW = {"password1": "vapour-lintel-osprey", "password2": "vapour-lintel-osprey", "usable_password": "true"}
EVERYTHING = {"is_active": "on", "is_staff": "on", "is_superuser": "on", "timezone": "UTC"}
JOINED = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}


def test_who_changes_people_makes_nobody_one_of_the_staff_or_a_superuser() -> None:
    boss, omar = make.user("boss", is_staff=True, is_superuser=True), make.user("omar")
    clerk = make.staff("add_user", "change_user", "view_user", "delete_user")
    themself = User.objects.get(is_staff=True, is_superuser=False)
    for person in (boss, omar, themself):
        where, posted = f"/console/accounts/user/{person.pk}", EVERYTHING | JOINED | {"username": f"new-{person.pk}"}
        clerk.post(f"{where}/change/", posted | {"user_permissions": [Permission.objects.all()[0].pk]})
        clerk.post(f"{where}/password/", NEW)
    for person in (boss, themself):
        clerk.post(f"/console/accounts/user/{person.pk}/delete/", {"post": "yes"})
        person.refresh_from_db()
        assert person.check_password(make.PASSWORD)
        assert not person.username.startswith("new-")
    chosen = {"action": "delete_selected", "_selected_action": [boss.pk, themself.pk], "post": "yes"}
    clerk.post("/console/accounts/user/", chosen)
    assert not User.objects.get(pk=themself.pk).is_superuser
    omar.refresh_from_db()
    assert (omar.username, omar.check_password(NEW["password1"])) == (f"new-{omar.pk}", True), (
        "others are theirs to change"
    )
    assert (omar.is_staff, omar.is_superuser, omar.user_permissions.count()) == (False, False, 0)


def test_groups_of_permissions_are_for_superusers(root: Client) -> None:
    group, permission = Group.objects.create(name="clerks"), Permission.objects.get(codename="change_user")
    clerk = make.staff("add_group", "change_group", "view_group", "delete_group")
    posted = {"name": "clerks", "permissions": [permission.pk]}
    assert clerk.post(f"/console/auth/group/{group.pk}/change/", posted).status_code == 403
    assert clerk.post(f"/console/auth/group/{group.pk}/delete/", {"post": "yes"}).status_code == 403
    assert clerk.post("/console/auth/group/add/", posted | {"name": "more"}).status_code == 403
    assert list(Group.objects.all()) == [group]
    assert not group.permissions.exists()
    root.post(f"/console/auth/group/{group.pk}/change/", posted)
    assert list(group.permissions.all()) == [permission]
