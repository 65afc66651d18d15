"""Passwords: long, unknown to breaches, not one's own name; changed, and set anew by a link that is mailed."""

from __future__ import annotations

import re
from datetime import timedelta
from smtplib import SMTPServerDisconnected
from typing import Any

import pytest
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core import mail
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.test import Client
from pytest_django import Settings
from zxcvbn import zxcvbn

from lakehub import clock
from lakehub.accounts import tasks, teams
from lakehub.accounts.models import AuditEntry, BrowserSession, PasswordResetRequest, User
from lakehub.accounts.sign_in import password_rules, passwords
from tests import factories as make

pytestmark = pytest.mark.django_db
NEW = "vapour-lintel-osprey-42"
LINK = re.compile(r"http://127\.0\.0\.1:8000(/password-reset/\S+)")


@pytest.fixture
def ines() -> User:
    return make.user("ines", email="ines.duarte@example.org", first_name="Inês", last_name="Duarte-Okonkwo")


@pytest.mark.parametrize(
    ("password", "code"),
    [
        ("x7Kp-mwq2-9f", None),
        (NEW, None),
        ("x7Kp-mwq2-9", "password_too_short"),
        ("Password1234!", "guessable"),
        ("qwertyuiop123", "guessable"),
        ("1q2w3e4r5t6y", "password_too_common"),
        ("iloveyou123456", "guessable"),
        ("january 2026", "guessable"),
        ("aaaaaaaaaaaaaaaaaaaaaaaa", "guessable"),
        ("123456789012", "guessable"),
        ("a" * 100_000, "guessable"),
        ("ines-duarte-okonkwo", "own_names"),
        ("Duarte.Okonkwo!7qz", "own_names"),
        ("INES-9fLzmwq2", "own_names"),
        ("ines-x7Kpmwq29fLz", None),
        ("six different words and a lamp " * 4, None),
    ],
)
def test_what_a_password_must_be(ines: User, password: str, code: str | None) -> None:
    codes = set()
    try:
        validate_password(password, ines)
    except ValidationError as refused:
        codes = {problem.code for problem in refused.error_list}
    assert codes == set() if code is None else code in codes


def test_a_change_needs_the_old_one_and_ends_other_sessions(client: Client, ines: User) -> None:
    client.force_login(ines)
    other = Client()
    other.force_login(ines)
    asked = {"old_password": make.PASSWORD, "new_password1": NEW, "new_password2": NEW}
    assert client.post("/account/password", asked | {"old_password": "wrong"}).status_code == 422
    answer = client.post(
        "/account/password", asked | {"new_password1": "ines-duarte-1", "new_password2": "ines-duarte-1"}
    )
    assert "mostly your own name" in answer.content.decode()
    assert client.post("/account/password", asked).headers["Location"] == "/account"
    assert BrowserSession.objects.filter(user=ines).count() == 1
    assert client.get("/account").status_code == 200
    assert other.get("/account").status_code == 302
    assert "change password" in AuditEntry.objects.values_list("action", flat=True)


def test_the_old_one_is_guessed_no_faster_than_at_signing_in(client: Client, ines: User) -> None:
    """A stolen session is not a password."""
    client.force_login(ines)
    asked = {"old_password": make.PASSWORD, "new_password1": NEW, "new_password2": "another"}
    for _ in range(6):
        assert client.post("/account/password", asked).status_code == 422, "the old one was right: that is no failure"
    for number in range(5):
        assert client.post("/account/password", asked | {"old_password": f"guess{number}"}).status_code == 422
    answer = client.post("/account/password", asked | {"new_password2": NEW})
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) in range(1, 61)
    assert "Too many attempts have failed" in answer.content.decode()
    ines.refresh_from_db()
    assert ines.check_password(make.PASSWORD)


def test_a_password_of_signs_is_not_read_in_every_way_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """69 characters that may each be a letter took eight seconds: hundreds of readings, each by the square of the characters."""
    lengths = []

    def estimate(password: str, user_inputs: list[str]) -> Any:
        lengths.append(len(password))
        return zxcvbn(password, user_inputs)

    monkeypatch.setattr(password_rules, "zxcvbn", estimate)
    validate_password("4@8({[<369&#!1/|0$5+7%2" * 3)
    assert lengths == [32]


