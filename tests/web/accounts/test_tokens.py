"""Programs' tokens: only a hash is kept, and an old, revoked or mistyped one opens nothing."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command

from lakehub.accounts.models import Token
from lakehub.accounts.tokens import api_tokens
from lakehub.kernel.errors import Refused
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
    return api_tokens.issue_token(**(given | fields), now=make.NOW)  # type: ignore[arg-type]


def test_a_token_is_found_by_its_text_and_the_text_is_not_stored() -> None:
    make.data_center("dc1")
    token, text = issued(data_center="dc1")
    assert api_tokens.authenticate(text, now=make.NOW) == token
    assert text.partition(".")[2] not in str(Token.objects.values().get())


def test_a_wrong_secret_finds_nothing() -> None:
    _, text = issued()
    assert api_tokens.authenticate(text[:-1] + ("x" if text[-1] != "x" else "y"), now=make.NOW) is None
    assert api_tokens.authenticate("", now=make.NOW) is None


def test_an_expired_revoked_or_orphaned_token_finds_nothing() -> None:
    token, text = issued(expires_at=make.NOW + timedelta(days=1))
    assert api_tokens.authenticate(text, now=make.NOW + timedelta(days=1)) is None
    token.created_by.is_active = False
    token.created_by.save()
    assert api_tokens.authenticate(text, now=make.NOW) is None
    token, text = issued()
    Token.objects.filter(pk=token.pk).update(revoked_at=make.NOW)
    assert api_tokens.authenticate(text, now=make.NOW) is None


def test_an_unknown_scope_is_refused_with_the_nearest() -> None:
    with pytest.raises(Refused, match="Did you mean `gate:read`"):
        issued(scopes=["gate:raed"])


def test_a_token_ends_within_the_longest_time() -> None:
    token, _ = issued()
    assert token.expires_at == make.NOW + api_tokens.max_lifetime()
    for days in (0, -1, api_tokens.max_lifetime().days + 1):
        with pytest.raises(Refused, match="within 365 days"):
            issued(expires_at=make.NOW + timedelta(days=days))


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(Refused) as refused:
        issued(name=" ", consumer="Not a slug", data_center="dc7")
    assert set(refused.value.fields) == {"name", "consumer", "data_center"}


@pytest.mark.parametrize("text", ["lh_", "lh_00000000.", "x" * 5000, "lh_0000000\0.a", "lh_\u00e9"])
def test_what_does_not_look_like_a_token_is_not_looked_for(django_assert_num_queries: object, text: str) -> None:
    with django_assert_num_queries(0):  # type: ignore[operator]
        assert api_tokens.authenticate(text, now=make.NOW) is None


def test_the_last_use_is_noted_to_the_minute(django_assert_num_queries: object) -> None:
    token, text = issued()
    api_tokens.authenticate(text, now=make.NOW)
    with django_assert_num_queries(1):  # type: ignore[operator]
        api_tokens.authenticate(text, now=make.NOW + timedelta(seconds=30))
    api_tokens.authenticate(text, now=make.NOW + timedelta(seconds=90))
    token.refresh_from_db()
    assert token.last_used_at == make.NOW + timedelta(seconds=90)


def test_the_command_prints_a_token_that_works() -> None:
    make.team("flight-ops")
    make.user("ines")
    out = StringIO()
    call_command(
        "issue_token", "airflow", team="flight-ops", user="ines", consumer="etl", scope=["gate:read"], stdout=out
    )
    token = api_tokens.authenticate(out.getvalue().strip(), now=make.NOW)
    assert token is not None
    assert token.consumer == "etl"
