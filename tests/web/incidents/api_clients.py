"""Programs that ask the API, by the token of somebody in a role."""

from __future__ import annotations

from typing import Any

from django.test import Client

from lakehub.accounts.models import Role, User
from lakehub.accounts.tokens import api_tokens
from tests import factories
from tests.factories import NOW


def token_client(by: User, *scopes: str, consumer: str = "etl", data_center: str = "") -> Client:
    """A token of the team that `by` has made."""
    _, text = api_tokens.issue_token(
        name="jobs",
        consumer=consumer,
        team=factories.team(),
        created_by=by,
        scopes=scopes,
        data_center=data_center,
        now=NOW,
    )
    return Client(headers={"authorization": f"Bearer {text}"})


def client(role: Role = Role.ON_CALL, *scopes: str) -> Client:
    """Of a member of the team; by default it may read incidents and act on them."""
    person = factories.user(f"{role}")
    factories.member(person, factories.team(), role)
    return token_client(person, *(scopes or ("incidents:read", "incidents:write")))


def post(by: Client, path: str, expect: int = 200, **body: Any) -> dict[str, Any]:
    """What is answered below /incidents."""
    answer = by.post(f"/api/v1/incidents{path}", body, content_type="application/json")
    assert answer.status_code == expect, answer.content
    payload: dict[str, Any] = answer.json()
    return payload
