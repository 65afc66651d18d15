"""Single rows of a captured table are read again: who may ask for which, and what the job is told."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from ingestion.captures.records import capture_of
from ingestion.models import JobRun
from ingestion.runs import job_runs
from ingestion.runs.job_specs import job_spec_of
from ingestion.runs.requests import source_checks
from lakehub.accounts.models import AuditEntry, Role
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Refused
from tests import factories as given
from tests.factories import NOW

pytestmark = pytest.mark.django_db
KEYS = [["UA", 17], ["LH", "2"]]


@pytest.fixture
def captured(copy: DatasetCopy) -> DatasetCopy:
    """flights, captured from ops.flights, and loaded."""
    feed = copy.dataset.feed
    feed.connection = given.connection("tapped", "mysql://reader@db.example.org:3306/ops", plugin="mysql")
    feed.object = "flights"
    feed.save()
    capture_of(feed)
    copy.dataset.record_key = ["carrier", "number"]
    copy.dataset.save()
    given.with_table(copy)
    return given.copy_of(copy.dataset)


def test_rows_are_asked_for_by_command_and_told_to_the_job(captured: DatasetCopy) -> None:
    call_command("ingest", "backfill", "flights", "--keys", json.dumps(KEYS))
    run = JobRun.objects.get(kind="backfill")
    spec, _ = job_spec_of(run, staging="file:///staging", ahead=timedelta(), now=NOW)
    assert (spec.kind, spec.keys, spec.partitions, spec.raw) == ("backfill", (("UA", "17"), ("LH", "2")), (), None)
    entry = AuditEntry.objects.get(action="backfill")
    assert (entry.actor, entry.detail["keys"]) == ("manage.py", KEYS)
    with pytest.raises(CommandError, match="--keys"):
        call_command("ingest", "backfill", "flights", "--keys", "[[1")


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({}, "name the `keys` of rows that are to be read, or bootstrap it with `replace`"),
        ({"partitions": ["2026-11-16"]}, "is captured: all changes of its table are in the lake"),
        ({"keys": KEYS, "partitions": ["2026-11-16"]}, "`keys` or `partitions`, and not both"),
        ({"keys": [["UA"]]}, "has the 2 values of the record key, in its order: carrier, number"),
        ({"keys": "UA"}, "`keys` is not a list of keys"),
        ({"keys": KEYS * 2}, "4 keys are given: a backfill reads 3 at most"),
    ],
)
def test_what_cannot_be_read_again_is_refused(
    captured: DatasetCopy, params: dict[str, object], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_checks, "MAX_KEYS", 3)
    with pytest.raises(Refused) as refused:
        job_runs.request_run(captured, "backfill", params, asked_by="ana", now=NOW)
    assert why in f"{refused.value} {refused.value.fields}"


def test_rows_of_a_table_with_a_cursor_are_read_by_partitions(copy: DatasetCopy) -> None:
    with pytest.raises(Refused, match="Single rows of `flights` cannot be read again"):
        job_runs.request_run(given.with_table(copy), "backfill", {"keys": KEYS}, asked_by="ana", now=NOW)


def test_whoever_may_run_jobs_may_ask_and_who_is_no_member_sees_no_keys(captured: DatasetCopy) -> None:
    runs, body = "/api/v1/datasets/flights/runs", {"kind": "backfill", "params": {"keys": KEYS}}
    answers = {}
    for role in (Role.OWNER, None):
        client, person = Client(), given.user(f"a-{role}")
        if role is not None:
            given.member(person, captured.dataset.team, role)
        client.force_login(person)
        answers[role] = client.post(runs, body, content_type="application/json").status_code
        seen = client.get(runs).json()["results"][0]["params"]
        assert seen == ({"keys": KEYS} if role is not None else {})
    assert answers == {Role.OWNER: 201, None: 403}
