from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from incidents.api.urls import ACTIONS
from incidents.models import Incident, UserReport
from lakehub import wiring
from lakehub.accounts.models import AuditEntry, Role, User
from quality.models import Category
from tests.factories import HOUR, NOW
from tests.web.incidents.api_clients import client, post
from tests.web.incidents.failing_dataset import FailingDataset

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def at_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring.clock, "now", lambda: NOW)


@pytest.fixture
def incident() -> Incident:
    return FailingDataset().opened()


def test_the_list_is_narrowed_by_what_is_asked(incident: Incident) -> None:
    by = client()
    assert [row["id"] for row in by.get("/api/v1/incidents?open=1&dataset=flights").json()["results"]] == [incident.pk]
    assert by.get("/api/v1/incidents?state=resolved").json()["count"] == 0
    wrong = by.get("/api/v1/incidents?category=consistancy")
    assert (wrong.status_code, wrong.json()["error"]["message"]) == (
        422,
        "There is no category `consistancy`. Did you mean `consistency`?",
    )


def test_one_incident_comes_with_its_spans_timeline_and_messages(incident: Incident) -> None:
    reply = client().get(f"/api/v1/incidents/{incident.pk}").json()
    assert reply["moves"] == ["acknowledge", "resolve"]
    assert (reply["spans"][0]["data_center"], reply["spans"][0]["test"]) == ("dc2", "Rows as in dc1")
    assert [event["kind"] for event in reply["events"]] == ["span_opened", "opened"]
    assert [message["state"] for message in reply["messages"]] == ["pending"]


def test_an_incident_takes_as_many_queries_as_it_has_kinds_of_parts(incident: Incident) -> None:
    by = client()
    by.get(f"/api/v1/incidents/{incident.pk}")
    with CaptureQueriesContext(connection) as asked:
        by.get(f"/api/v1/incidents/{incident.pk}")
    assert len(asked) <= 19


def test_what_a_person_does_shows_in_the_answer(incident: Incident) -> None:
    by, path = client(), f"/{incident.pk}"
    assert post(by, f"{path}/acknowledge", revision=0)["state"] == "acknowledged"
    assert post(by, f"{path}/annotate", eta="2026-11-17T20:32:00Z", backfill="running")["backfill"] == "running"
    assert post(by, f"{path}/comment", text="Looking.")["events"][0]["text"] == "Looking."
    assert post(by, f"{path}/snooze", until="2026-11-18T00:00:00Z")["snoozed_until"] == "2026-11-18T00:00:00Z"
    assert post(by, f"{path}/rerun")["events"][0]["kind"] == "rerun"
    assert post(by, f"{path}/assign", assignee="")["assignee"] is None
    assert post(by, f"{path}/release")["state"] == "open"
    resolved = post(by, f"{path}/resolve", resolution="false_positive", false_positive="planned_change", why="Moved.")
    assert (resolved["state"], resolved["resolution"]) == ("resolved", "false_positive")
    assert post(by, f"{path}/reopen", why="Not quite.")["state"] == "open"


def test_what_people_do_to_incidents_is_in_the_audit_log(incident: Incident) -> None:
    by, path = client(), f"/{incident.pk}"
    asked = {"dataset": "flights", "category": "others", "from": "2026-11-16", "to": "2026-11-17", "text": "Odd."}
    report = post(by, "", expect=201, **asked)["id"]
    steps: dict[str, dict[str, Any]] = {
        f"{path}/acknowledge": {},
        f"{path}/annotate": {"backfill": "needed"},
        f"{path}/comment": {"text": "Looking."},
        f"{path}/snooze": {"until_worse": True},
        f"{path}/rerun": {},
        f"{path}/assign": {"assignee": ""},
        f"{path}/release": {},
        f"{path}/resolve": {"resolution": "accepted", "why": "Gone for good."},
        f"{path}/reopen": {"why": "Found again."},
        f"/{report}/reject": {"why": "As designed."},
        f"/{report}/dispute": {"why": "It is not."},
    }
    for step, body in steps.items():
        post(by, step, **body)
    lines = AuditEntry.objects.filter(subject__startswith="incident:").order_by("pk")
    assert [f"/{line.subject[9:]}/{line.action}" for line in lines] == [f"/{report}/report", *steps]
    assert {line.actor for line in lines} == {"on_call"}
    assert lines.get(action="resolve").detail == {"text": "accepted. Gone for good.", "resolution": "accepted"}
    assert lines.get(action="annotate").detail == {"text": "backfill: needed.", "fields": ["backfill"]}


def test_what_lakehub_does_by_itself_is_on_the_timeline_alone(incident: Incident) -> None:
    assert incident.events.count() == 2
    assert not AuditEntry.objects.filter(subject__startswith="incident:").exists()


def test_a_conflict_says_who_was_faster(incident: Incident) -> None:
    by = client()
    post(by, f"/{incident.pk}/acknowledge")
    reply = post(by, f"/{incident.pk}/acknowledge", expect=409)
    assert reply["error"]["code"] == "conflict"
    assert "on_call was faster: acknowledged at 2026-11-17 19:32 UTC. Nothing was changed." in reply["error"]["message"]


@pytest.mark.parametrize("action", [name for name, _ in ACTIONS])
def test_every_action_needs_a_role_in_the_owning_team_and_the_scope(incident: Incident, action: str) -> None:
    before = Incident.objects.values().get()
    reply = post(client(Role.VIEWER), f"/{incident.pk}/{action}", expect=403)
    assert "of team flight-ops" in reply["error"]["message"]
    post(client(Role.ADMIN, "incidents:read"), f"/{incident.pk}/{action}", expect=403)
    assert Incident.objects.values().get() == before


def test_anybody_signed_in_reports_what_no_test_saw() -> None:
    FailingDataset()
    asked = {
        "dataset": "flights",
        "category": Category.OTHERS,
        "from": "2026-11-16",
        "to": "2026-11-17",
        "text": "Odd delays.",
    }
    reply = post(client(Role.VIEWER), "", expect=201, dc="dc1", **asked)
    assert (reply["state"], reply["title"]) == ("waiting", "flights: Odd delays.")
    report = UserReport.objects.get()
    assert (report.end - report.start, report.reporter) == (24 * HOUR, User.objects.get(username="viewer"))


def test_a_report_gates_what_it_is_about() -> None:
    stage = FailingDataset()
    stage.unit()
    asked = {
        "dataset": "flights",
        "category": "others",
        "from": "2026-11-16",
        "to": "2026-11-17",
        "text": "Odd delays.",
    }
    by = client(Role.ON_CALL, "incidents:read", "incidents:write", "gate:read")
    number = post(by, "", expect=201, **asked)["id"]
    question = {"dataset": "flights", "dc": "dc2", "from": "2026-11-16", "to": "2026-11-17"}
    assert by.get("/api/v1/gate", question).json()["verdict"] == "warn"
    post(by, f"/{number}/acknowledge")
    assert by.get("/api/v1/gate", question).json()["verdict"] == "fail"
    post(by, f"/{number}/resolve", resolution="declared_fixed", why="Done.")
    assert by.get("/api/v1/gate", question).json()["verdict"] == "pass"


def test_an_incident_that_is_not_there_is_404() -> None:
    assert client().get("/api/v1/incidents/404").json()["error"]["message"].startswith("There is no incident #404.")
