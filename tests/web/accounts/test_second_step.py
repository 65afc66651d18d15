"""The second step: enrolment, codes that count once, recovery codes, and who must have it."""

from __future__ import annotations

import html
import re
from datetime import datetime, timedelta
from io import StringIO
from urllib.parse import parse_qs, urlsplit

import pyotp
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from lakehub import clock
from lakehub.accounts.models import AuditEntry, BrowserSession, RecoveryCode, Role, SecondStep, User
from lakehub.accounts.sign_in import second_step
from lakehub.accounts.tokens import api_tokens
from lakehub.clock.models import ClockShift
from lakehub.kernel.errors import Refused
from tests import factories as make

pytestmark = pytest.mark.django_db
HERE = "192.0.2.1"


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """The instance's time, which tests move."""
    instant = [timezone.now().replace(second=5, microsecond=0)]
    monkeypatch.setattr("lakehub.clock.now", lambda: instant[0])
    return instant


@pytest.fixture
def ines() -> User:
    return make.user("ines")


def code(person: User, at: datetime, ahead: int = 0) -> str:
    secret = SecondStep.objects.get(user=person).secret
    return pyotp.TOTP(secret).at(at + timedelta(seconds=30 * ahead))


def enrolled(person: User, now: datetime) -> list[str]:
    second_step.begin_enrolment(person)
    return second_step.confirm(person, code(person, now), address=HERE, now=now, session_key=None)


def with_password(client: Client, next_url: str = "") -> str:
    answer = client.post("/sign-in", {"username": "ines", "password": make.PASSWORD, "next": next_url})
    return str(answer.headers.get("Location"))


def is_in(client: Client) -> bool:
    return bool(client.get("/account").status_code == 200)


def test_enrolment_on_the_page(client: Client, ines: User, at: list[datetime]) -> None:
    other = Client()
    for browser in (client, other):
        assert with_password(browser) == "/"
    assert "Set up a second step" in client.get("/account/second-step").content.decode()
    page = client.post("/account/second-step/begin", follow=True).content.decode()
    uri = html.unescape(re.search(r"otpauth://[^<]+", page)[0])  # type: ignore[index]
    assert urlsplit(uri).path == "/Lakehub:ines"
    assert "<svg" in page
    assert not re.search(r"\sstyle=|<style|<script(?! src=)", page)
    given = pyotp.TOTP(parse_qs(urlsplit(uri).query)["secret"][0])
    assert client.post("/account/second-step/confirm", {"code": "000000"}).status_code == 422
    assert with_password(Client()) == "/", "it does not count before a code was right"
    answer = client.post("/account/second-step/confirm", {"code": given.at(at[0])})
    assert answer.status_code == 201
    codes = re.findall(r"[a-z2-7]{4}(?:-[a-z2-7]{4}){3}", answer.content.decode())
    assert len(codes) == 10
    assert is_in(client)
    assert not is_in(other), "other browsers are signed out"
    later = client.get("/account/second-step").content.decode()
    assert codes[0] not in later
    assert "otpauth" not in later
    assert client.post("/account/second-step/begin", follow=True).status_code == 200
    assert SecondStep.objects.get().confirmed_at is not None, "a new secret takes the old one's place by removal only"


def test_a_secret_that_waits_is_shown_and_confirmed_in_a_recent_session_only(
    client: Client, ines: User, at: list[datetime]
) -> None:
    """Else whoever finds the browser open makes the person's codes, or keeps them out."""
    with_password(client)
    assert "otpauth" in client.post("/account/second-step/begin", follow=True).content.decode()
    BrowserSession.objects.update(begun_at=timezone.now() - timedelta(minutes=15))
    assert "otpauth" not in client.get("/account/second-step").content.decode()
    answer = client.post("/account/second-step/confirm", {"code": code(ines, at[0])})
    assert answer.headers["Location"] == "/sign-in?again=1&next=%2Faccount%2Fsecond-step"
    assert not second_step.is_enrolled(ines)


def test_the_secret_is_encrypted_and_recovery_codes_are_hashed(ines: User, at: list[datetime]) -> None:
    codes = enrolled(ines, at[0])
    secret = SecondStep.objects.get().secret
    with connection.cursor() as cursor:
        cursor.execute("SELECT secret FROM accounts_secondstep")
        assert secret not in cursor.fetchone()[0]
        cursor.execute("SELECT digest FROM accounts_recoverycode")
        assert not {row[0] for row in cursor.fetchall()} & {text.replace("-", "") for text in codes}
    assert not any(text in str(list(AuditEntry.objects.values())) for text in (secret, *codes))
    # As a plain hash asks for: 112 random bits or more, 5 a letter.
    assert all(len(set(codes)) == 10 and len(text.replace("-", "")) * 5 >= 112 for text in codes)