def ask(client: Client, email: str = "ines.duarte@example.org") -> str:
    """The page that answers, with the address that was typed cut out."""
    answer = client.post("/password-forgotten", {"email": email})
    assert answer.status_code == 200
    return re.sub(r'(name="csrfmiddlewaretoken" value=)"[^"]*"', "", answer.content.decode().replace(email, ""))


def link() -> str:
    tasks.send_password_links()
    match = LINK.search(str(mail.outbox[-1].body))
    assert match
    return match[1]


def test_a_link_sets_a_password_once_and_ends_all_sessions(client: Client, ines: User) -> None:
    other = Client()
    other.force_login(ines)
    ask(client, "Ines.Duarte@Example.org")
    where = link()
    assert mail.outbox[-1].to == ["ines.duarte@example.org"]
    assert client.get(where).status_code == 200
    assert client.post(where, {"new_password1": "short", "new_password2": "short"}).status_code == 422
    answer = client.post(where, {"new_password1": NEW, "new_password2": NEW})
    assert "Your password is set" in answer.content.decode()
    assert client.get(where).status_code == 404
    assert (
        client.post(
            where, {"new_password1": "another-lintel-7-osprey", "new_password2": "another-lintel-7-osprey"}
        ).status_code
        == 404
    )
    assert not BrowserSession.objects.exists()
    assert other.get("/account").status_code == 302
    assert client.post("/sign-in", {"username": "ines", "password": make.PASSWORD}).status_code == 200
    assert client.post("/sign-in", {"username": "ines", "password": NEW}).status_code == 302
    assert AuditEntry.objects.filter(action="reset password", actor="ines").exists()


