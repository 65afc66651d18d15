"""Who you are, the tokens of your teams, the audit log."""

from __future__ import annotations

from typing import Any

from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import BrowserSession, Token
from lakehub.accounts.recent_sign_in import RECENT
from tests import factories as make

ASKED = {
    "name": "airflow",
    "team": "flight-ops",
    "consumer": "etl",
    "scopes": ["gate:read", "quality:run"],
    "days": "9",
}


def test_the_page_says_which_roles_somebody_has(page: Client, guest: Client) -> None:
    html = page.get("/account").content.decode()
    assert "You are in 3 teams" in html
    assert 'href="/tokens"' in html
    html = guest.get("/account").content.decode()
    assert "You are in 1 team" in html
    assert 'href="/tokens"' not in html


def test_the_text_of_a_token_is_shown_once(page: Client) -> None:
    answer = page.post("/tokens", ASKED)
    made = Token.objects.get(name="airflow")
    assert answer.status_code == 201
    assert "no-store" in answer.headers["Cache-Control"]
    assert f"{made.prefix}." in answer.content.decode()
    later = page.get("/tokens").content.decode()
    assert made.prefix in later
    assert f"{made.prefix}." not in later


def test_a_token_is_made_in_a_recent_session_only(page: Client) -> None:
    """It outlives the session that was stolen, or left open."""
    BrowserSession.objects.update(begun_at=timezone.now() - RECENT)
    again = "/sign-in?again=1&next=%2Ftokens"
    html = page.get("/tokens").content.decode()
    assert f'href="{escape(again)}"' in html
    assert "Make the token" not in html
    assert page.post("/tokens", ASKED).headers["Location"] == again
    answer = page.post("/api/v1/tokens", ASKED | {"days": 9}, content_type="application/json")
    assert (answer.status_code, "Sign in again" in answer.json()["error"]["message"]) == (403, True)
    assert not Token.objects.exists()


def test_what_cannot_be_used_is_said_at_its_field_and_stays_typed(page: Client) -> None:
    def said(**changes: Any) -> str:
        answer = page.post("/tokens", ASKED | changes)
        assert answer.status_code == 422
        return answer.content.decode()

    assert "is not a number of days from 1 to 365" in said(days="9000")
    assert "Choose at least one scope" in said(scopes=[])
    assert 'value="Not A Slug"' in said(consumer="Not A Slug")
    assert not Token.objects.exists()


def test_revoking_is_a_button(page: Client) -> None:
    page.post("/tokens", ASKED)
    made = Token.objects.get(name="airflow")
    assert "is revoked" in page.post(f"/tokens/{made.prefix}/revoke", follow=True).content.decode()
    assert made.prefix not in page.get("/tokens").content.decode()
    assert made.prefix in page.get("/tokens?all=1").content.decode()
    assert "revoked already" in page.post(f"/tokens/{made.prefix}/revoke", follow=True).content.decode()


def test_the_audit_log_is_narrowed_and_its_csv_too(page: Client) -> None:
    page.post("/tokens", ASKED)
    audit_log.record("omar", "connect", "connection:ops", now=make.NOW)
    html = page.get("/audit?actor=omar&since=2026-11-17").content.decode()
    assert "1 change found" in html
    assert "connection:ops" in html
    assert "actor=omar&amp;since=2026-11-17T00%3A00%3A00-05%3A00" in html
    assert "Nothing like that was changed" in page.get("/audit?actor=nobody").content.decode()
    assert page.get("/audit?since=yesterday").status_code == 422
