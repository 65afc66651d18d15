"""A run that waits as the API, the command line and the console show it; starting it regardless and cancelling it."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from ingestion.models import BlockedInput, JobRun, JobState
from lakehub.accounts.models import AuditEntry, Role
from lakehub.catalog.models import DatasetCopy
from tests import factories as given
from tests.factories import MINUTE, NOW, day


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehub.clock.now", lambda: NOW)


@pytest.fixture
def run(copy: DatasetCopy) -> JobRun:
    """An incremental of flights that waits for planes."""
    planes = given.dataset("planes")
    made = given.run(
        copy,
        state=JobState.WAITING,
        due_at=NOW + 9 * MINUTE,
        started_at=None,
        ended_at=None,
        waits_since=NOW - MINUTE,
        error="waits for planes@dc1: fail: sustained",
    )
    over = day("2026-11-16")
    BlockedInput.objects.create(
        run=made,
        copy=planes.copies.get(),
        start=over.start,
        end=over.end,
        verdict="fail",
        reason="fail: sustained",
        incidents=[214],
        retry_at=NOW + 9 * MINUTE,
    )
    return made


def person(copy: DatasetCopy, role: Role) -> Client:
    who = given.user(role.value)
    given.member(who, copy.dataset.team, role)
    browser = Client()
    browser.force_login(who)
    return browser


def post(browser: Client, run: JobRun, what: str, **body: str) -> int:
    address = f"/api/v1/datasets/flights/runs/{run.pk}/{what}"
    return browser.post(address, body, content_type="application/json").status_code


def test_the_api_says_what_it_waits_for(copy: DatasetCopy, run: JobRun) -> None:
    (row,) = person(copy, Role.VIEWER).get("/api/v1/datasets/flights/runs").json()["results"]
    assert (row["state"], row["due_at"], row["waits_since"]) == (
        "waiting",
        "2026-11-17T19:41:00Z",
        "2026-11-17T19:31:00Z",
    )
    (held,) = row["blocked_by"]
    assert (held["dataset"], held["data_center"], held["reason"], held["incidents"]) == (
        "planes",
        "dc1",
        "fail: sustained",
        [214],
    )
    assert held["retry_at"] == "2026-11-17T19:41:00Z"


def test_who_may_rerun_starts_it_with_a_reason(copy: DatasetCopy, run: JobRun) -> None:
    assert post(person(copy, Role.VIEWER), run, "start", why="x") == 403
    oncall = person(copy, Role.ON_CALL)
    assert post(oncall, run, "start") == 400
    assert post(oncall, run, "start", why="we drop these columns") == 200
    run.refresh_from_db()
    assert (run.state, run.due_at, run.regardless_by) == (JobState.QUEUED, NOW, "on_call")
    assert AuditEntry.objects.get(action="start regardless").subject == f"run:{run.pk}"
    assert post(oncall, run, "start", why="again") == 409


def test_who_may_rerun_cancels_it(copy: DatasetCopy, run: JobRun) -> None:
    assert post(person(copy, Role.VIEWER), run, "cancel") == 403
    oncall = person(copy, Role.ON_CALL)
    assert post(oncall, run, "cancel") == 200
    run.refresh_from_db()
    assert run.state == JobState.CANCELLED
    assert post(oncall, run, "cancel") == 409


def test_a_run_of_another_dataset_is_not_found(copy: DatasetCopy, run: JobRun) -> None:
    other = given.run(given.dataset("weather").copies.get())
    assert post(person(copy, Role.ADMIN), other, "cancel") == 404


def test_the_command_line_shows_and_starts_it(run: JobRun) -> None:
    out = StringIO()
    call_command("runs", "flights", stdout=out)
    call_command("runs", "flights", json=True, stdout=out)
    line, output = out.getvalue().splitlines()
    assert line.endswith("waiting   waits for planes@dc1: fail: sustained, #214; asks again at 19:41:00")
    assert json.loads(output)["blocked_by"][0]["incidents"] == [214]
    with pytest.raises(CommandError, match="Say why"):
        call_command("start_run", run.pk, why=" ")
    call_command("start_run", run.pk, why="we drop these columns", stdout=out)
    with pytest.raises(CommandError, match="does not wait any more"):
        call_command("start_run", run.pk, why="again")
    with pytest.raises(CommandError, match="There is no run 0"):
        call_command("start_run", 0, why="x")


def test_the_console_asks_for_the_reason_first(run: JobRun) -> None:
    ana = given.staff("view_jobrun", "change_jobrun", "view_blockedinput")
    assert "fail: sustained" in ana.get(f"/console/ingestion/jobrun/{run.pk}/change/").content.decode()
    chosen = {"action": "start_regardless", "_selected_action": [run.pk]}
    asked = ana.post("/console/ingestion/jobrun/", chosen).content.decode()
    assert "waits for planes@dc1" in asked
    assert "This field is required" in ana.post("/console/ingestion/jobrun/", chosen | {"apply": "1"}).content.decode()
    run.refresh_from_db()
    assert run.state == JobState.WAITING
    ana.post("/console/ingestion/jobrun/", chosen | {"apply": "1", "why": "we drop these columns"})
    run.refresh_from_db()
    assert (run.state, run.regardless_why) == (JobState.QUEUED, "we drop these columns")


def test_who_may_only_look_at_the_console_starts_nothing(run: JobRun) -> None:
    chosen = {"action": "start_regardless", "_selected_action": [run.pk], "apply": "1", "why": "x"}
    given.staff("view_jobrun").post("/console/ingestion/jobrun/", chosen)
    run.refresh_from_db()
    assert (run.state, run.due_at - NOW) == (JobState.WAITING, timedelta(minutes=9))
