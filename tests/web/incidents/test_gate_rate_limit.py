"""How often a token or a person may ask the gate: over REST, and on the page of queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.http import HttpResponseBase
from django.test import Client

from incidents.gate import from_sql as gate_sql
from incidents.gate import rate_limit as gate_rate
from incidents.models import GateCounter
from lakehub import wiring
from lakehub.http.limits.rate_limit import SharedLimiter
from tests import factories
from tests.factories import NOW
from tests.web.incidents.api_clients import token_client
from tests.web.incidents.failing_dataset import FailingDataset

pytestmark = pytest.mark.django_db
FLIGHTS = {"dataset": "flights", "from": "2026-11-16", "to": "2026-11-17", "dc": "dc2"}
BAD = "SELECT * FROM flights WHERE flight_date = '2026-11-16'"
NOTHING_TO_ASK = {"sql": "SELECT * FROM elsewhere", "leave_out": ["elsewhere"]}


@pytest.fixture(autouse=True)
def one_a_second(settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Five at once, and time stands still."""
    monkeypatch.setattr(wiring.clock, "now", lambda: NOW)
    settings.LAKEHUB_GATE_RATE = 1
    limiter = SharedLimiter(tmp_path / "rate")
    monkeypatch.setattr(gate_rate, "_limiter", lambda: limiter)


@pytest.fixture(autouse=True)
def stage() -> FailingDataset:
    return FailingDataset.of_the_gate()


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was parsed."""
    seen: list[str] = []
    real = gate_sql.parse_query
    monkeypatch.setattr(gate_sql, "parse_query", lambda sql, dialect: seen.append(sql) or real(sql, dialect))
    return seen


def asker(consumer: str = "pricing") -> Client:
    return token_client(factories.user(), "gate:read", consumer=consumer)


def query(by: Client, sql: str = BAD, **fields: Any) -> HttpResponseBase:
    asked = {"sql": sql, "dialect": "duckdb", "dc": "dc2", **fields}
    return by.post("/api/v1/gate/query", asked, content_type="application/json")  # type: ignore[return-value]


def longer(sql: str, characters: int) -> str:
    """With a comment behind it."""
    return f"{sql} --{'x' * (characters - len(sql) - 3)}"


def test_who_asks_too_often_is_told_how_long_to_wait() -> None:
    by, other = asker(), asker("other")
    assert [by.get("/api/v1/gate", FLIGHTS).status_code for _ in range(6)] == [200] * 5 + [429]
    refused = by.get("/api/v1/gate", FLIGHTS)
    assert refused.headers["Retry-After"] == "1"
    assert refused.json()["error"]["code"] == "throttled"
    assert other.get("/api/v1/gate", FLIGHTS).json()["verdict"] == "fail"
    assert GateCounter.objects.get(pk="questions_refused").count == 2


def test_the_questions_of_a_batch_count_each() -> None:
    by = asker()
    statuses = [
        by.post("/api/v1/gate", {"inputs": [FLIGHTS] * 4}, content_type="application/json").status_code
        for _ in range(2)
    ]
    assert statuses == [200, 429]


def test_a_long_query_is_charged_before_it_is_parsed(parsed: list[str]) -> None:
    by, long = asker(), longer(BAD, 3 * gate_rate.CHARACTERS_PER_QUESTION)
    assert query(by, long).status_code == 200
    refused = query(by, long)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "3")
    assert parsed == [long]


def test_a_query_that_asks_nothing_is_charged_all_the_same(parsed: list[str]) -> None:
    by = asker()
    assert [query(by, **NOTHING_TO_ASK).status_code for _ in range(7)] == [200] * 5 + [429] * 2
    assert len(parsed) == 5


def test_what_cannot_be_understood_is_charged_too(parsed: list[str]) -> None:
    by = asker()
    assert [query(by, longer("SELECT (", 2 * gate_rate.CHARACTERS_PER_QUESTION)).status_code for _ in range(2)] == [
        422,
        429,
    ]
    assert len(parsed) == 1


def test_on_the_page_a_person_asks_no_more_often(parsed: list[str]) -> None:
    page, person = Client(), factories.user()
    page.force_login(person)
    form = {"sql": longer(BAD, 4 * gate_rate.CHARACTERS_PER_QUESTION), "dialect": "duckdb", "dc": "dc2"}
    assert page.post("/gate/query", form).status_code == 200
    refused = page.post("/gate/query", form)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    assert "You have asked the gate too often: ask again in 1 s." in refused.content.decode()
    assert len(parsed) == 1
    assert page.get("/gate/query").status_code == 200
    assert page.get("/api/v1/gate", FLIGHTS).status_code == 429
