"""Many incidents at once, following and impact, over REST."""

from __future__ import annotations

from typing import Any

import pytest

from incidents.models import GateQuestion, Incident, Subscription
from lakehub import wiring
from lakehub.accounts.models import Role
from tests import factories
from tests.factories import HOUR, MINUTE, NOW, day
from tests.web.incidents.api_clients import client, post
from tests.web.incidents.failing_dataset import BAD_DAY, FailingDataset

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def at_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring.clock, "now", lambda: NOW)


@pytest.fixture
def stage() -> FailingDataset:
    return FailingDataset()


def test_many_are_acted_on_and_taken_back(stage: FailingDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    number, other = stage.opened(day("2026-11-02")).pk, stage.opened().pk
    by = client()
    reply = post(by, "/bulk", action="snooze", incidents=[number, other, 4711], until="2026-11-18T00:00:00Z")
    assert (reply["done"], reply["undo_until"]) == ([number, other], "2026-11-17T19:42:00Z")
    assert [(kept["incident"], kept["code"]) for kept in reply["kept"]] == [(4711, "not_found")]
    undone = post(by, f"/bulk/{reply['bulk']}/undo")
    assert (undone["done"], undone["bulk"]) == ([number, other], None)
    assert set(Incident.objects.values_list("snoozed_until", flat=True)) == {None}
    assert post(by, f"/bulk/{reply['bulk']}/undo", expect=409)["error"]["code"] == "conflict"
    late = post(by, "/bulk", action="acknowledge", incidents=[number])
    monkeypatch.setattr(wiring.clock, "now", lambda: NOW + 10 * MINUTE)
    assert "too late" in post(by, f"/bulk/{late['bulk']}/undo", expect=409)["error"]["message"]


def test_roles_and_scopes_hold_for_many_as_for_one(stage: FailingDataset) -> None:
    number = stage.opened().pk
    reply = post(client(Role.VIEWER), "/bulk", action="acknowledge", incidents=[number])
    assert [kept["code"] for kept in reply["kept"]] == ["forbidden"]
    assert reply["bulk"] is None
    post(client(Role.ADMIN, "incidents:read"), "/bulk", expect=403, action="acknowledge", incidents=[number])
    assert Incident.objects.get().state == "open"


@pytest.mark.parametrize(
    ("body", "expect"),
    [
        ({"action": "acknowledge", "incidents": []}, 400),
        ({"action": "acknowledge", "incidents": [2**63]}, 400),
        ({"action": "delete", "incidents": [1]}, 422),
    ],
)
def test_what_makes_no_sense_is_refused(body: dict[str, Any], expect: int) -> None:
    post(client(), "/bulk", expect=expect, **body)


def test_an_undo_is_of_who_did_it(stage: FailingDataset) -> None:
    reply = post(client(), "/bulk", action="acknowledge", incidents=[stage.opened().pk])
    post(client(Role.ADMIN), f"/bulk/{reply['bulk']}/undo", expect=404)


def test_a_dataset_is_followed_and_followed_no_more(stage: FailingDataset) -> None:
    by, address = client(Role.VIEWER), "/api/v1/datasets/flights/subscription"
    for _ in range(2):
        assert by.put(address).json() == {"dataset": "flights", "created_at": "2026-11-17T19:32:00Z"}
    assert [subscription["dataset"] for subscription in by.get("/api/v1/subscriptions").json()["results"]] == [
        "flights"
    ]
    assert [by.delete(address).status_code for _ in range(2)] == [204, 204]
    assert not Subscription.objects.exists()
    assert by.put("/api/v1/datasets/fligths/subscription").status_code == 404


def test_subscriptions_are_ones_own(stage: FailingDataset) -> None:
    client(Role.VIEWER).put("/api/v1/datasets/flights/subscription")
    assert client(Role.ADMIN).get("/api/v1/subscriptions").json()["results"] == []
    assert client(Role.OWNER, "incidents:read").put("/api/v1/datasets/flights/subscription").status_code == 403


def test_the_impact_names_datasets_and_consumers(stage: FailingDataset) -> None:
    made = factories.dataset("hourly", copies=("dc2",), team=factories.team("analysts"))
    factories.edge(stage.dataset, made)
    incident = stage.opened()
    for number, allowed in enumerate((False, True)):
        GateQuestion.objects.create(
            at=NOW,
            consumer="pricing",
            request_id=str(number),
            copy=factories.copy_of(stage.dataset, "dc2"),
            start=BAD_DAY.start,
            end=BAD_DAY.start + HOUR,
            verdict="fail",
            allowed=allowed,
        )
    impact = client().get(f"/api/v1/incidents/{incident.pk}/impact").json()
    assert impact["downstream"] == [{"dataset": "hourly", "team": "analysts", "tier": 2, "steps": 1, "via": "flights"}]
    assert impact["consumers"] == [{"name": "pricing", "questions": 2, "blocked": 1, "last_at": "2026-11-17T19:32:00Z"}]


def test_a_backfill_is_asked_for(stage: FailingDataset) -> None:
    factories.feed(stage.dataset)
    for copy in stage.dataset.copies.all():
        factories.with_table(copy)
    incident = stage.opened()
    reply = post(client(), f"/{incident.pk}/backfill", revision=0)
    assert (reply["backfill"], reply["events"][0]["detail"]["run"]) == ("running", reply["backfill_run"])
    assert (
        post(client(Role.ADMIN), f"/{incident.pk}/backfill", expect=404, data_center="dc9")["error"]["code"]
        == "not_found"
    )


def test_a_merge_names_the_revision_that_it_was_decided_on(stage: FailingDataset) -> None:
    number, other = stage.opened(day("2026-11-02")).pk, stage.opened().pk
    by = client()
    assert (
        "is not as you saw it" in post(by, f"/{number}/merge", expect=409, other=other, revision=7)["error"]["message"]
    )
    assert post(by, f"/{number}/merge", other=other, revision=0)["revision"] == 1
    units = [span["unit"] for span in post(by, f"/{number}/annotate")["spans"]]
    assert post(by, f"/{number}/split", expect=409, units=units[:1], revision=0)["error"]["code"] == "conflict"
    assert post(by, f"/{number}/split", units=units[:1], revision=1)["revision"] == 2
