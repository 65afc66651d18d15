"""Tokens over REST: for administrators of the team only, the text shown once, and never more than its maker may."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from lakehub.accounts.models import AuditEntry, Role, Token, User
from lakehub.accounts.tokens import api_tokens
from tests import factories as make

pytestmark = pytest.mark.django_db
ASKED = {"name": "airflow", "team": "flight-ops", "consumer": "etl", "scopes": ["gate:read"], "days": 30}


@pytest.fixture
def ines() -> User:
    person = make.user("ines")
    make.member(person, make.team(), Role.ADMIN)
    return person


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def bearer(maker: User, *scopes: str, **fields: Any) -> Client:
    from lakehub import clock

    _, text = api_tokens.issue_token(
        name="t", consumer="etl", team=make.team(), created_by=maker, scopes=scopes, now=clock.now(), **fields
    )
    return Client(headers={"Authorization": f"Bearer {text}"})


def ask(client: Client, **changes: Any) -> Any:
    return client.post("/api/v1/tokens", ASKED | changes, content_type="application/json")


def test_the_text_is_shown_once_and_opens_what_its_scopes_say(ines: User) -> None:
    answer = ask(signed_in(ines))
    assert answer.status_code == 201
    assert "no-store" in answer.headers["Cache-Control"]
    created = answer.json()
    client = Client(headers={"Authorization": f"Bearer {created['token']}"})
    assert client.get("/api/v1/gate").status_code == 422
    assert client.get("/api/v1/datasets").status_code == 403
    listed = signed_in(ines).get("/api/v1/tokens")
    assert [token["prefix"] for token in listed.json()["results"]] == [created["prefix"]]
    assert created["token"].partition(".")[2] not in listed.content.decode()


def test_a_revoked_token_opens_nothing_at_once_and_is_listed_as_ended(ines: User) -> None:
    created, mine = ask(signed_in(ines)).json(), signed_in(ines)
    client = Client(headers={"Authorization": f"Bearer {created['token']}"})
    assert mine.delete(f"/api/v1/tokens/{created['prefix']}").status_code == 204
    assert client.get("/api/v1/gate").status_code == 401
    assert mine.delete(f"/api/v1/tokens/{created['prefix']}").status_code == 409
    assert mine.get("/api/v1/tokens").json()["count"] == 0
    assert mine.get("/api/v1/tokens?all=1").json()["results"][0]["revoked_at"] is not None


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OWNER, Role.ON_CALL, None])
def test_only_administrators_of_the_team_make_see_and_revoke_them(ines: User, role: Role | None) -> None:
    created, other = ask(signed_in(ines)).json(), make.user("omar")
    make.member(other, make.team("weather"), Role.ADMIN)
    if role:
        make.member(other, make.team(), role)
    client = signed_in(other)
    assert ask(client).status_code == 403
    assert client.get("/api/v1/tokens").json()["count"] == 0
    assert client.delete(f"/api/v1/tokens/{created['prefix']}").status_code == 403
    assert Token.objects.get(prefix=created["prefix"]).revoked_at is None


def test_a_token_hands_on_no_more_than_it_has(ines: User) -> None:
    client = bearer(ines, "tokens:write", "gate:read")
    wider = ask(client, scopes=["gate:read", "incidents:write"])
    assert wider.status_code == 422
    assert "`incidents:write`" in wider.json()["error"]["fields"]["scopes"]
    assert ask(client).status_code == 201


def test_a_token_makes_none_that_outlives_it(ines: User) -> None:
    from lakehub import clock

    client = bearer(ines, "tokens:write", "gate:read", expires_at=clock.now() + timedelta(days=2))
    assert "ends no later" in ask(client, days=3).json()["error"]["fields"]["days"]
    assert ask(client, days=1).status_code == 201


def test_a_token_acts_for_its_team_only(ines: User) -> None:
    make.member(ines, make.team("weather"), Role.ADMIN)
    client = bearer(ines, "tokens:write", "tokens:read", "gate:read")
    assert ask(client, team="weather").status_code == 403
    ask(signed_in(ines), team="weather")
    assert {token["team"] for token in client.get("/api/v1/tokens").json()["results"]} == {"flight-ops"}


@pytest.mark.parametrize(
    ("field", "value"),
    [("scopes", []), ("scopes", ["gate:raed"]), ("days", 0), ("days", 366), ("days", None), ("team", "flight-opps")],
)
def test_what_cannot_be_used_is_named(ines: User, field: str, value: object) -> None:
    answer = ask(signed_in(ines), **{field: value})
    assert answer.status_code in (400, 422)
    assert field in answer.json()["error"]["fields"] or "administer" in answer.content.decode()


def test_each_change_is_in_the_audit_log(ines: User) -> None:
    created = ask(signed_in(ines)).json()
    signed_in(ines).delete(f"/api/v1/tokens/{created['prefix']}")
    done = AuditEntry.objects.filter(subject=f"token:{created['prefix']}").order_by("pk")
    assert list(done.values_list("actor", "action")) == [("ines", "issue token"), ("ines", "revoke token")]


def test_the_secret_is_in_no_log_and_no_row(ines: User, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever is logged at the lowest level, while it works, is refused, and fails with an error of ours."""
    with caplog.at_level(logging.DEBUG):
        token = ask(signed_in(ines), scopes=["gate:read", "catalog:read"]).json()["token"]
        client = Client(headers={"Authorization": f"Bearer {token}"}, raise_request_exception=False)
        for address in ("/api/v1/gate", "/api/v1/datasets", "/api/v1/incidents", "/nothing"):
            client.get(address)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("lakehub.catalog.api.DatasetList.get_queryset", None)
            assert client.get("/api/v1/datasets").status_code == 500
    secret = token.partition(".")[2]
    assert caplog.records
    assert secret not in caplog.text
    assert not [record for record in caplog.records if secret in str(record.__dict__)]
    assert secret not in str([*Token.objects.values(), *AuditEntry.objects.values()])
