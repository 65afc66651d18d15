"""Where a copy stands in its changelog is shown, and an owner sets it with a reason: what makes no sense is refused, and what is left out is told."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from ingestion.captures import states
from ingestion.captures.records import topic_of
from ingestion.changelog import CHANGELOGS, ChangelogConfig, Outgoing
from ingestion.lake.commits import record_new_commits
from ingestion.models import Capture, Finding, JobRun, JobState, TapServer
from ingestion.positions import places
from ingestion.runs import failed_runs
from ingestion.runs.run_worker import Worker, run_next
from ingestion.spark.contract.spec import LogMoveSpec
from lakehub.accounts.models import AuditEntry, Role
from lakehub.catalog.models import DatasetCopy
from tests import factories as given
from tests.factories import HOUR, NOW
from tests.web.ingestion import hudi_timeline
from tests.web.ingestion.captured_flights import capture_flights
from tests.web.ingestion.conftest import FakeLauncher

pytestmark = pytest.mark.django_db
POSITIONS = "/api/v1/datasets/flights/positions"


@pytest.fixture
def copy(copy: DatasetCopy, settings: Any, tmp_path: Path) -> DatasetCopy:
    """flights, captured: of 10 messages, one an hour until NOW, it was loaded at the third and has read the sixth."""
    capture_flights(copy, settings, tmp_path / "log")
    for number in range(10):
        log(settings.LAKEHUB_CHANGELOG_URL, copy, number)
    stand(copy, 6)
    return given.with_table(copy)


def log(url: str, copy: DatasetCopy, number: int) -> None:
    config = ChangelogConfig(url, 90 * 86_400, lambda: NOW - (9 - number) * HOUR)
    message = Outgoing(topic_of(copy.dataset), b"k", b"event")
    CHANGELOGS.get("segments")(config).writer("tap").commit([message], {})


def stand(copy: DatasetCopy, offset: int, instant: str = "20261116100000000", **facts: Any) -> None:
    topic = topic_of(copy.dataset)
    checkpoint = {"log": {topic: {"0": offset}}, "load": 1, "loaded_from": {topic: {"0": 2}}}
    run = hudi_timeline.told_by("", **facts)
    hudi_timeline.commit(copy, instant, {}, run=run, checkpoint=checkpoint)


@pytest.fixture
def owner(client: Client, copy: DatasetCopy) -> Client:
    given.member(ana := given.user("ana"), copy.dataset.team, Role.OWNER)
    client.force_login(ana)
    return client


def put(client: Client, **body: Any) -> Any:
    return client.post(POSITIONS, {"why": "Rows were changed by hand", **body}, content_type="application/json")


def test_where_everything_stands_is_shown(owner: Client, copy: DatasetCopy) -> None:
    place = {"file": "binlog.000007", "offset": 400, "begun": "0-1-18", "taken": {"t": 5}}
    TapServer.objects.create(address="db:3306", position="0-1-17", place=place, seen_at=NOW)
    body = owner.get(POSITIONS).json()
    assert (body["tap"]["gtid"], body["tap"]["place"]) == ("0-1-17", place)
    (shown,) = body["copies"]
    oldest = (NOW - 3 * HOUR).isoformat().replace("+00:00", "Z")
    part = {"topic": topic_of(copy.dataset), "partition": "0", "offset": 6, "least": 2, "end": 10, "waiting": 4}
    assert (shown["data_center"], shown["waiting"], shown["oldest_at"]) == ("dc1", 4, oldest)
    assert shown["partitions"] == [{**part, "oldest_at": oldest}]


def test_a_copy_whose_place_is_not_known_says_why(owner: Client, copy: DatasetCopy) -> None:
    given.copy(copy.dataset, "dc2")
    body = owner.get(POSITIONS).json()
    assert "was not loaded yet" in body["problems"]["dc2"]
    assert [each["data_center"] for each in body["copies"]] == ["dc1"]


def test_a_log_that_cannot_be_read_is_a_sentence_and_no_error_of_ours(
    owner: Client, copy: DatasetCopy, settings: Any, tmp_path: Path
) -> None:
    (tmp_path / "log" / "marks.json").write_text("{")
    assert "cannot be read" in owner.get(POSITIONS).json()["problems"]["dc1"]
    answer = put(owner, earliest=True)
    assert (answer.status_code, "Restore the file" in answer.json()["error"]["message"]) == (422, True)


@pytest.mark.parametrize(
    ("wanted", "offset"),
    [
        ({"offsets": {"0": 3}}, 3),
        ({"earliest": True}, 2),
        ({"time": (NOW - 4.5 * HOUR).isoformat()}, 5),
        ({"time": (NOW - 90 * HOUR).isoformat()}, 2),
    ],
)
def test_going_back_is_a_run_that_is_audited(
    owner: Client, copy: DatasetCopy, worker: Worker, launcher: FakeLauncher, wanted: dict[str, Any], offset: int
) -> None:
    answer = put(owner, **wanted)
    assert (answer.status_code, answer.json()["kind"]) == (201, "set_position")
    entry = AuditEntry.objects.get(action="set_position")
    assert (entry.actor, entry.subject, entry.detail["why"]) == ("ana", f"copy:{copy}", "Rows were changed by hand")
    JobRun.objects.update(due_at=NOW)
    run_next(worker)
    ((spec, _),) = launcher.asked
    assert spec.log_move == LogMoveSpec({topic_of(copy.dataset): {"0": offset}})
    assert not Finding.objects.exists()


def test_going_forward_needs_somebody_who_knows(owner: Client) -> None:
    answer = put(owner, offsets={"0": 9})
    assert (answer.status_code, JobRun.objects.exists()) == (422, False)
    assert answer.json()["error"]["fields"]["may_skip"].startswith("About 3 changes would be left out")
    assert put(owner, offsets={"0": 9}, may_skip=True).status_code == 201
    assert JobRun.objects.get().params["may_skip"] is True


@pytest.mark.parametrize(
    ("body", "field", "why"),
    [
        ({"offsets": {"0": 11}}, "offsets", "ends at 10"),
        ({"offsets": {"0": 1}}, "offsets", "was loaded from 2 on"),
        ({"offsets": {"1": 1}}, "offsets", "has no partition `1`"),
        ({"offsets": {"0": -1}}, "offsets", "greater than or equal to 0"),
        ({}, "offsets", "one of the three"),
        ({"offsets": {"0": 3}, "earliest": True}, "offsets", "one of the three"),
        ({"earliest": True, "why": "  "}, "why", "blank"),
        ({"time": "0001-01-01T00:00:00Z"}, "time", "a time that a message can have"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_name(owner: Client, body: dict[str, Any], field: str, why: str) -> None:
    answer = put(owner, **body)
    assert answer.status_code in (400, 422)
    assert why in json.dumps(answer.json()["error"]["fields"][field])
    assert not JobRun.objects.exists()


def test_a_load_that_is_at_work_sets_it_itself(owner: Client, copy: DatasetCopy) -> None:
    JobRun.objects.create(copy=copy, kind="bootstrap", due_at=NOW, state=JobState.RUNNING, params={"replace": True})
    answer = put(owner, earliest=True)
    assert (answer.status_code, "Wait until it has ended" in answer.json()["error"]["message"]) == (409, True)


def test_of_two_who_ask_the_second_is_told(owner: Client) -> None:
    assert put(owner, earliest=True).status_code == 201
    assert put(owner, offsets={"0": 4}).status_code == 409


def test_it_is_asked_for_where_it_is_checked_and_nowhere_else(owner: Client, copy: DatasetCopy) -> None:
    """Who may rerun, may not set a position."""
    run = {"kind": "set_position", "params": {"offsets": {topic_of(copy.dataset): {"0": 9}}, "may_skip": True}}
    answer = owner.post("/api/v1/datasets/flights/runs", run, content_type="application/json")
    assert (answer.status_code, "positions" in answer.json()["error"]["message"]) == (422, True)
    assert failed_runs.right_to_retry("set_position") == "onboard"


def test_on_call_may_not(client: Client, copy: DatasetCopy) -> None:
    given.member(cal := given.user("cal"), copy.dataset.team, Role.ON_CALL)
    client.force_login(cal)
    assert client.get(POSITIONS).status_code == 200
    assert put(client, earliest=True).status_code == 403


def test_a_dataset_that_is_not_captured_has_no_position(owner: Client, copy: DatasetCopy) -> None:
    copy.dataset.feed.connection = given.connection("plain")
    copy.dataset.feed.save()
    assert owner.get(POSITIONS).status_code == put(owner, earliest=True).status_code == 422


def test_changes_that_are_left_out_are_a_finding_until_the_copy_is_loaded_again(copy: DatasetCopy) -> None:
    """Told by the commit, so whoever sees it first tells it, once."""
    other = given.copy(copy.dataset, "dc2")
    move = {"skipped": 3, "read_again": 0}
    stand(copy, 9, "20261116110000000", log_move=move)
    record_new_commits(copy, now=NOW)
    record_new_commits(copy, now=NOW)
    finding = Finding.objects.get(kind="changes_skipped")
    assert finding.detail["message"].startswith("About 3 changes were left out")
    assert Capture.objects.get().incomplete_copies == [copy.pk]
    states.note_loaded(other, 1, now=NOW)
    assert Capture.objects.get().incomplete_copies == [copy.pk]
    states.note_loaded(copy, 1, now=NOW)
    finding.refresh_from_db()
    assert (Capture.objects.get().incomplete_copies, finding.cleared_at) == ([], NOW)


def test_what_is_read_again_is_no_finding(copy: DatasetCopy) -> None:
    stand(copy, 3, "20261116110000000", log_move={"skipped": 0, "read_again": 3})
    record_new_commits(copy, now=NOW)
    assert not Finding.objects.exists()
    assert Capture.objects.get().incomplete_copies == []


def test_a_log_that_is_silent_keeps_few_threads(owner: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_RETRY_AFTER_S", 0)
    taken = [places._places.acquire() for _ in range(places.MAX_AT_ONCE)]
    try:
        answer = owner.get(POSITIONS)
    finally:
        for _ in taken:
            places._places.release()
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "0")
    assert owner.get(POSITIONS).status_code == 200


def command(*words: str) -> str:
    out = StringIO()
    call_command("positions", "flights", *words, stdout=out)
    return out.getvalue()


def test_the_terminal_shows_and_sets_it(copy: DatasetCopy) -> None:
    place = {"file": "binlog.000007", "offset": 4000, "begun": "0-1-18", "taken": {"t": 1500}}
    TapServer.objects.create(address="db:3306", position="0-1-17", place=place)
    text = command()
    assert "taken 0-1-17, binlog.000007 at 4,000, in 0-1-18 after 1,500 rows of t" in text
    assert "dc1: 4 messages wait, the oldest logged at" in text
    assert f"{topic_of(copy.dataset)} 0: at 6 of 10, may be set from 2 on" in text
    assert json.loads(command("--json"))["copies"][0]["waiting"] == 4
    assert "about 2 messages are read again" in command("--offset", "0:4", "--why", "Again")
    with pytest.raises(CommandError, match="About 4 changes would be left out"):
        command("--offset", "0:10", "--why", "Skip it")
    with pytest.raises(CommandError, match="Say why"):
        command("--earliest")
    for words in (["--offset", "7"], ["--time", "2026-11-16"], ["--time", "noon"]):
        with pytest.raises(CommandError):
            command(*words, "--why", "x")
