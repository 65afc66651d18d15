"""Asking for jobs and looking at them: over REST, by command, in the admin console."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.contrib.auth.models import Permission
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from ingestion.models import Commit, JobKind, JobRun, JobState
from lakehub.accounts.models import AuditEntry, Role
from lakehub.catalog.models import DatasetCopy
from tests import factories as given
from tests.factories import NOW

RUNS, COMMITS = "/api/v1/datasets/flights/runs", "/api/v1/datasets/flights/commits"


@pytest.fixture
def on_call(copy: DatasetCopy, client: Client) -> Client:
    user = given.user("ana")
    given.member(user, copy.dataset.team, Role.ON_CALL)
    client.force_login(user)
    return client


def test_a_backfill_is_asked_for_and_shown(on_call: Client, copy: DatasetCopy) -> None:
    given.with_table(copy)
    asked = {"kind": "backfill", "params": {"partitions": ["2026-11-16"]}}
    answer = on_call.post(RUNS, asked, content_type="application/json")
    assert (answer.status_code, answer.json()["state"]) == (201, "queued")
    assert [run["kind"] for run in on_call.get(RUNS).json()["results"]] == ["backfill"]
    assert AuditEntry.objects.get().actor == "ana"


def test_a_run_at_work_says_how_long_it_still_takes(
    on_call: Client, copy: DatasetCopy, capsys: pytest.CaptureFixture[str]
) -> None:
    reading = {"phase": "read", "phase_s": 60.0, "rows_read": 1_000_000, "rows_total": 3_000_000}
    run = given.run(copy, JobKind.BOOTSTRAP, JobState.RUNNING, progress=reading, progress_at=NOW)
    assert on_call.get(RUNS).json()["results"][0]["time_left_s"] == 120
    assert "read: 1,000,000 of 3,000,000, 0:02:00 left" in _lines_of_runs(capsys)
    JobRun.objects.filter(pk=run.pk).update(progress=reading | {"rows_total": None})
    assert on_call.get(RUNS).json()["results"][0]["time_left_s"] is None
    assert "read: 1,000,000\n" in _lines_of_runs(capsys)
    JobRun.objects.filter(pk=run.pk).update(progress=reading, state=JobState.QUEUED)
    assert on_call.get(RUNS).json()["results"][0]["time_left_s"] is None
    assert "left" not in _lines_of_runs(capsys)


def _lines_of_runs(capsys: pytest.CaptureFixture[str]) -> str:
    call_command("runs", "flights")
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        ({"kind": "incremental"}, 422, "flights@dc1 has no table yet"),
        ({"kind": "backfill"}, 422, "names `partitions`"),
        ({"kind": "backfil"}, 400, "not a valid choice"),
        ({"kind": "incremental", "data_center": "dc9"}, 404, "no copy in `dc9`"),
        ({"kind": "drop"}, 403, "To offboard here you need to be"),
    ],
)
def test_what_cannot_be_done_is_answered_in_words(
    on_call: Client, asked: dict[str, object], code: int, message: str
) -> None:
    answer = on_call.post(RUNS, asked, content_type="application/json")
    assert answer.status_code == code
    assert message in answer.content.decode()
    assert not JobRun.objects.exists()


def test_a_second_incremental_is_a_conflict(on_call: Client, copy: DatasetCopy) -> None:
    given.with_table(copy)
    codes = [on_call.post(RUNS, {"kind": "incremental"}, content_type="application/json").status_code for _ in range(2)]
    assert codes == [201, 409]


def test_commits_are_shown_with_their_sum(on_call: Client, copy: DatasetCopy) -> None:
    Commit.objects.create(copy=copy, instant="1", completed_at=NOW, operation="upsert", read=5, applied=4, errors=1)
    (shown,) = on_call.get(COMMITS).json()["results"]
    assert (shown["read"], shown["applied"], shown["errors"], shown["data_center"]) == (5, 4, 1, "dc1")


def test_an_unknown_dataset_is_not_found(on_call: Client) -> None:
    answer = on_call.get("/api/v1/datasets/fligths/runs")
    assert answer.status_code == 404
    assert "Did you mean `flights`?" in answer.content.decode()


def test_the_command_asks_and_lists(copy: DatasetCopy) -> None:
    given.with_table(copy)
    out = StringIO()
    call_command("ingest", "backfill", "flights", "--partition", "2026-11-16", "--json", stdout=out)
    assert json.loads(out.getvalue())["copy"] == "flights@dc1"
    assert JobRun.objects.get().params == {"partitions": ["2026-11-16"]}
    listed = StringIO()
    call_command("runs", "flights", stdout=listed)
    call_command("runs", "--json", stdout=listed)
    assert "backfill" in listed.getvalue().splitlines()[0]
    assert json.loads(listed.getvalue().splitlines()[1])["state"] == "queued"


def test_the_command_says_what_is_wrong(copy: DatasetCopy) -> None:
    with pytest.raises(CommandError, match="Did you mean `flights`"):
        call_command("ingest", "incremental", "fligths")
    with pytest.raises(
        CommandError, match=r"no table yet.* Bootstrap it first: `manage.py ingest bootstrap flights --data"
    ):
        call_command("ingest", "incremental", "flights")


def test_the_command_and_the_api_say_that_a_bootstrap_comes_instead(copy: DatasetCopy, on_call: Client) -> None:
    given.run(copy, JobKind.BOOTSTRAP, JobState.FAILED)
    out = StringIO()
    call_command("ingest", "incremental", "flights", stdout=out)
    assert (
        "bootstrap of flights@dc1 is queued, in place of the incremental: the last one was given up" in out.getvalue()
    )
    JobRun.objects.filter(state=JobState.QUEUED).update(state=JobState.FAILED)
    answer = on_call.post(RUNS, {"kind": "backfill", "params": {"partitions": ["2026-11-16"]}}, "application/json")
    assert (answer.status_code, answer.json()["kind"], answer.json()["params"]) == (201, "bootstrap", {})


def test_on_call_cancels_a_waiting_run_in_the_admin_console(copy: DatasetCopy, admin_client: Client) -> None:
    run = JobRun.objects.create(copy=copy, kind="incremental", due_at=NOW)
    page = reverse("admin:ingestion_jobrun_changelist")
    admin_client.post(page, {"action": "cancel", "_selected_action": [run.pk]})
    run.refresh_from_db()
    assert run.state == JobState.CANCELLED


@pytest.mark.parametrize(("rights", "state"), [(["view"], "queued"), (["view", "change"], "cancelled")])
def test_cancelling_in_the_admin_console_needs_the_right_to_change(
    copy: DatasetCopy, client: Client, rights: list[str], state: str
) -> None:
    user = given.user("ana", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=[f"{right}_jobrun" for right in rights]))
    client.force_login(user)
    run = JobRun.objects.create(copy=copy, kind="incremental", due_at=NOW)
    client.post(reverse("admin:ingestion_jobrun_changelist"), {"action": "cancel", "_selected_action": [run.pk]})
    run.refresh_from_db()
    assert run.state == state


@pytest.mark.parametrize("model", ["jobrun", "commit", "touchedpartition", "finding", "copylease"])
def test_the_admin_console_shows_and_changes_nothing(copy: DatasetCopy, admin_client: Client, model: str) -> None:
    assert admin_client.get(reverse(f"admin:ingestion_{model}_changelist")).status_code == 200
    assert admin_client.get(reverse(f"admin:ingestion_{model}_add")).status_code == 403
