"""Single sign-on: what a provider may say and what it may not, and who the person is that comes back."""

from __future__ import annotations

import base64
import itertools
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from hashlib import sha256
from time import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.utils import timezone
from joserfc.jwk import RSAKey
from pytest_django import Settings

from lakehub import environment
from lakehub.accounts.models import AuditEntry, BrowserSession, Consumer, ExternalIdentity, Membership, Role, User
from lakehub.accounts.sign_in import second_step
from lakehub.accounts.single_sign_on import provider
from lakehub.accounts.single_sign_on.provider import ProviderError
from tests import factories as make
from tests.polling import scaled
from tests.scripted_issuer import CLIENT_ID, CLIENT_SECRET, ScriptedIssuer, scripted_issuer

pytestmark = pytest.mark.django_db
START, BACK = "/sign-in/single-sign-on", "/sign-in/single-sign-on/back"


@pytest.fixture
def issuer(settings: Settings) -> Iterator[ScriptedIssuer]:
    with scripted_issuer() as running:
        settings.LAKEHUB_OIDC_ISSUER = running.url
        settings.LAKEHUB_OIDC_CLIENT_ID, settings.LAKEHUB_OIDC_CLIENT_SECRET = CLIENT_ID, CLIENT_SECRET
        provider.forget()
        yield running
        provider.forget()


def start(client: Client, next_url: str = "") -> dict[str, str]:
    """What the browser takes to the provider."""
    answer = client.get(START, {"next": next_url} if next_url else {})
    assert answer.status_code == 302, answer.content.decode()
    return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["Location"]).query).items()}


def come_back(client: Client, issuer: ScriptedIssuer, next_url: str = "", **claims: Any) -> Any:
    sent = start(client, next_url)
    issuer.claims = {"nonce": sent["nonce"], **claims}
    return client.get(BACK, {"code": "abc", "state": sent["state"]})


def who(client: Client) -> str:
    key = client.session.get("_auth_user_id")
    return User.objects.get(pk=key).username if key else ""


def test_the_way_there_and_back(client: Client, issuer: ScriptedIssuer) -> None:
    sent = start(client, "/tokens?all=1")
    assert {name: sent[name] for name in ("response_type", "client_id", "code_challenge_method", "scope")} == {
        "response_type": "code", "client_id": CLIENT_ID, "code_challenge_method": "S256", "scope": "openid profile email",
    }  # fmt: skip
    assert sent["redirect_uri"] == f"http://127.0.0.1:8000{BACK}"
    issuer.claims = {"nonce": sent["nonce"], "preferred_username": "ines", "given_name": "Inês"}
    answer = client.get(BACK, {"code": "abc", "state": sent["state"]})
    assert answer.headers["Location"] == "/tokens?all=1"
    assert who(client) == "ines"
    path, form, authorization = issuer.asked[-2]
    assert (path, form["code"], form["redirect_uri"]) == ("/token", ["abc"], [sent["redirect_uri"]])
    challenge = base64.urlsafe_b64encode(sha256(form["code_verifier"][0].encode()).digest()).rstrip(b"=").decode()
    assert challenge == sent["code_challenge"]
    assert base64.b64decode(authorization.removeprefix("Basic ")).decode().startswith(f"{CLIENT_ID}:")
    ines = User.objects.get(username="ines")
    assert (ines.first_name, ines.has_usable_password(), ines.is_staff, ines.memberships.count()) == (
        "Inês",
        False,
        False,
        0,
    )
    assert "link identity" in AuditEntry.objects.values_list("action", flat=True)


