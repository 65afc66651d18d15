"""What attackers ask for: rows of others, memory and threads without bounds, values that no database holds."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event, Semaphore, Thread
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from ingestion.lake import readers
from ingestion.lake.files import table_files
from ingestion.models import Finding, JobKind, JobRun, JobState, ReaderPosition, ReplayRequest
from ingestion.runs import job_runs
from ingestion.runs.job_specs import error_table_uri
from lakehub.accounts.models import Role
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Busy, Refused
from tests import factories as given
from tests.error_tables import error_row, error_table
from tests.polling import scaled, wait_until
from tests.web.ingestion.test_error_rows_api import member
from tests.web.ingestion.test_replays import REPLAY, ask, owner, rows  # noqa: F401

RUNS = "/api/v1/datasets/flights/runs"
KEY = "alice@example.com"


def test_a_monitored_dataset_of_another_team_shows_no_error_table(copy: DatasetCopy, tmp_path: Path) -> None:
    """`flights` was rebuilt, so its table is `flights-2`. Another team names a monitored dataset so."""
    DatasetCopy.objects.filter(pk=copy.pk).update(uri=(tmp_path / "flights-2").as_uri())
    copy.refresh_from_db()
    folder = Path(error_table_uri(copy).removeprefix("file://"))
    error_table(folder, [error_row(0, raw="secret of flights")])
    other = given.dataset("flights-2", team=given.team("pricing"), ingested=False, copies=())
    spied = DatasetCopy.objects.create(dataset=other, data_center=copy.data_center, uri="")
    viewer = member(spied, Role.VIEWER)
    answer = viewer.get("/api/v1/datasets/flights-2/errors")
    page = viewer.get("/datasets/flights-2/rejected")
    assert b"secret of flights" not in answer.content
    assert b"secret of flights" not in page.content


def test_an_infinite_value_is_refused(owner: Client, rows: list[str]) -> None:  # noqa: F811
    body = json.dumps({"rows": [{"error_key": rows[0], "values": {"amount": 0.5}}]}).replace("0.5", "1e999")
    answer = owner.post(REPLAY, body, "application/json")
    assert answer.status_code == 422


@pytest.mark.parametrize("partitions", [5, [5], {"a": 1}, [["x"]], "abc", [None], [{"a": 1}]])
def test_partitions_are_names(owner: Client, rows: list[str], partitions: Any) -> None:  # noqa: F811
    owner.raise_request_exception = False
    body = json.dumps({"kind": "cluster", "params": {"partitions": partitions}})
    answer = owner.post(RUNS, body, "application/json")
    assert answer.status_code == 422


@pytest.mark.parametrize("name", ["x" * 5000, "a%0Ab", "%1b[2J"])
def test_the_name_of_a_reader_is_short_and_printable(copy: DatasetCopy, name: str) -> None:
    body = json.dumps({"position": "20261116080000000"})
    answer = member(copy, Role.OWNER).put(f"/api/v1/datasets/flights/readers/{name}", body, "application/json")
    assert (answer.status_code, ReaderPosition.objects.count()) == (422, 0)


def test_readers_have_a_bound_and_their_finding_names_some(copy: DatasetCopy) -> None:
    for number in range(readers.MAX_READERS):
        readers.note_position(copy, f"{number:0100}", "20200101000000000", actor="a", now=given.NOW)
    with pytest.raises(Refused, match="remove one that reads no more"):
        readers.note_position(copy, "another", "20200101000000000", actor="a", now=given.NOW)
    readers.report_passed_readers(now=given.NOW, wall=given.NOW)
    assert " and 190 more" in Finding.objects.get(kind="reader_passed").detail["message"]
    # Those that are over make room.
    later = given.NOW + readers.LASTS
    readers.note_position(copy, "another", "20200101000000000", actor="a", now=later)
    assert ReaderPosition.objects.count() == 1


def test_on_call_may_not_replay_by_retrying(copy: DatasetCopy, owner: Client, rows: list[str]) -> None:  # noqa: F811
    answer = ask(owner, column="amount", kind="not a valid decimal(12,2)", values={"amount": 1})
    number = answer.json()["id"]
    JobRun.objects.filter(pk=number).update(state=JobState.FAILED, ended_at=given.NOW)
    on_call = member(copy, Role.ON_CALL)
    answer = on_call.post(f"{RUNS}/{number}/retry")
    assert answer.status_code == 403
    page = on_call.post(f"/datasets/flights/runs/{number}/retry")
    assert page.status_code == 403
    assert ReplayRequest.objects.count() == 1


@pytest.fixture
def runs_with_keys(copy: DatasetCopy) -> None:
    """A look at the index that has found something, an unfinished load, and a delete by key."""
    problems = dict.fromkeys(("doubled", "missing", "misplaced", "without_row"), 1)
    examples = {"missing": [f"{KEY}: the table has it in flight_date=2026-11-16/f1"]}
    output = {"index": "simple", "rows": 1, "entries": 1, "problems": problems, "examples": examples}
    look = given.run(copy, JobKind.VERIFY_INDEX, JobState.SUCCEEDED)
    JobRun.objects.filter(pk=look.pk).update(report={"output": output})
    load = given.run(copy, JobKind.BOOTSTRAP, JobState.QUEUED)
    JobRun.objects.filter(pk=load.pk).update(report={"checkpoint": {"after": [KEY]}, "counts": {"read": 7}})
    delete = given.run(copy, JobKind.DELETE, JobState.SUCCEEDED)
    JobRun.objects.filter(pk=delete.pk).update(params={"keys": [[KEY, "2026-11-16"]], "partitions": ["2026-11-16"]})


@pytest.mark.usefixtures("runs_with_keys")
def test_keys_of_records_are_not_for_everybody_who_is_signed_in(copy: DatasetCopy) -> None:
    somebody = member(copy, None)
    delete, load, look = somebody.get(RUNS).json()["results"]
    assert delete["params"] == {"partitions": ["2026-11-16"]}
    assert load["report"] == {"counts": {"read": 7}}
    assert look["report"]["output"]["problems"]["missing"] == 1
    assert KEY not in str((delete, load, look))
    assert KEY not in somebody.get("/datasets/flights/ingestion").content.decode()


@pytest.mark.usefixtures("runs_with_keys")
def test_members_of_the_team_see_keys_but_no_checkpoint(copy: DatasetCopy) -> None:
    delete, load, look = member(copy, Role.VIEWER).get(RUNS).json()["results"]
    assert delete["params"]["keys"] == [[KEY, "2026-11-16"]]
    assert KEY in look["report"]["output"]["examples"]["missing"][0]
    assert "checkpoint" not in load["report"]


@pytest.mark.usefixtures("runs_with_keys")
def test_the_terminal_shows_keys_to_the_operator(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("runs", "flights", "--json")
    assert capsys.readouterr().out.count(KEY) == 2


def test_rights_to_keys_are_asked_once_for_a_list(
    copy: DatasetCopy, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(20):
        run = given.run(copy, JobKind.DELETE, JobState.SUCCEEDED)
        JobRun.objects.filter(pk=run.pk).update(params={"keys": [[KEY]]})
    viewer = member(copy, Role.VIEWER)
    with django_assert_max_num_queries(10):
        viewer.get(RUNS)


def test_a_second_check_of_an_index_does_not_wait_behind_the_first(owner: Client, rows: list[str]) -> None:  # noqa: F811
    codes = [owner.post(RUNS, json.dumps({"kind": "verify_index"}), "application/json").status_code for _ in range(3)]
    assert codes == [201, 409, 409]


def test_so_many_jobs_of_people_wait_on_a_copy_and_no_more(owner: Client, rows: list[str], copy: DatasetCopy) -> None:  # noqa: F811
    for _ in range(job_runs.MAX_WAITING_REQUESTS):
        job_runs.request_run(copy, JobKind.CLUSTER, asked_by=job_runs.SCHEDULE, now=given.NOW)
    asked = json.dumps({"kind": "cluster"})
    codes = [owner.post(RUNS, asked, "application/json").status_code for _ in range(job_runs.MAX_WAITING_REQUESTS)]
    assert set(codes) == {201}, "those of the schedule do not count"
    answer = owner.post(RUNS, asked, "application/json")
    assert answer.status_code == 409
    assert "20 jobs of flights@dc1 that people asked for wait already" in answer.json()["error"]["message"]
    # What was cancelled makes room.
    waiting = JobRun.objects.filter(kind=JobKind.CLUSTER).exclude(asked_by=job_runs.SCHEDULE).earliest("pk")
    job_runs.cancel_run(waiting, actor="ana", now=given.NOW)
    assert [owner.post(RUNS, asked, "application/json").status_code for _ in range(2)] == [201, 409]
    # The schedule goes on, and so does a drop.
    job_runs.request_run(copy, JobKind.CLUSTER, asked_by=job_runs.SCHEDULE, now=given.NOW)
    job_runs.request_run(copy, JobKind.DROP, asked_by="ana", now=given.NOW)


def test_whoever_waits_for_error_tables_holds_one_thread() -> None:
    release, refused = Event(), Semaphore(0)

    def hold() -> None:
        with table_files._turn():
            release.wait(scaled(10))

    def come() -> None:
        try:
            with table_files._turn():
                pass
        except Busy:
            refused.release()

    holders = [Thread(target=hold) for _ in range(table_files.MAX_AT_ONCE)]
    for holder in holders:
        holder.start()
    wait_until(lambda: table_files._turns._value == 0)
    others = [Thread(target=come) for _ in range(6)]
    for other in others:
        other.start()
    try:
        # At once: long before the turn that the sixth waits for is given up.
        assert all(refused.acquire(timeout=scaled(2)) for _ in range(5))
    finally:
        release.set()
        for thread in (*holders, *others):
            thread.join()