def test_a_link_ends_after_an_hour(client: Client, ines: User, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(client)
    where = link()
    real = PasswordResetTokenGenerator._now
    for minutes, status in ((59, 200), (61, 404)):
        monkeypatch.setattr(
            PasswordResetTokenGenerator, "_now", lambda self, m=minutes: real(self) + timedelta(minutes=m)
        )
        assert client.get(where).status_code == status


@pytest.mark.parametrize("where", ["MQ/never-made", "99999999999999999999999/x", "é/x", "MQ/x-" + "0" * 500])
def test_what_is_no_link_is_said_plainly(client: Client, where: str) -> None:
    answer = client.get(f"/password-reset/{where}")
    assert answer.status_code == 404
    assert "This link is no longer valid" in answer.content.decode()


def test_nothing_tells_whether_an_address_is_there(
    client: Client, ines: User, django_assert_num_queries: object
) -> None:
    """The same page, the same statements, the same rows; only a worker looks."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    seen = []
    for email in ("warm@example.org", "ines.duarte@example.org", "nobody@example.org"):
        with CaptureQueriesContext(connection) as queries:
            page = ask(client, email)
        seen.append((page, [re.sub(r"'[^']*'|\d+", "", query["sql"]) for query in queries]))
    assert seen[1] == seen[2]
    tasks.send_password_links()
    assert len(mail.outbox) == 1
    assert not PasswordResetRequest.objects.exists()


def test_mails_to_one_address_and_requests_from_one_are_bounded(client: Client, ines: User) -> None:
    for _ in range(3):
        ask(client)
    answer = client.post("/password-forgotten", {"email": "INES.duarte@example.org"})
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) in range(1, 61)
    for number in range(17):
        client.post("/password-forgotten", {"email": f"{number}@example.org"})
    assert client.post("/password-forgotten", {"email": "last@example.org"}).status_code == 429
    assert PasswordResetRequest.objects.count() == 20
    assert client.post("/sign-in", {"username": "omar", "password": "x"}).status_code == 429


@pytest.mark.parametrize("change", [{"is_active": False}, {"password": "!unusable"}])
def test_who_may_not_sign_in_by_a_password_gets_no_link(client: Client, ines: User, change: dict[str, object]) -> None:
    User.objects.update(**change)
    ask(client)
    tasks.send_password_links()
    assert mail.outbox == []


def test_a_mail_that_cannot_be_sent_is_tried_again_for_an_hour(
    client: Client, ines: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(client)
    now = clock.now()

    def broken(*_: object, **__: object) -> int:
        raise SMTPServerDisconnected

    with monkeypatch.context() as patched, pytest.raises(SMTPServerDisconnected):
        patched.setattr("lakehub.accounts.sign_in.passwords.EmailMessage.send", broken)
        passwords.send_links(now=now)
    assert passwords.next_link_at() == now + timedelta(minutes=5)
    assert passwords.send_links(now=now + timedelta(minutes=4)) == 0  # somebody may be sending it
    assert passwords.send_links(now=now + timedelta(minutes=6)) == 1
    assert passwords.next_link_at() is None
    ask(client, "ines.duarte@example.org")
    assert passwords.send_links(now=now + timedelta(minutes=61)) == 0
    assert not PasswordResetRequest.objects.exists()


def test_the_host_of_a_request_is_not_the_host_of_the_link(client: Client, ines: User) -> None:
    client.post("/password-forgotten", {"email": ines.email}, headers={"Host": "localhost"})
    assert link().startswith("/password-reset/")


def test_without_mail_or_passwords_nobody_is_sent_anywhere(client: Client, settings: Settings) -> None:
    assert "/password-forgotten" in client.get("/sign-in").content.decode()
    settings.EMAIL_BACKEND, settings.EMAIL_HOST = "django.core.mail.backends.smtp.EmailBackend", ""
    assert "/password-forgotten" not in client.get("/sign-in").content.decode()
    assert client.get("/password-forgotten").status_code == 404
    settings.EMAIL_HOST = "smtp.example.org"
    assert client.get("/password-forgotten").status_code == 200
    settings.LAKEHUB_LOCAL_PASSWORDS = False
    assert client.get("/password-forgotten").status_code == 404


def test_passwords_can_be_turned_off(client: Client, ines: User, settings: Settings) -> None:
    settings.LAKEHUB_LOCAL_PASSWORDS = False
    assert 'type="password"' not in client.get("/sign-in").content.decode()
    client.post("/sign-in", {"username": "ines", "password": make.PASSWORD})
    assert "_auth_user_id" not in client.session


def new_person() -> tuple[User, str]:
    root = make.user("root", is_superuser=True)
    return teams.add_person(username="omar", email="omar@example.com", full_name="Omar", actor=root, now=clock.now())


def sign_in(client: Client, password: str) -> HttpResponse:
    return client.post("/sign-in", {"username": "omar", "password": password})


@pytest.mark.parametrize("required", ["nobody", "everybody"])
def test_a_first_password_opens_only_the_page_that_sets_another(
    client: Client, settings: Settings, required: str
) -> None:
    settings.LAKEHUB_REQUIRE_TOTP = required
    _, first = new_person()
    assert sign_in(client, first).status_code == 302
    for path in ("/", "/account", "/datasets", "/account/second-step", "/console/"):
        assert client.get(path).headers["Location"] == "/account/password", path
    assert client.get("/api/v1/teams").json()["error"]["code"] == "own_password_required"
    assert "made for you" in client.get("/account/password").content.decode()
    change = {"old_password": first, "new_password1": NEW, "new_password2": NEW}
    assert client.post("/account/password", change | {"old_password": "no"}).status_code == 422
    assert client.post("/account/password", change).status_code == 302
    assert client.get("/account").status_code == (200 if required == "nobody" else 302)
    assert sign_in(Client(), NEW).status_code == 302


def test_a_first_password_ends_after_a_week(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    person, first = new_person()
    until = clock.now() + timedelta(days=7)
    monkeypatch.setattr(clock, "now", lambda: until)
    answer = sign_in(client, first)
    assert "has expired" in answer.content.decode()  # type: ignore[attr-defined]
    assert "_auth_user_id" not in client.session
    person.set_password(NEW)  # as the console and `manage.py changepassword` do
    person.save()
    assert sign_in(client, NEW).status_code == 302
    assert client.get("/account").status_code == 200