HOSTILE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "another nonce": ({"nonce": "another"}, {}),
    "no nonce": ({"nonce": None}, {}),
    "another audience": ({"aud": "somebody-else"}, {}),
    "another audience, ours as its party": ({"aud": ["somebody-else"], "azp": CLIENT_ID}, {}),
    "ours among others, of another party": ({"aud": [CLIENT_ID, "somebody-else"], "azp": "somebody-else"}, {}),
    "no audience": ({"aud": None}, {}),
    "another issuer": ({"iss": "https://evil.example.com"}, {}),
    "the issuer with a slash": ({"iss": "{url}/"}, {}),
    "no issuer": ({"iss": None}, {}),
    "expired": ({"iat": int(time()) - 900, "exp": int(time()) - 300}, {}),
    "no end": ({"exp": None}, {}),
    "not yet": ({"nbf": int(time()) + 900}, {}),
    "made in the future": ({"iat": int(time()) + 900, "exp": int(time()) + 1200}, {}),
    "no subject": ({"sub": None}, {}),
    "an empty subject": ({"sub": ""}, {}),
    "a subject that is a list": ({"sub": ["s-1"]}, {}),
    "a long subject": ({"sub": "s" * 256}, {}),
    "another access token": ({"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}, {}),
    "no signature": ({}, {"header": {"alg": "none"}}),
    "signed with the public key as a secret": ({}, {"header": {"alg": "HS256", "kid": "first"}}),
    "another key of the same name": ({}, {"published": [RSAKey.generate_key(2048, {"kid": "first"})]}),
    "a key that is not published": ({}, {"header": {"alg": "RS256", "kid": "second"}}),
    "no ID token": ({}, {"token_answer": {"access_token": "x", "token_type": "Bearer"}}),
    "a refusal": ({}, {"token_answer": {"error": "invalid_grant", "error_description": "<b>no</b>"}}),
    "no JSON": ({}, {"token_answer": b"<html>"}),
    "JSON that is no object": ({}, {"token_answer": b"[1]"}),
    "nested JSON": ({}, {"token_answer": b"[" * 100_000}),
    "a token that is none": ({}, {"token_answer": {"access_token": "x", "id_token": "a.b"}}),
    "a number as a token": ({}, {"token_answer": {"access_token": "x", "id_token": 7}}),
    "more than there may be": ({}, {"token_answer": b'{"x": "' + b"x" * 2_000_000 + b'"}'}),
    "a redirect": ({}, {"redirect_to": "http://127.0.0.1:1/token"}),
}


def test_a_link_of_another_site_signs_nobody_in(client: Client, issuer: ScriptedIssuer) -> None:
    """The provider may know them still: a button must be pressed here."""
    answer = client.get("/sign-in/single-sign-on", headers={"Sec-Fetch-Site": "cross-site"})
    assert (answer.headers["Location"], "sso" in client.cookies) == ("/sign-in", False)
    for site in ("same-origin", "same-site", "none"):
        assert (
            "/authorize" in client.get("/sign-in/single-sign-on", headers={"Sec-Fetch-Site": site}).headers["Location"]
        )


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_cannot_be_believed_lets_nobody_in(client: Client, issuer: ScriptedIssuer, hostile: str) -> None:
    claims, answers = HOSTILE[hostile]
    for name, value in answers.items():
        setattr(issuer, name, value)
    changed = {
        name: value.format(url=issuer.url) if isinstance(value, str) else value for name, value in claims.items()
    }
    answer = come_back(client, issuer, **changed)
    assert answer.status_code == 502
    assert "cannot be believed" in answer.content.decode()
    assert "<b>no</b>" not in answer.content.decode()
    assert not User.objects.exists()
    assert not BrowserSession.objects.exists()


@pytest.mark.parametrize(
    "description",
    [
        {"issuer": "https://evil.example.com"},
        {"issuer": None},
        {"token_endpoint": "http://169.254.169.254/token"},
        {"jwks_uri": "http://127.0.0.1:1/keys"},
        {"authorization_endpoint": "https://evil.example.com/authorize"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"end_session_endpoint": "https://evil.example.com/end"},
        {"token_endpoint": None},
        {"token_endpoint": 7},
    ],
)
def test_a_description_names_places_of_the_issuer_only(
    client: Client, issuer: ScriptedIssuer, description: dict[str, Any]
) -> None:
    issuer.description = description
    assert client.get(START).status_code == 502
    assert client.get("/signed-out").status_code == 200
    assert {path for path, *_ in issuer.asked} == {"/.well-known/openid-configuration"}


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"redirect_to": "http://127.0.0.1:1/token"}, "redirects, which is not followed"),
        ({"token_answer": b'{"x": "' + b"x" * 2_000_000 + b'"}'}, "answers with more than 1048576 bytes"),
    ],
)
def test_the_log_says_what_was_not_read(
    client: Client, issuer: ScriptedIssuer, caplog: pytest.LogCaptureFixture, answers: dict[str, Any], words: str
) -> None:
    for name, value in answers.items():
        setattr(issuer, name, value)
    come_back(client, issuer)
    assert words in caplog.text


