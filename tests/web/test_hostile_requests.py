"""Requests that nobody means well: every address of pages and API, with hostile values in its path, query and body.

Nothing is answered with 5xx, whatever a caller sends. `LAKEHUB_FUZZ_REQUESTS=100000 python -m pytest tests/web/test_hostile_requests.py`
asks so often; the seed is new each time and is printed (`LAKEHUB_FUZZ_SEED` repeats it).
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.db import transaction
from django.http import HttpResponseBase, QueryDict
from pytest_django.plugin import DjangoDbBlocker

from tests import callers
from tests.callers import CALLERS, Caller, World
from tests.every_address import OURS, filled, place, undone
from tests.fuzz_seed import REPEAT, SEED
from tests.role_table import line_for

REQUESTS = int(os.environ.get("LAKEHUB_FUZZ_REQUESTS", "600"))
ASKING = (*("superuser", "admin") * 6, *CALLERS)
"""Who may most, most often: what is refused at the door tries nothing."""

INSTANTS = (
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999999-23:59", "9999-12-31", "0001-01-01", "10000-01-01", "2026-02-30",
    "2026-11-16T24:00", "2026-11-16T00:00:60Z", "٢٠٢٦-١١-١٦", "2026-W47", "20261116T00", "-0001-01-01", "2026-11-16T00:00+99:99",
)  # fmt: skip
NUMBERS = (
    "1" + "0" * 309, "9" * 5000, "-1", "0", "1e999", "nan", "-inf", "٣", str(2**63), str(-(2**63) - 1), "0x10", "1_0", "²", "0.5",
    "99999999999d", "-1h", "1e9h", "400000w", "9" * 400 + "h",
)  # fmt: skip
TEXTS = (
    "", " ", "'", '"', "''--", "\\", "%", "%s%n", "{{7*7}}", "${7*7}", "${env:HOME}", "<script>alert(1)</script>", "../../etc/passwd",
    "/", "//", "..", "\r\nX-Evil: 1", "\u202e\u0000", "\u0000", "\ud800", "😀" * 300, "a" * 70_000, "((((" * 500, "[" * 3000, "ﷺ" * 50,
    "null", "true", "[]", "{}", "dataset:", "dataset:\u0000", ":" * 99, ",", ",,,,", "*", "-", "a,b,c", "http://169.254.169.254/",
    "sqlite:////etc/passwd", "Europe/../../etc/passwd", "UTC\n", "Europe", "[" * 100_000, "this", "rows(this) > 0", "SELECT 1; DROP TABLE x", "^(a+)+$",
)  # fmt: skip
TYPES: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**63, 10**309, -0.0, 1e308, [], {}, [[]], [None], {"": {}}, [0] * 3000, ["a"] * 3000, {"a": {"b": [1]}},
    [{"": None}] * 50, list("abc"),
)  # fmt: skip


def test_no_request_is_answered_with_an_error_of_ours(
    world: World, db: None, asked_names: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(SEED)
    names: dict[tuple[str, str], list[str]] = {}
    for _ in range(REQUESTS):
        method, address = chance.choice(OURS)
        if (method, address) not in names:
            names[method, address] = _parameters(world, method, address, asked_names)
        caller = world.callers[chance.choice(ASKING)]
        path, body = _path(address, world, chance), _body(method, address, world, chance)
        if method == "POST" and isinstance(body, Mapping) and not address.startswith("api/"):
            body = {**body, **_fields(names[method, address], chance)}
            query = ""
        else:
            query = _query(names[method, address], chance)
        with undone():
            answer = _ask(caller, method, path + query, body)
        what = f"{method} /{path}{query} by {caller.name} with {body!r}"
        assert answer.status_code < 500, f"{answer.status_code}: {what[:3000]} ({REPEAT})"
    with capsys.disabled():
        print(f" [{REQUESTS:,} hostile requests, {REPEAT}] ", end="")


TIME_PARAMETERS = {"from", "to", "since", "until"}


def test_no_time_in_an_address_is_too_early_or_too_late(world: World, db: None, asked_names: set[str]) -> None:
    """Each parameter by itself: one that is refused hides what another does."""
    superuser = world.callers["superuser"]
    for address in [address for method, address in OURS if method == "GET"]:
        names = _parameters(world, "GET", address, asked_names)
        for name, text in product(TIME_PARAMETERS.intersection(names), INSTANTS):
            where = f"{place(address, world)}?{urlencode({name: text})}"
            with undone():
                assert _ask(superuser, "GET", where, None).status_code < 500, where


@pytest.mark.parametrize("name", ["at__gte", "at__year", "id__exact", "q", "p"])
def test_what_the_console_cannot_narrow_by_is_the_callers_error(world: World, db: None, name: str) -> None:
    superuser = world.callers["superuser"]
    for text in (*INSTANTS, *NUMBERS):
        where = f"console/accounts/auditentry/?{urlencode({name: text})}"
        assert _ask(superuser, "GET", where, None).status_code < 500, where


def test_the_schema_repeats_no_version_of_the_callers(world: World, db: None) -> None:
    answer = world.callers["superuser"].client.get("/api/v1/schema", {"version": "\r\nX-Evil: 1"})
    assert (answer.status_code, "Evil" in str(answer.headers)) == (200, False)


@pytest.fixture
def asked_names(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The parameters that a view asks the address for are not listed anywhere: they are seen while it runs."""
    seen: set[str] = set()
    for method in ("get", "getlist", "__getitem__", "__contains__"):
        monkeypatch.setattr(QueryDict, method, _recording(getattr(QueryDict, method), seen), raising=True)
    return seen


