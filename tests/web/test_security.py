"""What sank others: expressions understood before the caller was known, and addresses that lead past authentication."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from django.db import transaction
from django.http import HttpResponseBase
from django.test import Client
from pytest_django.plugin import DjangoDbBlocker

from lakehub.catalog.models import Dataset
from tests import callers
from tests.callers import World
from tests.role_table import GATE, METRIC, NEW_TEST

UNKNOWN = ("anonymous", "expired token", "revoked token")
MAY_NOT = (*UNKNOWN, "token without the scope", "viewer", "viewer's token", "stranger")
READS = (*UNKNOWN, "token without the scope")
ASKED = (
    ("/api/v1/datasets/flights/expression", {"expression": "rows(this) > 0"}, READS, "admin"),
    ("/api/v1/datasets/flights/tests", NEW_TEST, MAY_NOT, "admin"),
    ("/api/v1/datasets/flights/tests?check=1", NEW_TEST, MAY_NOT, "admin"),
    ("/api/v1/datasets/flights/backtest", {"expression": "rows(this) > 0", "days": 1}, MAY_NOT, "admin"),
    ("/api/v1/datasets/flights/rules", {"kind": "nulls", "column": "id"}, MAY_NOT, "admin"),
    ("/api/v1/metrics", METRIC, MAY_NOT, "admin"),
    ("/api/v1/gate/query", {"sql": "SELECT * FROM flights", "dc": "dc1"}, READS, "token"),
    ("/datasets/flights/new-test", NEW_TEST, MAY_NOT, "admin"),
    ("/datasets/flights/expression", {"expression": "rows(this) > 0"}, READS, "viewer"),
    ("/new-metric", METRIC, MAY_NOT, "admin"),
)
"""Whatever takes an expression or SQL: who may not ask it, and one who may."""
PARSERS = (
    "lark.Lark.parse",
    "sqlglot.parse",
    "sqlglot.parse_one",
    "sqlglot.tokenize",
    "sqlglot.dialects.dialect.Dialect.parse",
)
GUARDED = (
    "/api/v1/datasets",
    f"/api/v1/gate?{GATE}",
    "/api/v1/schema",
    "/api/v1/audit",
    "/datasets",
    "/tokens",
    "/console/",
)
TRICKS = (
    "{path}/", "/{path}", "//{path}", "/.{path}", "{path}/.", "{path}/..;/", "{path};x", "{path}/;x", "{path};/health", "{path}.",
    "{path}..", "{path}.json", "{path}%00", "{path}%20", "{path}%2f", "{path}#/health", "{path}?/health", "{path}/health",
    "/health{path}", "/health/..{path}", "/health/%2e%2e{path}", "/health/%252e%252e{path}", "/health;/..{path}", "/health/..;{path}",
    "/sign-in/..{path}", "/static/..{path}", "/metrics/..{path}", "/api/v1/;{path}", "/api/v1/health/..{path}", "\\{path}",
)  # fmt: skip
HEADERS = (
    {"X-Original-URL": "/health"}, {"X-Rewrite-URL": "/health"}, {"X-Forwarded-Prefix": "/health"}, {"X-Forwarded-Path": "/health"},
    {"X-HTTP-Method-Override": "OPTIONS"}, {"X-Method-Override": "HEAD"}, {"Remote-User": "admin"}, {"X-Remote-User": "admin"},
    {"X-Forwarded-User": "admin"}, {"X-Forwarded-For": "127.0.0.1"}, {"X-Forwarded-Host": "localhost"}, {"Authorization": "Bearer"},
    {"Authorization": "Basic YWRtaW46YWRtaW4="}, {"Authorization": "Bearer null"}, {"Cookie": "sessionid=admin"},
)  # fmt: skip


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    with django_db_blocker.unblock(), transaction.atomic():
        yield callers.build()
        transaction.set_rollback(True)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was given to a parser of expressions or SQL. Nothing gets through one."""
    seen: list[str] = []

    def refuse(*texts: object, **_: object) -> object:
        seen.append(str(texts[-1]))
        raise ValueError("Parsing is off in this test.")

    for parser in PARSERS:
        monkeypatch.setattr(parser, refuse)
    return seen


def post(client: Client, address: str, body: object) -> HttpResponseBase:
    if address.startswith("/api/"):
        return client.post(address, json.dumps(body), content_type="application/json")
    return client.post(address, body)


def is_refused(answer: HttpResponseBase) -> bool:
    return answer.status_code in (401, 403) or answer.headers.get("Location", "").startswith("/sign-in?next=")


@pytest.mark.parametrize(("address", "body", "who", "other"), ASKED, ids=[row[0] for row in ASKED])
def test_nothing_is_parsed_for_those_who_may_not_ask(
    world: World, db: None, parsed: list[str], address: str, body: object, who: tuple[str, ...], other: str
) -> None:
    """CVE-2024-28253, -28254: an expression in the body was evaluated first, and the caller looked at second."""
    for name in who:
        assert is_refused(post(world.callers[name].client, address, body)), name
    assert parsed == []


@pytest.mark.parametrize(("address", "body", "who", "other"), ASKED, ids=[row[0] for row in ASKED])
def test_it_is_parsed_for_those_who_may(
    world: World, db: None, parsed: list[str], address: str, body: object, who: tuple[str, ...], other: str
) -> None:
    """Else the test above would hold whatever happened."""
    post(world.callers[other].client, address, body)
    assert parsed != []