def test_every_request_is_to_a_place_of_the_issuer(issuer: ScriptedIssuer) -> None:
    with pytest.raises(provider.ProviderError, match="is not the issuer's"):
        provider.BoundedSession(CLIENT_ID).request("GET", "http://127.0.0.1:1/", withhold_token=True)


def test_hosts_that_the_operator_names_are_the_issuers_too(
    client: Client, issuer: ScriptedIssuer, settings: Settings
) -> None:
    issuer.description = {"authorization_endpoint": "http://login.example.com/authorize"}
    assert client.get(START).status_code == 502
    settings.LAKEHUB_OIDC_HOSTS = ["login.example.com"]
    assert client.get(START).headers["Location"].startswith("http://login.example.com/authorize?")


def test_state_is_of_one_browser_once_and_not_for_ever(client: Client, issuer: ScriptedIssuer) -> None:
    sent = start(client)
    issuer.claims = {"nonce": sent["nonce"]}
    for state in ("", "x", sent["state"][:-1], "é"):
        assert Client().get(BACK, {"code": "abc", "state": state}).status_code == 403
    stranger = Client()
    start(stranger)
    assert stranger.get(BACK, {"code": "abc", "state": sent["state"]}).status_code == 403
    assert (
        client.get(BACK, {"code": "abc", "state": sent["state"], "iss": "https://evil.example.com"}).status_code == 403
    )
    assert client.get(BACK, {"code": "abc", "state": sent["state"]}).status_code == 403, (
        "one way back for each way there"
    )
    assert not User.objects.exists()


def test_what_the_provider_refuses_is_said(client: Client, issuer: ScriptedIssuer) -> None:
    sent = start(client)
    answer = client.get(BACK, {"error": "access_denied", "error_description": "<script>", "state": sent["state"]})
    assert answer.status_code == 403
    assert "refused the sign-in" in answer.content.decode()
    assert "<script>" not in answer.content.decode().replace("<script src", "")


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example.com/", "//evil.example.com", "/\\evil.example.com", "javascript:alert(1)"]
)
def test_it_goes_on_within_the_instance_only(client: Client, issuer: ScriptedIssuer, elsewhere: str) -> None:
    assert come_back(client, issuer, elsewhere).headers["Location"] == "/"


def test_attempts_are_counted_before_the_provider_is_asked(client: Client, issuer: ScriptedIssuer) -> None:
    sent = start(client)
    for _ in range(20):
        assert client.get(BACK, {"code": "abc", "state": "x"}).status_code == 403
    answer = client.get(BACK, {"code": "abc", "state": sent["state"]})
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) in range(1, 61)
    assert "/token" not in [path for path, *_ in issuer.asked]


def test_a_person_is_known_by_issuer_and_subject(client: Client, issuer: ScriptedIssuer) -> None:
    come_back(client, issuer, preferred_username="ines")
    come_back(Client(), issuer, preferred_username="omar", email="new@example.org", email_verified=True)
    assert list(User.objects.values_list("username", flat=True)) == ["ines"]
    come_back(Client(), issuer, sub="s-2", preferred_username="ines")
    assert set(User.objects.values_list("username", flat=True)) == {"ines", "ines-2"}


