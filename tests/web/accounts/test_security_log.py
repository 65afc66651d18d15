"""Who came in, who did not, and who was refused stands in the log: who, from where, by what, in which request."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from lakehub.accounts.models import Role, Token, User
from lakehub.accounts.sign_in.throttle import FREE_FAILURES
from tests import factories as make
from tests.json_log import json_log
from tests.web.incidents.api_clients import token_client

pytestmark = pytest.mark.django_db
ADDRESS = "192.0.2.7"


@pytest.fixture
def ines() -> User:
    return make.user("ines")


def logged(logger: str, client: Client, method: str, path: str, data: Any = None) -> list[dict[str, Any]]:
    with json_log() as lines:
        getattr(client, method)(path, data, REMOTE_ADDR=ADDRESS)
    return [line for line in lines if line["logger"].startswith(logger)]


def test_who_comes_in_and_by_what(ines: User) -> None:
    (line,) = logged("frontend", Client(), "post", "/sign-in", {"username": "ines", "password": make.PASSWORD})
    assert line["message"] == "ines signed in by a password"
    assert (line["level"], line["address"]) == ("INFO", ADDRESS)
    assert line["request_id"]


def test_who_goes(ines: User) -> None:
    client = Client()
    client.force_login(ines)
    (line,) = logged("frontend", client, "post", "/sign-out")
    assert line["message"] == "ines signed out"


def test_a_wrong_password_and_whose_it_should_be(ines: User) -> None:
    (line,) = logged("lakehub", Client(), "post", "/sign-in", {"username": "ines", "password": "wrong"})
    assert (line["level"], line["message"], line["address"]) == ("WARNING", "A password was refused, of ines", ADDRESS)


def test_what_was_typed_as_a_name_is_not_shown(ines: User) -> None:
    (line,) = logged("lakehub", Client(), "post", "/sign-in", {"username": "my secret", "password": "x"})
    assert line["message"] == "A password was refused, of a name that nobody has"
    assert "my secret" not in str(line)


def test_who_must_wait(ines: User) -> None:
    client, wrong = Client(), {"username": "ines", "password": "wrong"}
    for _ in range(FREE_FAILURES["name and address"]):
        client.post("/sign-in", wrong, REMOTE_ADDR=ADDRESS)
    (line,) = logged("lakehub", client, "post", "/sign-in", wrong)
    assert line["message"].startswith("Too many attempts at a password have failed: nothing is looked at until")


def test_a_person_who_may_not_is_named(ines: User) -> None:
    client = Client()
    client.force_login(ines)
    for path in ("/tokens", "/api/v1/audit"):
        (line,) = logged("django.request", client, "get", path)
        assert (line["status_code"], line["caller"], line["address"]) == (403, "ines", ADDRESS)
        assert path in line["message"]


def test_a_token_that_may_not_is_named_and_one_that_is_none_is_not(ines: User) -> None:
    make.member(ines, make.team(), Role.ADMIN)
    client = token_client(ines, "gate:read")
    (line,) = logged("django.request", client, "get", "/api/v1/tokens")
    assert (line["status_code"], line["caller"]) == (403, Token.objects.get().prefix)
    guess = Client(headers={"Authorization": f"Bearer lh_aaaaaaaa.{'b' * 43}"})
    (line,) = logged("django.request", guess, "get", "/api/v1/tokens")
    assert (line["status_code"], line["address"]) == (401, ADDRESS)
    assert "caller" not in line
    assert "b" * 43 not in str(line)


@pytest.mark.parametrize(
    ("path", "body", "status"), [("/api/v1/teams", "{", 400), ("/api/v1/teams", '{"name": "\\u0000"}', 400)]
)
def test_what_cannot_be_read_is_a_line(path: str, body: str, status: int) -> None:
    client = Client()
    client.force_login(make.user("root", is_superuser=True))
    with json_log() as lines:
        client.post(path, body, content_type="application/json", REMOTE_ADDR=ADDRESS)
    (line,) = (line for line in lines if line["logger"] == "django.request")
    assert (line["status_code"], line["caller"], line["address"]) == (status, "root", ADDRESS)
