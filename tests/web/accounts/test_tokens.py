"""Programs' tokens: only a hash is kept, and an old, revoked or mistyped one opens nothing."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command

from lakehub.accounts import tokens
from lakehub.accounts.models import Token
from tests import factories as make

pytestmark = pytest.mark.django_db


def issued(**fields: object) -> tuple[Token, str]:
    given = {
        "name": "airflow",
        "consumer": "etl",
        "team": make.team(),
        "created_by": make.user(),
        "scopes": ["gate:read"],
    }
    return tokens.issue(**(given | fields), now=make.NOW)  # type: ignore[arg-type]


def test_a_token_is_found_by_its_text_and_the_text_is_not_stored() -> None:
    token, text = issued(data_center="dc1")
    assert tokens.find(text, now=make.NOW) == token
    assert text.partition(".")[2] not in str(Token.objects.values().get())


def test_a_wrong_secret_finds_nothing() -> None:
    _, text = issued()
    assert tokens.find(text[:-1] + ("x" if text[-1] != "x" else "y"), now=make.NOW) is None
    assert tokens.find("", now=make.NOW) is None


def test_an_expired_revoked_or_orphaned_token_finds_nothing() -> None:
    token, text = issued(expires_at=make.NOW + timedelta(days=1))
    assert tokens.find(text, now=make.NOW + timedelta(days=1)) is None
    token.created_by.is_active = False
    token.created_by.save()
    assert tokens.find(text, now=make.NOW) is None
    token, text = issued()
    Token.objects.filter(pk=token.pk).update(revoked_at=make.NOW)
    assert tokens.find(text, now=make.NOW) is None


def test_an_unknown_scope_is_refused_with_the_nearest() -> None:
    with pytest.raises(tokens.UnknownScope, match="Did you mean `gate:read`"):
        issued(scopes=["gate:raed"])


def test_the_last_use_is_noted_to_the_minute(django_assert_num_queries: object) -> None:
    token, text = issued()
    tokens.find(text, now=make.NOW)
    with django_assert_num_queries(1):  # type: ignore[operator]
        tokens.find(text, now=make.NOW + timedelta(seconds=30))
    tokens.find(text, now=make.NOW + timedelta(seconds=90))
    token.refresh_from_db()
    assert token.last_used_at == make.NOW + timedelta(seconds=90)


def test_the_command_prints_a_token_that_works() -> None:
    make.team("flight-ops")
    make.user("ines")
    out = StringIO()
    call_command(
        "issue_token", "airflow", team="flight-ops", user="ines", consumer="etl", scope=["gate:read"], stdout=out
    )
    found = tokens.find(out.getvalue().strip(), now=make.NOW)
    assert found is not None
    assert found.consumer == "etl"