def _recording(method: Any, seen: set[str]) -> Any:
    def recorded(self: QueryDict, key: Any, *rest: Any, **more: Any) -> Any:
        seen.add(str(key))
        return method(self, key, *rest, **more)

    return recorded


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    with django_db_blocker.unblock(), transaction.atomic():
        yield callers.build()
        transaction.set_rollback(True)


def _parameters(world: World, method: str, address: str, seen: set[str]) -> list[str]:
    """What it asks its address or its form for, and what a well-meant request has there."""
    line = line_for(method, address)
    assert line is not None
    seen.clear()
    if method == "GET" or not address.startswith("api/"):
        body = None if method == "GET" else filled(line.body, world)
        with undone():
            _ask(
                world.callers["superuser"], method, place(address, world) + (f"?{line.asks}" if line.asks else ""), body
            )
    return sorted(seen | {part.partition("=")[0] for part in line.asks.split("&") if part})


def _fields(names: list[str], chance: random.Random) -> dict[str, str]:
    """Of a form's fields those that a well-meant request leaves out too."""
    return {name: _text(chance) for name in names if chance.random() < 0.15 and name != "csrfmiddlewaretoken"}


def _query(parameters: list[str], chance: random.Random) -> str:
    chosen = [name for name in parameters if chance.random() < 0.5]
    pairs = [(name, _text(chance)) for name in chosen]
    return "?" + urlencode(pairs, errors="surrogatepass") if pairs else ""


def _path(address: str, world: World, chance: random.Random) -> str:
    """Mostly what is there; sometimes something else in place of one variable."""
    if "<" not in address or chance.random() < 0.8:
        return place(address, world)
    first, _, rest = address.partition("<")
    return first + quote(_text(chance), safe="", errors="surrogatepass") + place(rest.partition(">")[2], world)


def _body(method: str, address: str, world: World, chance: random.Random) -> Any:
    """The one that does something, with one or some of its fields spoilt."""
    if method == "GET":
        return None
    line = line_for(method, address)
    assert line is not None
    body = filled(line.body, world)
    if not isinstance(body, Mapping) or not body:
        return body
    spoilt = chance.sample(sorted(body), k=min(len(body), chance.choice((1, 1, 1, 2, 3))))
    is_json = address.startswith("api/")
    return {
        **body,
        **{name: chance.choice(TYPES) if is_json and chance.random() < 0.4 else _text(chance) for name in spoilt},
    }


def _text(chance: random.Random) -> str:
    return chance.choice(chance.choice((INSTANTS, NUMBERS, TEXTS)))


def _ask(caller: Caller, method: str, where: str, body: Any) -> HttpResponseBase:
    send = getattr(caller.client, method.lower())
    if method == "GET" or body is None:
        return send(f"/{where}")  # type: ignore[no-any-return]
    if where.startswith("api/"):
        return send(f"/{where}", json.dumps(body), content_type="application/json")  # type: ignore[no-any-return]
    fields = {name: value for name, value in body.items() if value is not None}
    encoded = urlencode(fields, doseq=True, errors="surrogatepass")
    return send(f"/{where}", encoded, content_type="application/x-www-form-urlencoded")  # type: ignore[no-any-return]