def test_a_key_that_is_new_is_looked_for(
    client: Client, issuer: ScriptedIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    come_back(client, issuer)
    issuer.key = RSAKey.generate_key(2048, {"kid": "second", "use": "sig", "alg": "RS256"})
    issuer.header = {"alg": "RS256", "kid": "second"}
    assert come_back(Client(), issuer).status_code == 502, "not more than once a minute"
    monkeypatch.setattr(provider, "MIN_KEYS_AGE_S", 0)
    assert come_back(Client(), issuer).status_code == 302


@pytest.mark.parametrize("name", ["boss", "BOSS", "etl", "../../x", "", "a" * 500, "<script>", 7, "x\0y"])
def test_a_name_makes_nobody_anybody(client: Client, issuer: ScriptedIssuer, name: object) -> None:
    make.user("boss", is_superuser=True, email="boss@example.org")
    Consumer.objects.create(name="etl", team=make.team())
    come_back(client, issuer, preferred_username=name, email="boss@example.org", email_verified=True, is_superuser=True)
    made = User.objects.exclude(username="boss").get()
    made.full_clean(exclude=["password"])
    assert who(client) == made.username
    assert made.username.lower() not in ("boss", "etl")
    assert not made.is_superuser


@pytest.mark.parametrize(
    ("may_link", "claims", "linked"),
    [
        (False, {"email": "ines@example.org", "email_verified": True}, False),
        (True, {"email": "Ines@Example.org", "email_verified": True}, True),
        (True, {"email": "ines@example.org", "email_verified": False}, False),
        (True, {"email": "ines@example.org", "email_verified": "true"}, False),
        (True, {"email": "ines@example.org"}, False),
        (True, {"email": "twice@example.org", "email_verified": True}, False),
        (True, {"email": "boss@example.org", "email_verified": True}, False),
        (True, {"email": "ınes@example.org", "email_verified": True}, False),
        (True, {"email": "", "email_verified": True}, False),
        (True, {"email": ["ines@example.org"], "email_verified": True}, False),
    ],
)
def test_an_address_links_where_it_is_verified_and_that_is_turned_on(
    client: Client, issuer: ScriptedIssuer, settings: Settings, may_link: bool, claims: dict[str, Any], linked: bool
) -> None:
    settings.LAKEHUB_OIDC_LINK_MAIL = may_link
    make.user("ines", email="ines@example.org")
    make.user("boss", email="boss@example.org", is_superuser=True)
    for name in ("first", "second"):
        make.user(name, email="twice@example.org")
    make.user("nameless")
    come_back(client, issuer, **claims)
    assert (who(client) == "ines") is linked
    assert User.objects.count() == (5 if linked else 6)
    come_back(Client(), issuer, sub="s-2", **claims)
    assert ExternalIdentity.objects.filter(user__username="ines").count() == int(linked), "one of each provider"


def test_whoever_is_deactivated_stays_out(client: Client, issuer: ScriptedIssuer) -> None:
    come_back(client, issuer)
    User.objects.update(is_active=False)
    stranger = Client()
    answer = come_back(stranger, issuer)
    assert answer.status_code == 403
    assert "deactivated" in answer.content.decode()
    assert who(stranger) == ""


def test_the_second_step_is_asked_for_here_too(
    client: Client, issuer: ScriptedIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyotp

    come_back(client, issuer, preferred_username="ines")
    ines, now = User.objects.get(), timezone.now()
    second_step.begin_enrolment(ines)
    second_step.confirm(ines, pyotp.TOTP(ines.second_step.secret).at(now), address="", now=now, session_key=None)
    other = Client()
    assert come_back(other, issuer, "/tokens").headers["Location"] == "/sign-in/code"
    assert who(other) == ""
    monkeypatch.setattr("lakehub.clock.now", lambda: now + timedelta(minutes=2))
    later = pyotp.TOTP(ines.second_step.secret).at(now + timedelta(minutes=2))
    assert other.post("/sign-in/code", {"code": later}).status_code == 302


GROUPS = {
    "admins": [("flight-ops", "admin"), ("weather-data", "owner")],
    "all": [("flight-ops", "viewer"), ("no-such-team", "owner")],
}


def roles(name: str = "ines") -> dict[str, str]:
    return dict(Membership.objects.filter(user__username=name).values_list("team__name", "role"))


def test_groups_give_roles_and_take_back_what_they_gave(
    client: Client, issuer: ScriptedIssuer, settings: Settings
) -> None:
    settings.LAKEHUB_OIDC_TEAMS = GROUPS
    for team in ("flight-ops", "weather-data", "by-hand"):
        make.team(team)
    for groups, expected in (
        (None, {}),
        ("admins", {}),
        (["others", 7, ["admins"]], {}),
        (["all"], {"flight-ops": "viewer"}),
        (["all", "admins"], {"flight-ops": "admin", "weather-data": "owner"}),
        (["all"], {"flight-ops": "viewer"}),
    ):
        come_back(Client(), issuer, preferred_username="ines", groups=groups)
        assert roles() == expected
    for team, role in (("by-hand", Role.ADMIN), ("weather-data", Role.VIEWER)):
        make.member(User.objects.get(), make.team(team), role)
    come_back(Client(), issuer, groups=["admins"])
    assert roles() == {"flight-ops": "admin", "weather-data": "viewer", "by-hand": "admin"}
    come_back(Client(), issuer, groups=[])
    assert roles() == {"weather-data": "viewer", "by-hand": "admin"}
    actions = AuditEntry.objects.filter(actor="single sign-on", subject="team:flight-ops").order_by("pk")
    assert [entry.detail["role"] for entry in actions] == ["viewer", "admin", "viewer", "admin", ""]


def test_the_pages_lead_there_and_out_again(client: Client, issuer: ScriptedIssuer, settings: Settings) -> None:
    settings.LAKEHUB_OIDC_NAME = "Example ID"
    page = client.get("/sign-in?next=/tokens").content.decode()
    assert "Sign in with Example ID" in page
    assert 'href="/sign-in/single-sign-on?next=%2Ftokens"' in page
    assert 'type="password"' in page
    settings.LAKEHUB_LOCAL_PASSWORDS = False
    assert 'type="password"' not in client.get("/sign-in").content.decode()
    come_back(client, issuer)
    answer = client.post("/sign-out")
    assert answer.headers["Location"] == "/signed-out"
    assert who(client) == ""
    assert (
        f'href="{issuer.url}/end?client_id={CLIENT_ID}&amp;post_logout_redirect_uri='
        in client.get("/signed-out").content.decode()
    )


def test_without_an_issuer_there_is_none(client: Client) -> None:
    assert "single-sign-on" not in client.get("/sign-in").content.decode()
    assert client.get(START).status_code == client.get(BACK).status_code == 404


def test_a_provider_that_is_away_is_no_error_of_ours(client: Client, settings: Settings) -> None:
    settings.LAKEHUB_OIDC_ISSUER = "http://127.0.0.1:1"
    provider.forget()
    assert client.get(START).status_code == 502
    assert client.get("/signed-out").status_code == 200


def test_a_provider_that_is_silent_holds_one_thread_and_is_asked_again_after_a_while(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "WAIT_S", 0.05)
    clock = itertools.count(0, 0.001)
    monkeypatch.setattr(provider, "monotonic", lambda: next(clock))
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor() as threads:
        settings.LAKEHUB_OIDC_ISSUER = f"http://127.0.0.1:{silent.getsockname()[1]}"
        provider.forget()
        first = threads.submit(provider.description)
        asked, _ = silent.accept()
        with pytest.raises(ProviderError, match="is being asked already"):
            provider.description()
        asked.close()
        with pytest.raises(ProviderError, match="cannot be read"):
            first.result(scaled(10))
        with pytest.raises(ProviderError, match="asked again after 10 seconds"):
            provider.description()
        clock = itertools.count(provider.ASKED_AGAIN_AFTER_S + 1, 0.001)
        again = threads.submit(provider.description)
        silent.accept()[0].close()
        with pytest.raises(ProviderError, match="cannot be read"):
            again.result(scaled(10))
    provider.forget()


def test_a_provider_that_answers_by_the_byte_is_left(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "ANSWERS_WITHIN_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as slow, ThreadPoolExecutor() as threads:
        settings.LAKEHUB_OIDC_ISSUER = f"http://127.0.0.1:{slow.getsockname()[1]}"
        provider.forget()
        asking = threads.submit(provider.description)
        asked, _ = slow.accept()
        asked.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not asking.done():
            with suppress(OSError):
                asked.sendall(b" ")
        with pytest.raises(ProviderError, match="has not answered whole"):
            asking.result()
        asked.close()
    provider.forget()


@pytest.mark.parametrize(
    "value", ["http://login.example.com", "login.example.com", "https://", "https://x/?a=1", "ftp://127.0.0.1"]
)
def test_an_issuer_is_https_or_on_loopback(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("X", value)
    with pytest.raises(environment.InvalidSetting, match="is not an issuer"):
        environment.issuer("X")


@pytest.mark.parametrize(
    "value", ["admins", "admins=flight-ops", "admins=flight-ops:boss", "=flight-ops:admin", "a=:admin"]
)
def test_roles_by_group_are_checked_at_the_start(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("X", value)
    with pytest.raises(environment.InvalidSetting, match="write group=team:role"):
        environment.roles_by_group("X", ("viewer", "admin"))


def test_an_issuer_needs_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A", "https://x")
    with pytest.raises(environment.InvalidSetting, match="A is set, but B is not"):
        environment.require_with("A", "B")
