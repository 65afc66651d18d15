"""Asking for rejected rows to be tried again: by owners, for rows that are there, with values that can be stored."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from ingestion.models import JobKind, JobRun, JobState, ReplayRequest
from ingestion.runs import failed_runs
from ingestion.runs.job_specs import error_table_uri, job_spec_of
from lakehub.accounts.models import Role
from lakehub.catalog.models import DatasetCopy
from tests import factories as given
from tests.error_tables import error_row, error_table, key_of
from tests.web.ingestion.test_error_rows_api import member

REPLAY = "/api/v1/datasets/flights/errors/replay"
KIND = "not a valid decimal(12,2)"


@pytest.fixture
def rows(copy: DatasetCopy, tmp_path: Path) -> list[str]:
    """The keys of three rejected rows and one of another column; the copy has a table."""
    copy.dataset.columns = [{"name": name, "type": "string"} for name in ("id", "amount")]
    copy.dataset.save()
    given.run(copy, JobKind.BOOTSTRAP, JobState.SUCCEEDED)
    folder = Path(error_table_uri(copy).removeprefix("file://"))
    error_table(folder, [*map(error_row, range(3)), error_row(3, column="id", reason="`id` is null, but it is a key")])
    return [key_of(number) for number in range(4)]


@pytest.fixture
def owner(copy: DatasetCopy) -> Client:
    return member(copy, Role.OWNER)


def ask(client: Client, **body: Any) -> Any:
    return client.post(REPLAY, json.dumps(body), "application/json")


def spec_of(run: JobRun) -> Any:
    spec, _ = job_spec_of(run, staging="file:///staging", ahead=timedelta(), now=given.NOW)
    return spec.replay


def test_rows_are_replayed_each_with_its_values(owner: Client, rows: list[str]) -> None:
    named = [{"error_key": rows[0], "values": {"amount": "0.12"}}, {"error_key": rows[1]}]
    answer = ask(owner, rows=named, values={"amount": "0"})
    assert (answer.status_code, answer.json()["kind"], answer.json()["params"]) == (201, "replay", {"rows": 2})
    assert "0.12" not in answer.content.decode()
    replay = spec_of(JobRun.objects.get(pk=answer.json()["id"]))
    assert (set(replay.keys), replay.fixes, replay.values) == (
        set(rows[:2]),
        {rows[0]: '{"amount": "0.12"}'},
        '{"amount": "0"}',
    )


def test_all_rows_of_one_kind_are_replayed(owner: Client, rows: list[str]) -> None:
    answer = ask(owner, column="amount", kind=KIND)
    assert answer.json()["params"] == {"rows": 3}
    assert set(spec_of(JobRun.objects.get(pk=answer.json()["id"])).keys) == set(rows[:3])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "one of the two"),
        ({"rows": [{"error_key": key_of(0)}], "kind": KIND}, "one of the two"),
        ({"rows": [{"error_key": "' OR 1=1 --"}]}, "is not an `error_key`"),
        ({"rows": [{"error_key": key_of(0)}, {"error_key": key_of(0)}]}, "named twice"),
        ({"rows": [{"error_key": key_of(number)} for number in range(201)]}, "name 200 at most"),
        ({"rows": [{"error_key": key_of(99)}]}, "1 of the rows are not in the error table"),
        ({"column": "amount", "kind": "nothing"}, "No open row is rejected by `amount` as `nothing`"),
        ({"rows": [{"error_key": key_of(0), "values": {"amuont": 1}}]}, "Did you mean `amount`?"),
        ({"rows": [{"error_key": key_of(0), "values": {"amount": "x" * 100_001}}]}, "100,000 at most"),
        ({"rows": [{"error_key": key_of(0), "values": {"amount": "\0"}}]}, "NUL"),
        ({"rows": [{"error_key": key_of(0), "values": ["amount"]}]}, "Expected a dictionary"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_remedy(
    owner: Client, rows: list[str], body: dict[str, Any], message: str
) -> None:
    answer = ask(owner, **body)
    assert (
        answer.status_code in (400, 422),
        message in answer.json()["error"]["message"] + answer.content.decode(),
    ) == (
        True,
        True,
    ), answer.content
    assert not ReplayRequest.objects.exists()


def test_a_body_that_is_too_large_or_too_deep_is_refused(owner: Client, rows: list[str]) -> None:
    large = owner.post(REPLAY, b'{"values": "' + b"x" * 1_100_000 + b'"}', "application/json")
    deep = owner.post(REPLAY, b'{"values": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}", "application/json")
    assert (large.status_code, deep.status_code) == (413, 400)


def test_only_owners_and_administrators_may_replay(copy: DatasetCopy, rows: list[str]) -> None:
    named = [{"error_key": rows[0]}]
    answers = {role: ask(member(copy, role), rows=named).status_code for role in Role}
    assert answers == {Role.VIEWER: 403, Role.ON_CALL: 403, Role.OWNER: 201, Role.ADMIN: 201}
    assert ask(member(copy, None), rows=named).status_code == 403
    assert ask(Client(), rows=named).status_code == 401


def test_a_replay_without_rows_is_refused_with_the_way(owner: Client, rows: list[str]) -> None:
    body = json.dumps({"kind": "replay", "params": {}})
    answer = owner.post("/api/v1/datasets/flights/runs", body, "application/json")
    assert (answer.status_code, "errors/replay" in answer.json()["error"]["message"]) == (422, True)


def test_a_replay_that_failed_is_tried_again_with_its_values(owner: Client, rows: list[str]) -> None:
    answer = ask(owner, rows=[{"error_key": rows[0], "values": {"amount": 1}}])
    run = JobRun.objects.get(pk=answer.json()["id"])
    JobRun.objects.filter(pk=run.pk).update(state=JobState.FAILED, ended_at=given.NOW)
    run.refresh_from_db()
    again = failed_runs.retry_run(run, actor="olga", now=given.NOW)
    assert spec_of(again) == spec_of(run).__class__((rows[0],), "olga", {rows[0]: '{"amount": 1}'}, "{}")
    assert ReplayRequest.objects.count() == 2


def test_the_command_replays(copy: DatasetCopy, rows: list[str]) -> None:
    out = StringIO()
    call_command("replay_errors", "flights", "--row", rows[0], "--values", '{"amount": 1}', "--json", stdout=out)
    assert json.loads(out.getvalue())["rows"] == 1
    for values, message in (("{", "is not JSON"), ("[1]", "by column"), ('{"amount": NaN}', "NaN is not a number")):
        with pytest.raises(CommandError, match=message):
            call_command("replay_errors", "flights", "--row", rows[0], "--values", values)
