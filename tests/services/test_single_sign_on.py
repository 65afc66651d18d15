"""Single sign-on at a real provider, npm's `oidc-provider`: there with PKCE, back with a signed token, and out again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest
import requests
from django.test import Client
from pytest_django import Settings

from lakehub.accounts.models import ExternalIdentity, Membership, User
from lakehub.accounts.single_sign_on import provider
from tests import factories as make
from tests.conftest import require
from tests.requirements import Service
from tests.scripted_issuer import CLIENT_ID, CLIENT_SECRET

pytestmark = pytest.mark.django_db
START = "/sign-in/single-sign-on"
OURS = "http://127.0.0.1:8000"


@pytest.fixture
def issuer(settings: Settings) -> Iterator[str]:
    settings.LAKEHUB_OIDC_ISSUER = require(Service.OPENID)
    settings.LAKEHUB_OIDC_CLIENT_ID, settings.LAKEHUB_OIDC_CLIENT_SECRET = CLIENT_ID, CLIENT_SECRET
    settings.LAKEHUB_OIDC_TEAMS = {"analysts": [("flight-ops", "viewer")]}
    provider.forget()
    yield settings.LAKEHUB_OIDC_ISSUER
    provider.forget()


def sign_in_there(browser: requests.Session, url: str, name: str) -> str:
    """What the provider sends the browser back with, after a page for the name and one for consent."""
    for _ in range(20):
        answer = browser.get(url, allow_redirects=False, timeout=10)
        while answer.is_redirect:
            url = urljoin(url, answer.headers["Location"])
            if url.startswith(OURS):
                return url
            answer = browser.get(url, allow_redirects=False, timeout=10)
        form = re.search(r'<form[^>]* action="([^"]+)"', answer.text)
        assert form, answer.text
        prompt = "login" if 'name="login"' in answer.text else "consent"
        given = {"prompt": prompt, "login": name, "password": "x"}
        answer = browser.post(urljoin(url, form[1]), given, allow_redirects=False, timeout=10)
        url = urljoin(url, answer.headers["Location"])
    raise AssertionError(f"The provider never came to an end: {url}")


def round_trip(client: Client, name: str) -> str:
    """To the provider and back; the address that Lakehub was asked by."""
    there = client.get(START, {"next": "/tokens"}).headers["Location"]
    with requests.Session() as browser:
        return sign_in_there(browser, there, name)


def arrive(client: Client, url: str) -> int:
    parts = urlsplit(url)
    answer = client.get(parts.path, dict(parse_qsl(parts.query)))
    assert answer.status_code != 302 or answer.headers["Location"] == "/tokens"
    return answer.status_code


def test_somebody_new_is_made_and_known_again(client: Client, issuer: str) -> None:
    make.team("flight-ops")
    assert arrive(client, round_trip(client, "ines")) == 302
    ines = User.objects.get()
    assert (ines.username, ines.first_name, ines.email) == ("ines", "Inês", "ines@example.org")
    assert ExternalIdentity.objects.get().issuer == issuer
    assert Membership.objects.get().role == "viewer"
    assert client.get("/account").status_code == 200
    again = Client()
    assert arrive(again, round_trip(again, "ines")) == 302
    assert User.objects.count() == 1
    arrive(other := Client(), round_trip(other, "omar"))
    assert set(User.objects.values_list("username", flat=True)) == {"ines", "omar"}


def test_a_code_counts_once_and_for_one_browser(client: Client, issuer: str) -> None:
    url = round_trip(client, "ines")
    stranger = Client()
    stranger.get(START)
    assert arrive(stranger, url) == 403
    cookie = client.cookies["sso"].value
    assert arrive(client, url) == 302
    client.post("/sign-out")
    client.cookies["sso"] = cookie  # as somebody would who has copied it
    assert arrive(client, url) == 502
    assert client.get("/account").status_code == 302


def test_without_the_verifier_of_the_browser_the_code_is_worth_nothing(
    client: Client, issuer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = round_trip(client, "ines")
    real = provider.claims_for_code
    monkeypatch.setattr(provider, "claims_for_code", lambda code, **given: real(code, **given | {"verifier": "a" * 43}))
    assert arrive(client, url) == 502


def test_with_another_secret_the_provider_lets_nobody_in(client: Client, issuer: str, settings: Settings) -> None:
    url = round_trip(client, "ines")
    settings.LAKEHUB_OIDC_CLIENT_SECRET = "another secret of enough characters"
    assert arrive(client, url) == 502
    assert not User.objects.exists()


def test_the_way_out_is_known_there(client: Client, issuer: str) -> None:
    arrive(client, round_trip(client, "ines"))
    client.post("/sign-out")
    page = client.get("/signed-out").content.decode()
    match = re.search(r'href="(http[^"]+)"', page)
    assert match
    with requests.Session() as browser:
        answer = browser.get(match[1].replace("&amp;", "&"), timeout=10)
        assert answer.status_code == 200, "it knows the client, and where it may send people after"
        fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', answer.text))
        where = re.search(r'action="([^"]+)"', answer.text)
        assert where
        answer = browser.post(urljoin(issuer, where[1]), fields, allow_redirects=False, timeout=10)
    assert answer.headers["Location"].startswith(f"{OURS}/sign-in")
