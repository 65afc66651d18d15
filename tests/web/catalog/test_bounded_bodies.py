"""Lists in a body are bounded, and of many unknown names only the first few are searched for among all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.http import HttpResponseBase
from django.test import Client

from lakehub.accounts.models import Role
from lakehub.catalog.onboarding import bulk
from lakehub.kernel import suggest
from tests import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> Client:
    ann = make.user("ann")
    make.member(ann, make.team("flight-ops"), Role.OWNER)
    client = Client()
    client.force_login(ann)
    return client


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    words: list[str] = []

    def search(word: str, *_: Any, **__: Any) -> list[str]:
        words.append(word)
        return []

    monkeypatch.setattr(suggest, "get_close_matches", search)
    return words


def post(client: Client, address: str, body: object) -> HttpResponseBase:
    return client.post(address, json.dumps(body), content_type="application/json")


def application(**fields: Any) -> dict[str, Any]:
    given = {"name": "x", "team": "flight-ops", "tier": 3, "connection": "none", "table": "t", "data_centers": ["dc1"]}
    return {**given, **fields}


def unknown(number: int) -> list[dict[str, str]]:
    return [{"dataset": f"daily-{index}"} for index in range(number)]


def test_a_dataset_has_a_hundred_upstreams_at_most(owner: Client) -> None:
    answer = post(owner, "/api/v1/datasets", application(upstream=unknown(101)))
    assert "upstream" in answer.json()["error"]["fields"]  # type: ignore[attr-defined]


def test_of_unknown_names_a_few_are_searched_for(owner: Client, searches: list[str]) -> None:
    answer = post(owner, "/api/v1/datasets", application(upstream=unknown(100)))
    assert "`daily-99`" in answer.json()["error"]["fields"]["upstream"]  # type: ignore[attr-defined]
    assert len(searches) == suggest.MAX_HINTS


def test_of_unknown_names_in_a_list_a_few_are_searched_for_in_all(owner: Client, searches: list[str]) -> None:
    datasets = [application(name=f"set-{index}", upstream=unknown(5)) for index in range(20)]
    lines = post(owner, "/api/v1/datasets/bulk", {"datasets": datasets}).json()  # type: ignore[attr-defined]
    assert [line["result"] for line in lines] == ["refused"] * 20
    assert all("There is no connection `none`." in line["why"]["connection"] for line in lines)
    assert all("There is no dataset `daily-4`." in line["why"]["upstream"] for line in lines)
    assert len(searches) == bulk.MAX_HINTS


def test_so_are_the_tables_of_a_query(owner: Client, searches: list[str]) -> None:
    tables = ", ".join(f"daily_{index}" for index in range(50))
    answer = post(
        owner, "/api/v1/gate/query", {"sql": f"SELECT 1 FROM {tables}", "from": "2026-11-16", "to": "2026-11-17"}
    )
    assert answer.status_code == 404
    assert "`daily_9`" in answer.json()["error"]["message"]  # type: ignore[attr-defined]
    assert len(searches) == suggest.MAX_HINTS


@pytest.mark.parametrize("method", ["post", "patch"])
def test_overrides_are_two_hundred_at_most(owner: Client, method: str, searches: list[str]) -> None:
    make.dataset("flights", team=make.team("flight-ops"))
    overrides = {f"word-{index}": 1 for index in range(201)}
    address = "/api/v1/datasets" + ("/flights" if method == "patch" else "")
    body = {"overrides": overrides} if method == "patch" else application(overrides=overrides)
    answer = getattr(owner, method)(address, json.dumps(body), content_type="application/json")
    assert "at most 200" in str(answer.json()["error"]["fields"]["overrides"])
    assert searches == []
