"""Who may read /metrics: everybody who reaches it, or only people and programs that are known."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from lakehub import clock
from lakehub.accounts.tokens import api_tokens
from tests import factories as make

pytestmark = pytest.mark.django_db


def watching(scope: str) -> Client:
    _, text = api_tokens.issue_token(
        name="prometheus",
        consumer="prometheus",
        team=make.team(),
        created_by=make.user(),
        scopes=[scope],
        now=clock.now(),
    )
    return Client(headers={"Authorization": f"Bearer {text}"})


def test_unless_told_whoever_reaches_it_may_read_it(client: Client) -> None:
    assert client.get("/metrics").status_code == 200


def test_it_can_be_kept_for_those_who_are_known(client: Client, settings: Settings) -> None:
    settings.LAKEHUB_METRICS = "token"
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers={"Authorization": "Bearer lh_0.x"}).status_code == 401
    assert watching("gate:read").get("/metrics").status_code == 403
    assert watching("metrics:read").get("/metrics").status_code == 200
    client.force_login(make.user())
    assert client.get("/metrics").status_code == 200