def test_the_password_alone_opens_nothing(client: Client, ines: User, at: list[datetime]) -> None:
    enrolled(ines, at[0])
    at[0] += timedelta(minutes=1)
    assert with_password(client, "/tokens") == "/sign-in/code"
    assert not is_in(client)
    assert "_auth_user_id" not in client.session
    assert "known" not in client.cookies
    assert client.get("/sign-in/code").status_code == 200
    answer = client.post("/sign-in/code", {"code": f" {code(ines, at[0])[:3]} {code(ines, at[0])[3:]} "})
    assert answer.headers["Location"] == "/tokens"
    assert is_in(client)


def test_the_console_takes_the_same_two_steps(client: Client, at: list[datetime]) -> None:
    boss = make.user("ines", is_staff=True, is_superuser=True)
    enrolled(boss, at[0])
    at[0] += timedelta(minutes=1)
    client.post("/console/login/", {"username": "ines", "password": make.PASSWORD})
    assert with_password(client, "/console/") == "/sign-in/code"
    assert client.get("/console/").status_code == 302
    client.post("/sign-in/code", {"code": code(boss, at[0])})
    assert client.get("/console/").status_code == 200


def test_a_code_opens_once_and_none_before_it_any_more(ines: User, at: list[datetime]) -> None:
    enrolled(ines, at[0])
    at[0] += timedelta(minutes=1)
    before, used = code(ines, at[0], -1), code(ines, at[0])
    second_step.verify(ines, used, address=HERE, now=at[0])
    for again in (used, before):
        with pytest.raises(Refused):
            second_step.verify(ines, again, address=HERE, now=at[0])
    second_step.verify(ines, code(ines, at[0], 1), address=HERE, now=at[0])


def test_codes_go_by_the_wall_where_the_instance_is_ahead(ines: User, settings: Settings) -> None:
    settings.LAKEHUB_CLOCK = "shifted"
    ClockShift.move_to(timezone.now() + timedelta(days=30))
    second_step.begin_enrolment(ines)
    shown = code(ines, timezone.now())
    assert second_step.confirm(ines, shown, address=HERE, now=clock.now(), session_key=None)
    assert AuditEntry.objects.get().at > timezone.now() + timedelta(days=29)


def test_the_code_of_the_enrolment_does_not_sign_in(client: Client, ines: User, at: list[datetime]) -> None:
    enrolled(ines, at[0])
    with_password(client)
    assert client.post("/sign-in/code", {"code": code(ines, at[0])}).status_code == 422


