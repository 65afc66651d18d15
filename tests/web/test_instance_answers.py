"""What every answer of the instance carries, and how often anybody may ask for one."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpResponseBase
from django.test import Client

from lakehub import clock
from lakehub.accounts.models import Role
from lakehub.accounts.tokens import request_throttle
from lakehub.http.limits import address_limit
from lakehub.http.limits.rate_limit import SharedLimiter
from lakehub.http.security_headers import SECURITY_HEADERS
from tests import factories as make
from tests.factories import NOW
from tests.json_log import json_log
from tests.web.incidents.api_clients import token_client

pytestmark = pytest.mark.django_db
TIERS = "/api/v1/tiers"


@pytest.fixture
def limiters(settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Five at once, and time stands still; the settings turn each limit on."""
    for module in (request_throttle, address_limit):
        limiter = SharedLimiter(tmp_path / module.__name__)
        monkeypatch.setattr(module, "_limiter", lambda limiter=limiter: limiter)
    monkeypatch.setattr(clock, "now", lambda: NOW)
    monkeypatch.setattr(address_limit, "datetime", FrozenDatetime)
    return settings


class FrozenDatetime(datetime):
    ahead = timedelta()

    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        return NOW + cls.ahead


def codes(client: Client, number: int, path: str = TIERS, **more: Any) -> list[int]:
    return [client.get(path, **more).status_code for _ in range(number)]


@pytest.mark.parametrize("path", ["/", "/sign-in", "/no/such/page", TIERS, "/api/v1/no/such", "/console/", "/health"])
def test_what_one_person_may_see_is_stored_nowhere(path: str) -> None:
    signed_in = Client()
    signed_in.force_login(make.user())
    for client in (signed_in, Client()):
        answer = client.get(path)
        assert set(SECURITY_HEADERS) <= set(answer.headers)
        assert {"private", "no-store"} <= set(answer.headers["Cache-Control"].split(", "))


def test_files_that_are_the_same_for_everybody_may_be_kept() -> None:
    answer: HttpResponseBase = Client().get("/static/frontend/css/base.css")
    assert "no-store" not in answer.headers.get("Cache-Control", "")
    assert set(SECURITY_HEADERS) <= set(answer.headers)


@pytest.mark.parametrize(
    "path", ["/", "/sign-in", TIERS, "/static/frontend/css/base.css", "/static/none.css", "/health"]
)
def test_an_answer_is_what_it_says_and_of_no_other_page(path: str, settings: Any) -> None:
    answer = Client().get(path, secure=True)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_browsers_remember_https_whatever_the_answer(limiters: Any) -> None:
    limiters.SECURE_HSTS_SECONDS, limiters.SECURE_HSTS_INCLUDE_SUBDOMAINS, limiters.LAKEHUB_ADDRESS_RATE = (
        31536000,
        True,
        1,
    )
    answers = [Client().get(TIERS, secure=True) for _ in range(6)]
    assert [answer.status_code for answer in answers] == [401] * 5 + [429]
    assert {answer.headers["Strict-Transport-Security"] for answer in answers} == {
        "max-age=31536000; includeSubDomains"
    }
    assert set(SECURITY_HEADERS) <= set(answers[-1].headers)


@pytest.mark.parametrize("method", ["TRACE", "TRACK", "CONNECT", "PROPFIND"])
@pytest.mark.parametrize(
    "path", ["/sign-in", "/tokens", TIERS, "/console/", "/health", "/static/frontend/css/base.css"]
)
def test_no_other_method_is_answered(method: str, path: str) -> None:
    client = Client()
    client.force_login(make.user(is_superuser=True, is_staff=True))
    answer = client.generic(method, path, headers={"X-Secret": "shown-back"})
    assert answer.status_code == 405
    assert b"shown-back" not in answer.content


@pytest.mark.parametrize("path", [TIERS, "/metrics"])
def test_programs_are_not_led_from_http_to_https(path: str, settings: Any) -> None:
    """A redirect would hide that their token travelled in clear."""
    settings.SECURE_SSL_REDIRECT = True
    assert Client().get(path).status_code == 403
    assert Client().get(path, secure=True).status_code != 403
    assert Client().get("/sign-in").status_code == 301


def test_with_https_no_cookie_of_the_way_in_is_anothers(settings: Any) -> None:
    settings.SESSION_COOKIE_SECURE, settings.SESSION_COOKIE_NAME = True, "__Host-sessionid"
    client, person = Client(), make.user("ines")
    answer = client.post("/sign-in", {"username": "ines", "password": make.PASSWORD}, secure=True)
    assert set(answer.cookies) >= {"__Host-sessionid", "__Host-known"}
    for cookie in answer.cookies.values():
        assert cookie.key.startswith("__Host-") or cookie.key == "csrftoken"
        assert cookie["httponly"]
        assert cookie["samesite"] == "Lax"
    assert client.get("/account", secure=True).status_code == 200
    assert person.get_username() in client.get("/account", secure=True).content.decode()