def reached(client: Client, address: str, **headers: str) -> HttpResponseBase:
    """As a server hands it over: the path decoded once and otherwise as it came."""
    path, _, query = address.partition("?")
    environ = {f"HTTP_{name.replace('-', '_').upper()}": value for name, value in headers.items()}
    path = path.replace("%2e", ".").replace("%2f", "/").replace("%20", " ").replace("%00", "\0").replace("%25", "%")
    return client.request(REQUEST_METHOD="GET", PATH_INFO=path, QUERY_STRING=query, **environ)


@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize("name", ["anonymous", "expired token"])
def test_no_spelling_of_an_address_leads_past_authentication(world: World, db: None, name: str, trick: str) -> None:
    """CVE-2024-28255: a path parameter made a filter take an address for an open one."""
    for guarded in GUARDED:
        path, _, query = guarded.partition("?")
        address = trick.format(path=path) + (f"?{query}" if query else "")
        answer = reached(world.callers[name].client, address)
        closed = answer.status_code in (400, 401, 404) or "sign-in" in answer.headers.get("Location", "")
        moved = answer.status_code in (301, 302) and answer.headers["Location"].startswith(("/console/login", guarded))
        assert closed or moved, (address, answer.status_code, answer.headers)
        assert b"flight-ops" not in getattr(answer, "content", b""), address


@pytest.mark.parametrize("headers", HEADERS, ids=str)
def test_no_header_leads_past_authentication(world: World, db: None, headers: dict[str, str]) -> None:
    for guarded in GUARDED:
        answer = reached(Client(raise_request_exception=False), guarded, **headers)
        assert (
            answer.status_code == 401
            or "sign-in" in answer.headers["Location"]
            or "login" in answer.headers["Location"]
        )


def test_an_open_address_is_not_taken_for_another_one(world: World, db: None) -> None:
    for header in ("X-Original-URL", "X-Rewrite-URL"):
        answer = reached(world.callers["admin"].client, "/health", **{header: "/api/v1/audit"})
        assert answer.content == b'{"status": "alive"}'  # type: ignore[attr-defined]


@pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"])
def test_no_header_makes_another_method_of_one(world: World, db: None, header: str) -> None:
    client = world.callers["admin"].client
    assert client.get("/api/v1/datasets/flights", headers={header: "DELETE"}).status_code == 200
    assert client.get("/api/v1/datasets/flights?_method=DELETE").status_code == 200
    assert client.post("/api/v1/datasets/flights", {"_method": "DELETE"}, headers={header: "DELETE"}).status_code == 405
    assert Dataset.objects.get(name="flights").offboarded_at is None


def test_static_files_end_at_their_folder(client: Client, db: None) -> None:
    for path in (
        "/static/../manage.py",
        "/static/%2e%2e/manage.py",
        "/static/frontend/../../manage.py",
        "/static//etc/passwd",
    ):
        assert reached(client, path).status_code in (302, 404), path


@pytest.mark.parametrize(
    "body", [b'{"name": "a\\u0000b"}', b'{"name": "\\ud800"}', b"[" * 100_000, b'{"a": NaN}', b"\xff"]
)
def test_a_body_that_no_database_holds_is_refused_by_name(world: World, db: None, body: bytes) -> None:
    answer = world.callers["admin"].client.post("/api/v1/metrics", body, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "parse_error"


def test_a_body_is_bounded_and_json(world: World, db: None) -> None:
    client = world.callers["admin"].client
    big = json.dumps({"name": "x" * 1_048_576})
    assert client.post("/api/v1/metrics", big, content_type="application/json").status_code == 413
    assert client.post("/api/v1/metrics", {"name": "x"}).status_code == 415


def test_a_nul_in_an_address_or_a_form_is_refused(world: World, db: None) -> None:
    client = world.callers["admin"].client
    for answer in (
        reached(client, "/datasets/fl\0ights"),
        client.get("/datasets?q=%00"),
        client.get("/api/v1/incidents?dataset=%00"),
        client.post("/incidents/report", {"dataset": "flights", "text": "a\0b"}),
    ):
        assert answer.status_code == 400
        assert b"NUL" in answer.content  # type: ignore[attr-defined]


def test_what_is_not_there_below_the_api_is_json(world: World, db: None) -> None:
    answer = Client().get("/api/v1/nothing/here")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


@pytest.mark.parametrize("takes", ["text/html,*/*;q=0.8", "text/csv", "nonsense"])
def test_rest_answers_json_whatever_a_caller_says_it_takes(world: World, db: None, takes: str) -> None:
    (client := Client()).force_login(callers.make.user("ines"))
    answer = client.get("/api/v1/datasets", headers={"Accept": takes})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")


def test_whoever_signs_in_stays_here(client: Client, db: None) -> None:
    person = callers.make.user("ines")
    for elsewhere in ("//example.org", "https://example.org", "/\\example.org", "javascript:alert(1)"):
        form = {"username": person.username, "password": callers.make.PASSWORD, "next": elsewhere}
        assert Client().post("/sign-in", form).headers["Location"] == "/"
