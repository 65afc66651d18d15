"""What a job may be told has a form: another one is refused by its name, and a run that has it all the same ends with a sentence."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from ingestion.domain.retries import MAX_ATTEMPTS
from ingestion.models import JobKind, JobRun, JobState
from ingestion.runs import job_runs, run_worker
from lakehub.accounts.models import Role
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Refused
from tests import factories as given
from tests.factories import HOUR, NOW
from tests.web.ingestion.conftest import FakeLauncher, worker_at

RUNS = "/api/v1/datasets/flights/runs"
NO_KEYS = "`keys` is not a list of keys: give each as a list of its values, texts or numbers"
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("bootstrap", {"replace": "false"}, "`replace` is 'false': give true or false, without quotes"),
    ("bootstrap", {"replace": 1}, "`replace` is 1: give true or false"),
    ("bootstrap", {"replace": None}, "`replace` is None: give true or false"),
    ("cluster", {"planned": "yes"}, "`planned` is 'yes': give true or false"),
    ("delete", {"share": "x"}, "`share` is 'x': give a number above 0 and at most 1"),
    ("delete", {"share": "0.5"}, "`share` is '0.5': give a number"),
    ("delete", {"share": True}, "`share` is True: give a number"),
    ("delete", {"share": 0}, "`share` is 0: give a number above 0"),
    ("delete", {"share": 1.5}, "`share` is 1.5: give a number"),
    ("delete", {"share": float("nan")}, "`share` is nan: give a number"),
    ("delete", {"keys": [1]}, NO_KEYS),
    ("delete", {"keys": "UA"}, NO_KEYS),
    ("delete", {"keys": [[]]}, NO_KEYS),
    ("delete", {"keys": [[None]]}, NO_KEYS),
    ("delete", {"keys": [[True]]}, NO_KEYS),
    ("delete", {"keys": {"a": 1}}, NO_KEYS),
    ("delete", {"keys": [[float("inf")]]}, NO_KEYS),
    ("backfill", {"keys": [["UA", float("nan")]]}, NO_KEYS),
    ("backfill", {"partitions": "2026-11-16"}, "`partitions` is '2026-11-16': give a list of names, each a text."),
    ("backfill", {"partitions": [20261116]}, "`partitions` is [20261116]: give a list of names"),
    ("verify_index", {"sampled": 0}, "`sampled` is 0: give a number above 0"),
    ("verify_index", {"sampled": "1%"}, "`sampled` is '1%': give a number above 0"),
    ("verify_index", {"repairs": "no"}, "`repairs` is 'no': give true or false"),
    (
        "verify_index",
        {"repairs": True},
        "The index that jobs of flights@dc1 use is not `hbase`, the only one that is put right key by key. Verify it",
    ),
    ("rebuild_index", {"repairs": True}, "A job of the kind `rebuild_index` has no parameter `repairs`"),
    ("bootstrap", {"replace": "x" * 10_000}, "`replace` is 'xxx"),
]


@pytest.mark.parametrize(("kind", "params", "message"), WRONG)
def test_a_parameter_of_another_form_is_refused_by_its_name(
    copy: DatasetCopy, kind: str, params: dict[str, Any], message: str
) -> None:
    with pytest.raises(Refused) as refused:
        job_runs.request_run(given.with_table(copy), kind, params, asked_by="ana", now=NOW)
    ((name, why),) = refused.value.fields.items()
    assert ([name], why.startswith(message)) == (list(params), True), why
    assert len(why) < 300
    assert not JobRun.objects.exists()


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("bootstrap", {"replace": False}),
        ("delete", {"keys": [["UA", 20261116], ["UA", 1.5]]}),
        ("delete", {"share": 1, "partitions": ["2026-11-16"]}),
        ("cluster", {"partitions": []}),
        ("verify_index", {"sampled": 0.01, "repairs": False}),
    ],
)
def test_a_parameter_of_its_form_is_taken(copy: DatasetCopy, kind: str, params: dict[str, Any]) -> None:
    run = job_runs.request_run(given.with_table(copy), kind, params, asked_by="ana", now=NOW)
    assert run.params == params


def test_every_problem_of_a_request_is_told_over_the_api(copy: DatasetCopy, client: Client) -> None:
    given.member(person := given.user(), given.with_table(copy).dataset.team, Role.ADMIN)
    client.force_login(person)
    asked = {"kind": "delete", "params": {"share": "x", "keys": [1], "partitons": []}}
    answer = client.post(RUNS, asked, content_type="application/json")
    assert answer.status_code == 422, answer.content
    fields = answer.json()["error"]["fields"]
    assert fields.keys() == {"share", "keys", "partitons"}
    assert "Did you mean `partitions`?" in fields["partitons"]


def test_a_table_is_not_replaced_for_the_text_false(copy: DatasetCopy, launcher: FakeLauncher) -> None:
    """A run may have been asked for before its parameters were checked."""
    run = JobRun.objects.create(copy=copy, kind=JobKind.BOOTSTRAP, params={"replace": "false"}, due_at=NOW)
    run_worker.run_next(worker_at(NOW, launcher))
    run.refresh_from_db()
    assert run.error.startswith("`replace` is 'false': give true or false")
    assert launcher.asked == []


def test_an_error_about_keys_names_none(copy: DatasetCopy, launcher: FakeLauncher) -> None:
    """They are for members of the owning team, and what a run ended with is for all."""
    run = JobRun.objects.create(copy=given.with_table(copy), kind=JobKind.DELETE, params={"keys": [731]}, due_at=NOW)
    run_worker.run_next(worker_at(NOW, launcher))
    run.refresh_from_db()
    assert run.error.startswith(NO_KEYS)
    assert "731" not in run.error


def test_a_run_whose_spec_cannot_be_made_has_failed_with_the_reason(
    copy: DatasetCopy, launcher: FakeLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended the task, and the run waited for its lease to run out each time."""

    def broken(*_: Any, **__: Any) -> None:
        raise TypeError("'int' object is not iterable")

    monkeypatch.setattr(run_worker, "job_spec_of", broken)
    run = job_runs.request_run(copy, JobKind.BOOTSTRAP, asked_by="ana", now=NOW)
    for attempt in range(MAX_ATTEMPTS):
        run_worker.run_next(worker_at(NOW + attempt * HOUR, launcher))
    run.refresh_from_db()
    assert (run.state, run.leased_by, run.attempt) == (JobState.FAILED, "", MAX_ATTEMPTS)
    assert run.error == "The job could not be prepared: TypeError: 'int' object is not iterable"