def test_no_script_reads_the_token_of_forms() -> None:
    cookie = Client().get("/sign-in").cookies["csrftoken"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")


def test_signing_out_clears_what_the_browser_has_stored() -> None:
    client = Client()
    client.force_login(make.user())
    answer = client.post("/sign-out")
    assert answer.headers["Clear-Site-Data"] == '"cache", "storage"'
    assert client.get("/account").status_code == 302


def test_a_weakness_is_reported_to_whom_the_operator_names(settings: Any) -> None:
    settings.LAKEHUB_SECURITY_CONTACT = "mailto:security@example.com"
    text = Client().get("/.well-known/security.txt").content.decode()
    fields = dict(line.split(": ", 1) for line in text.splitlines())
    assert fields["Contact"] == "mailto:security@example.com"
    assert clock.now() < datetime.fromisoformat(fields["Expires"]) < clock.now() + timedelta(days=365)
    settings.LAKEHUB_SECURITY_CONTACT = ""
    assert Client().get("/.well-known/security.txt").status_code == 404


def test_each_token_and_each_person_has_a_rate_of_its_own(limiters: Any) -> None:
    limiters.LAKEHUB_API_RATE = 1
    person, colleague = make.user("vera"), make.user("paul")
    for user in (person, colleague):
        make.member(user, make.team(), Role.OWNER)
    signed_in = Client()
    signed_in.force_login(person)
    token = token_client(person, "quality:read")
    assert codes(token, 6) == [200] * 5 + [429]
    assert codes(signed_in, 6) == [200] * 5 + [429]
    assert codes(token_client(colleague, "quality:read"), 1) == [200]
    assert token.get(TIERS).headers["Retry-After"] == "1"


def test_an_address_that_guesses_tokens_is_stopped(limiters: Any) -> None:
    limiters.LAKEHUB_ADDRESS_RATE = 1
    guessing = Client(headers={"Authorization": "Bearer lh_aaaaaaaa.bbbb"})
    assert codes(guessing, 6) == [401] * 5 + [429]
    answer = guessing.get(TIERS)
    assert answer.headers["Retry-After"] == "1"
    assert answer.json()["error"]["code"] == "throttled"
    assert codes(guessing, 1, REMOTE_ADDR="192.0.2.9") == [401]


def test_one_customer_of_a_network_is_one_address_of_ipv6(limiters: Any) -> None:
    limiters.LAKEHUB_ADDRESS_RATE = 1
    addresses = [f"2001:db8:1:2::{number:x}" for number in range(1, 7)]
    assert [codes(Client(), 1, REMOTE_ADDR=address)[0] for address in addresses] == [401] * 5 + [429]
    assert codes(Client(), 1, REMOTE_ADDR="2001:db8:1:3::1") == [401]


def test_pages_count_and_static_files_do_not(limiters: Any) -> None:
    limiters.LAKEHUB_ADDRESS_RATE = 1
    client = Client()
    assert codes(client, 6, "/sign-in") == [200] * 5 + [429]
    assert client.get("/sign-in").headers["Content-Type"] == "text/plain; charset=utf-8"
    assert codes(client, 1, "/static/frontend/css/base.css") + codes(client, 1, "/health") == [200, 200]


def test_an_error_of_ours_tells_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log has it whole."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("postgresql://lakehub:hunter2@db/secret_table")

    monkeypatch.setattr("lakehub.accounts.sign_in.sessions.live_sessions", fail)
    client = Client(raise_request_exception=False)
    client.force_login(make.user())
    with json_log() as lines:
        answers = [client.get("/account"), client.get("/api/v1/sessions")]
    assert [answer.status_code for answer in answers] == [500, 500]
    for answer in answers:
        assert not {
            word for word in ("RuntimeError", "hunter2", "secret_table", "Traceback") if word in str(answer.content)
        }
    errors = [line for line in lines if line["level"] == "ERROR"]
    assert len(errors) == 2
    assert all("RuntimeError" in line["exception"] and "hunter2" not in str(line) for line in errors)


def test_an_address_that_no_proxy_of_ours_saw_is_not_believed(limiters: Any) -> None:
    limiters.LAKEHUB_ADDRESS_RATE = 1
    forged = [codes(Client(), 1, HTTP_X_FORWARDED_FOR=f"192.0.2.{number}")[0] for number in range(6)]
    assert forged == [401] * 5 + [429]
