"""Policies, the shadow and overrides: what people decide about the gate, and that every answer says so."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from incidents.models import GateOverride, GatePolicy, GateQuestion
from lakehub import wiring
from lakehub.accounts.models import AuditEntry, Role, Token, User
from tests import factories
from tests.factories import HOUR, NOW
from tests.web.incidents.api_clients import token_client
from tests.web.incidents.failing_dataset import FailingDataset

pytestmark = pytest.mark.django_db
FROM_TO = {"from": "2026-11-16", "to": "2026-11-17"}
OVERRIDES = "/api/v1/gate/overrides"
POLICIES = "/api/v1/gate/policies"


@pytest.fixture(autouse=True)
def at_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring.clock, "now", lambda: NOW)


@pytest.fixture
def stage() -> FailingDataset:
    return FailingDataset.of_the_gate()


def person(role: Role = Role.ON_CALL) -> User:
    made = factories.user()
    factories.member(made, factories.team(), role)
    return made


def client(by: User | None = None, consumer: str = "pricing") -> Client:
    return token_client(by or person(), "gate:read", "gate:write", consumer=consumer, data_center="dc2")


def ask(by: Client, **asked: str) -> dict[str, Any]:
    answer = by.get("/api/v1/gate", {"dataset": "flights", **FROM_TO, **asked})
    assert answer.status_code == 200, answer.content
    body: dict[str, Any] = answer.json()
    return body


def override(by: Client, expect: int = 201, **fields: str) -> dict[str, Any]:
    asked = {"dataset": "flights", **FROM_TO, "reason": "The mean is not touched.", "until": "2026-11-17T21:00:00Z"}
    answer = by.post(OVERRIDES, {**asked, **fields}, content_type="application/json")
    assert answer.status_code == expect, answer.content
    body: dict[str, Any] = answer.json()
    return body


def put(by: Client, expect: int = 200, **fields: Any) -> dict[str, Any]:
    answer = by.put(POLICIES, {"consumer": "pricing", **fields}, content_type="application/json")
    assert answer.status_code == expect, answer.content
    body: dict[str, Any] = answer.json()
    return body


# Overrides


def test_an_override_lets_read_and_every_answer_says_so(stage: FailingDataset) -> None:
    by = client()
    made = override(by)
    reply = ask(by)
    assert (reply["verdict"], reply["allowed"], reply["retry_after"]) == ("fail", True, None)
    (shown,) = reply["overrides"]
    assert (shown["id"], shown["reason"]) == (made["id"], "The mean is not touched.")
    assert shown["expires_at"] == "2026-11-17T21:00:00Z"
    assert not reply["reasons"][0]["blocks"]


def test_it_ends_by_itself(stage: FailingDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    by = client()
    override(by)
    monkeypatch.setattr(wiring.clock, "now", lambda: NOW + 2 * HOUR)
    reply = ask(by)
    assert (reply["allowed"], reply["overrides"]) == (False, [])
    assert by.get(OVERRIDES).json()["results"] == []
    assert [row["in_force"] for row in by.get(OVERRIDES, {"ended": "1"}).json()["results"]] == [False]


def test_it_ends_when_a_person_says_so_and_not_twice(stage: FailingDataset) -> None:
    by = client()
    number = override(by)["id"]
    assert by.post(f"{OVERRIDES}/{number}/end").json()["in_force"] is False
    assert not ask(by)["allowed"]
    assert by.post(f"{OVERRIDES}/{number}/end").status_code == 409
    audited = AuditEntry.objects.filter(action__contains="gate").order_by("pk")
    assert list(audited.values_list("action", flat=True)) == [
        "override gate",
        "end gate override",
    ]


def test_it_is_for_its_consumer_its_copy_and_its_range_only(stage: FailingDataset) -> None:
    override(client(), consumer="finance")
    assert not ask(client())["allowed"]
    assert ask(client(consumer="finance"))["allowed"]
    assert not ask(client(consumer="finance"), to="2026-11-18")["allowed"]
    GateOverride.objects.all().delete()
    override(client(), dc="dc1")
    assert not ask(client())["allowed"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"reason": " "}, "reason"),
        ({"until": "2026-11-17T10:00:00Z"}, "until"),
        ({"until": "2027-11-17T10:00:00Z"}, "until"),
    ],
)
def test_it_needs_a_reason_and_an_end(stage: FailingDataset, fields: dict[str, str], field: str) -> None:
    assert field in override(client(), expect=400 if field == "reason" else 422, **fields)["error"]["fields"]


def test_viewers_may_not(stage: FailingDataset) -> None:
    assert "To override here you need to be" in override(client(person(Role.VIEWER)), 403)["error"]["message"]


# Policies


def test_strict_blocks_on_warn_and_lenient_only_on_fail(stage: FailingDataset) -> None:
    by = client(person(Role.ADMIN))
    tomorrow = {"from": "2026-11-18", "to": "2026-11-19"}
    assert put(by, preset="lenient")["blocks_on"] == ["fail"]
    assert (ask(by, **tomorrow)["verdict"], ask(by, **tomorrow)["allowed"]) == ("unknown", True)
    assert put(by, preset="strict", tier=1)["blocks_on"] == ["fail", "unknown", "warn"]
    reply = ask(by, **tomorrow)
    assert (reply["allowed"], reply["policy"]) == (False, "pricing, tier 1, strict")
    assert by.delete(f"{POLICIES}?consumer=pricing&tier=1").status_code == 204
    assert ask(by, **tomorrow)["policy"] == "pricing, every tier, lenient"


def test_the_shadow_answers_and_keeps_and_never_blocks(stage: FailingDataset) -> None:
    by = client(person(Role.ADMIN))
    put(by, preset="strict", shadow=True)
    reply = ask(by)
    assert (reply["verdict"], reply["allowed"], reply["would_allow"], reply["shadow"]) == ("fail", True, False, True)
    assert reply["reasons"][0]["blocks"]
    kept = GateQuestion.objects.get()
    assert (kept.allowed, kept.would_allow) == (True, False)


def test_words_that_mean_nothing_are_refused(stage: FailingDataset) -> None:
    by = client(person(Role.ADMIN))
    assert "Did you mean `unknown`?" in str(put(by, 422, preset="custom", blocks=["unknwon"])["error"]["fields"])
    assert "leave this empty" in str(put(by, 422, preset="strict", blocks=["fail"])["error"]["fields"])
    assert not GatePolicy.objects.exists()


def test_only_admins_of_the_consumers_teams_set_its_policy(stage: FailingDataset) -> None:
    put(client(), 403, preset="lenient")
    by = client(person(Role.ADMIN))
    put(by, 403, consumer="nobody", preset="lenient")
    Token.objects.create(
        prefix="lh_1",
        digest="x",
        name="x",
        consumer="pricing",
        team=factories.team("other"),
        created_by=person(),
        created_at=NOW,
        expires_at=NOW + HOUR,
    )
    put(by, 403, preset="lenient")
    assert not AuditEntry.objects.filter(action__contains="gate").exists()