@pytest.mark.parametrize(("ahead", "is_taken"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_clocks_may_differ_by_one_code(ines: User, at: list[datetime], ahead: int, is_taken: bool) -> None:
    enrolled(ines, at[0])
    at[0] += timedelta(minutes=5)
    try:
        second_step.verify(ines, code(ines, at[0], ahead), address=HERE, now=at[0])
    except Refused:
        assert not is_taken
    else:
        assert is_taken


def test_a_recovery_code_opens_once_however_it_is_written(client: Client, ines: User, at: list[datetime]) -> None:
    first, second, *_ = enrolled(ines, at[0])
    with_password(client)
    assert client.post("/sign-in/code", {"code": first.upper().replace("-", " ")}).status_code == 302
    client.post("/sign-out")
    with_password(client)
    assert client.post("/sign-in/code", {"code": first}).status_code == 422
    assert client.post("/sign-in/code", {"code": second}).status_code == 302
    assert RecoveryCode.objects.count() == 8
    assert AuditEntry.objects.filter(action="use recovery code").count() == 2


def test_wrong_codes_are_counted_and_cost_a_wait_with_the_right_one_too(
    client: Client, ines: User, at: list[datetime]
) -> None:
    enrolled(ines, at[0])
    at[0] += timedelta(minutes=1)
    with_password(client)
    for _ in range(5):
        assert client.post("/sign-in/code", {"code": "000000"}).status_code == 422
    answer = client.post("/sign-in/code", {"code": code(ines, at[0])})
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) in range(1, 61)
    elsewhere = Client(REMOTE_ADDR="198.51.100.7")
    with_password(elsewhere)
    assert elsewhere.post("/sign-in/code", {"code": code(ines, at[0])}).status_code == 429
    assert not is_in(elsewhere)


def test_what_came_with_the_password_is_no_pass(client: Client, ines: User, at: list[datetime]) -> None:
    """It lasts five minutes, cannot be made, and ends with the password."""
    enrolled(ines, at[0])
    with_password(client)
    cookie = client.cookies["pending"].value
    assert client.get("/sign-in/code").status_code == 200
    client.cookies["pending"] = cookie[:-1] + ("A" if cookie[-1] != "A" else "B")
    assert client.get("/sign-in/code").headers["Location"] == "/sign-in"
    client.cookies["pending"] = cookie
    ines.set_password("another-lintel-osprey")
    ines.save()
    assert client.get("/sign-in/code").headers["Location"] == "/sign-in"


def test_removal_and_new_recovery_codes_take_a_code(client: Client, ines: User, at: list[datetime]) -> None:
    old = enrolled(ines, at[0])
    client.force_login(ines)
    for path in ("codes", "remove"):
        assert client.post(f"/account/second-step/{path}", {"code": "000000"}).status_code == 422
    at[0] += timedelta(minutes=1)
    answer = client.post("/account/second-step/codes", {"code": code(ines, at[0])})
    assert answer.status_code == 201
    assert client.post("/account/second-step/remove", {"code": old[0]}).status_code == 422
    at[0] += timedelta(minutes=1)
    assert client.post("/account/second-step/remove", {"code": code(ines, at[0])}).status_code == 302
    assert with_password(Client()) == "/"
    assert not RecoveryCode.objects.exists()


@pytest.mark.parametrize(
    ("required", "who", "expected"),
    [
        ("nobody", "admin", False),
        ("nobody", "superuser", False),
        ("admins", "viewer", False),
        ("admins", "owner", False),
        ("admins", "admin", True),
        ("admins", "superuser", True),
        ("everybody", "viewer", True),
    ],
)
def test_who_must_have_one_may_only_set_it_up(
    client: Client, settings: Settings, at: list[datetime], required: str, who: str, expected: bool
) -> None:
    settings.LAKEHUB_REQUIRE_TOTP = required
    person = make.user("ines", is_superuser=who == "superuser", is_staff=True)
    if who != "superuser":
        make.member(person, make.team(), Role(who))
    assert with_password(client) == "/"
    for path in ("/", "/account", "/audit", "/console/", "/account/password"):
        assert (client.get(path).headers.get("Location") == "/account/second-step") is expected, path
    assert (client.get("/api/v1/teams").status_code == 403) is expected
    assert client.get("/account/second-step").status_code == 200
    client.post("/account/second-step/begin")
    assert client.post("/account/second-step/confirm", {"code": code(person, at[0])}).status_code == 201
    assert client.get("/account").status_code == 200
    assert client.get("/api/v1/teams").status_code == 200
    assert client.post("/sign-out").status_code == 302


def test_tokens_are_not_touched_and_open_no_page(client: Client, settings: Settings) -> None:
    settings.LAKEHUB_REQUIRE_TOTP = "everybody"
    boss = make.user("ines", is_superuser=True)
    _, text = api_tokens.issue_token(
        name="a", consumer="etl", team=make.team(), created_by=boss, scopes=["catalog:read"], now=clock.now()
    )
    with_password(client)
    bearer = {"Authorization": f"Bearer {text}"}
    assert Client(headers=bearer).get("/api/v1/teams").status_code == 200
    assert client.get("/api/v1/teams", headers=bearer).status_code == 200
    assert client.get("/api/v1/teams", headers={"Authorization": "Bearer x"}).status_code == 401
    assert client.get("/account", headers=bearer).headers["Location"] == "/account/second-step"


def test_a_role_that_is_given_later_asks_for_it(client: Client, ines: User, settings: Settings) -> None:
    settings.LAKEHUB_REQUIRE_TOTP = "admins"
    with_password(client)
    assert is_in(client)
    make.member(ines, make.team(), Role.ADMIN)
    assert not is_in(client)


def test_who_lost_it_is_helped_by_a_command(client: Client, ines: User, at: list[datetime]) -> None:
    enrolled(ines, at[0])
    at[0] += timedelta(minutes=1)
    with_password(client)
    client.post("/sign-in/code", {"code": code(ines, at[0])})
    out = StringIO()
    call_command("reset_totp", "ines", stdout=out)
    assert "1 sessions ended" in out.getvalue()
    assert not is_in(client)
    assert with_password(client) == "/"
    assert AuditEntry.objects.filter(actor="manage.py", action="remove second step", subject="person:ines").exists()
    with pytest.raises(CommandError, match="Did you mean `ines`"):
        call_command("reset_totp", "inez")
