"""Every address of the resolver, as every caller, against one table (tests/role_table.py): pages, API, console, exports, bulk actions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection, transaction
from django.http import HttpResponseBase
from django.test.utils import CaptureQueriesContext
from pytest_django.plugin import DjangoDbBlocker

from incidents.models import IncidentEvent
from lakehub.accounts.models import AuditEntry
from tests import callers
from tests.callers import CALLERS, PEOPLE, Caller, World
from tests.every_address import CONSOLE, OURS, filled, place, undone, walk
from tests.role_table import PIPELINE, TABLE, line_for
from tests.role_table_lines import ANY_SCOPE, ANYBODY, DONE, NOBODY, NOTHING, READERS, Line

GARBAGE = b'{"expression": "((((", "sql": "SELECT'
"""What nobody can parse: whoever may not is told so all the same."""
NAMES = ("team", "dataset", "consumer", "connection", "files", *PIPELINE)
"""What the body says of whose right it takes."""
BY_ASKING = ("accounts_browsersession", "accounts_token", "accounts_signintries", "incidents_gatequestion")
"""Tables that are written by asking at all."""
LINES = {"audit": AuditEntry._meta.db_table, "event": IncidentEvent._meta.db_table}
"""Where a line is added about what was done."""
AS = {"token": "admin", "viewer's token": "viewer"}
"""Whose rights a program has."""
FOR_ALL = ("login", "logout")
FOR_STAFF = ("", "password_change", "autocomplete", "r")
"""Of the console: what needs no permission of its own."""


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """Built once in a transaction that is never committed; each test's own is a savepoint within it."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield callers.build()
        transaction.set_rollback(True)


def test_every_address_is_in_the_table() -> None:
    missing = [f"{method} {address}" for method, address in walk() if line_for(method, address) is None]
    assert not missing, f"tests/role_table.py has no line for {', '.join(missing)}"


def test_what_changes_something_says_what_it_leaves() -> None:
    silent = [address for method, address in OURS if method != "GET" and not _line(method, address).leaves]
    assert not silent, f"tests/role_table.py does not say what is left of {', '.join(silent)}"


def test_the_table_has_no_line_that_nothing_needs() -> None:
    used = {id(line_for(method, address)) for method, address in walk()}
    assert [f"{line.methods} {line.address}" for line in TABLE if id(line) not in used] == []


@pytest.mark.parametrize(("method", "address"), OURS, ids=[" ".join(request) for request in OURS])
def test_each_caller_is_answered_as_the_table_says(world: World, db: None, method: str, address: str) -> None:
    line, where = _line(method, address), place(address, world)
    for name in _asking(line, method, address):
        may = _may(line, name, address)
        for body in (filled(line.body, world),) if may else _bodies_of_others(line, world):
            with undone(), CaptureQueriesContext(connection) as seen:
                answer = _ask(world.callers[name], method, where + (f"?{line.asks}" if line.asks else ""), body)
            made = {
                what: sum(f'INSERT INTO "{table}"' in query["sql"] for query in seen) for what, table in LINES.items()
            }
            outcome = f"{method} /{where} by {name} with {body!r}: {answer.status_code} {_text(answer)}"
            assert (answer.status_code in line.answers) if may else _is_refused(answer, line, name, address), outcome
            if method == "GET" or not may:
                assert _written(seen) == [], outcome
            if line.leaves.startswith(NOTHING) or not _changes(line, name, may):
                assert made == {"audit": 0, "event": 0}, f"{outcome} left {made}"
            elif method != "GET" and answer.status_code in DONE:
                assert made[line.leaves], f"{outcome} left {made}"


@pytest.mark.parametrize("part", sorted({address.split("/")[1] for address in CONSOLE}))
def test_the_console_is_for_staff_with_the_permission(world: World, db: None, part: str) -> None:
    for address in (console_address for console_address in CONSOLE if console_address.split("/")[1] == part):
        where = _console_place(address)
        # The list of each model as everybody; the rest as those whom the console might mistake for its own.
        for name in (
            ("anonymous", "admin", "token", "staff", "superuser") if address.count("/") < 4 else ("admin", "staff")
        ):
            with undone():
                answer = world.callers[name].client.get(f"/{where}")
            outcome = f"/{where} by {name}: {answer.status_code} {_to(answer)}"
            assert answer.status_code < 500, outcome
            if name in ("anonymous", "admin", "token") and part not in FOR_ALL:
                assert _to(answer).startswith(("/sign-in?next=", "/console/login/?next=")), outcome
            elif (
                name == "staff"
                and part
                and part not in (*FOR_ALL, *FOR_STAFF)
                and not address.endswith("<path:object_id>/")
            ):
                assert answer.status_code in (403, 404) or _to(answer) == "/console/", outcome


def _line(method: str, address: str) -> Line:
    return line_for(method, address) or pytest.fail(f"tests/role_table.py has no line for {method} {address}")


def _asking(line: Line, method: str, address: str) -> tuple[str, ...]:
    """Over the API everybody. Pages know no tokens, so one stands for all; what everybody reads there, a few read here."""
    if address.startswith("api/"):
        names = CALLERS
    elif method == "GET" and line.who == READERS:
        names = ("anonymous", "viewer", "admin", "stranger", "token")
    else:
        names = ("anonymous", *PEOPLE, "token")
    return tuple(name for name in names if not line.slow or name == "owner" or not _may(line, name, address))


def _may(line: Line, name: str, address: str) -> bool:
    """A token is a person who is bounded by scopes, over the API only."""
    if line.who is ANYBODY:
        return True
    if line.scope == ANY_SCOPE and name == "token without the scope":
        return True
    if name not in AS:
        return name in line.who
    return address.startswith("api/") and bool(line.scope) and AS[name] in line.who


def _changes(line: Line, name: str, may: bool) -> bool:
    return may and AS.get(name, name) in (line.who if line.acts is None else line.acts)


def _is_refused(answer: HttpResponseBase, line: Line, name: str, address: str) -> bool:
    if not address.startswith("api/"):
        known = name in PEOPLE
        return answer.status_code == 403 if known else _to(answer).startswith("/sign-in?next=")
    unknown = name in ("anonymous", "expired token", "revoked token") or line.who == NOBODY
    return answer.status_code == (401 if unknown else 403)


def _to(answer: HttpResponseBase) -> str:
    return answer.headers.get("Location", "") if answer.status_code == 302 else ""


def _text(answer: HttpResponseBase) -> str:
    return _to(answer) or getattr(answer, "content", b"")[:300].decode()


def _console_place(address: str) -> str:
    """Of each model the first row, if there is one."""
    address = re.sub(r"\^\(\?P<app_label>(\w+).*?\)", r"\1", address).replace("$", "")
    app, _, model = address.removeprefix("console/").rstrip("/").partition("/")
    known = {
        (model_class._meta.app_label, model_class._meta.model_name): model_class for model_class in admin.site._registry
    }
    shown_model = known.get((app, model.split("/")[0]))
    first = shown_model._default_manager.order_by("pk").first() if shown_model else None
    values = {"object_id": first.pk if first else 1, "id": first.pk if first else 1, "content_type_id": 1}
    return re.sub(r"<(?:path:)?(\w+)>", lambda match: str(values[match[1]]), address)


def _bodies_of_others(line: Line, world: World) -> tuple[Any, ...]:
    """What nobody can parse: the right comes first. Where the body says whose right it takes, that alone makes sense;
    or everything does, and that is written in a way that is understood in the end.
    """
    if not line.team_in_body:
        return (GARBAGE,)
    whole = filled(line.body, world)
    team_fields = {name: whole[name] for name in NAMES if name in whole}
    is_api = line.address.startswith("api/")
    padded = {name: f" {value} " for name, value in team_fields.items() if is_api and isinstance(value, str)}
    return ({**dict.fromkeys(whole, "(((("), **team_fields}, {**whole, **padded})


def _ask(caller: Caller, method: str, where: str, body: Any) -> HttpResponseBase:
    send = getattr(caller.client, method.lower())
    if method == "GET":
        return send(f"/{where}")  # type: ignore[no-any-return]
    if where.startswith("api/"):
        text = body if isinstance(body, bytes) else json.dumps(body)
        return send(f"/{where}", text, content_type="application/json")  # type: ignore[no-any-return]
    fields = {"expression": "((((", "sql": "SELECT"} if isinstance(body, bytes) else body
    return send(f"/{where}", fields)  # type: ignore[no-any-return]


def _written(seen: CaptureQueriesContext) -> list[str]:
    changes = [query["sql"] for query in seen if re.match(r"INSERT|UPDATE|DELETE", query["sql"])]
    return [sql for sql in changes if not any(f'"{table}"' in sql for table in BY_ASKING)]
