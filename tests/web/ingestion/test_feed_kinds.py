"""Jobs read tables of connections: what is scheduled, asked for and refused for feeds of the other kinds."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from ingestion.lake import commits
from ingestion.models import JobRun, JobState
from ingestion.runs import feed_schedule, job_runs, run_worker
from ingestion.spark.contract.job_kinds import READING_KINDS
from lakehub.accounts.models import Role
from lakehub.catalog.models import DatasetCopy, FeedKind
from lakehub.kernel.errors import Refused
from tests import factories as given
from tests.factories import NOW
from tests.web.ingestion import hudi_timeline
from tests.web.ingestion.conftest import FakeLauncher, worker_at

WITHOUT_CONNECTION = [FeedKind.CHANGELOG, FeedKind.PIPELINE]
PARAMS: dict[str, dict[str, Any]] = {"backfill": {"partitions": ["2026-11-16"]}, "delete": {"keys": [["1"]]}}
REFUSAL = r"`flights` cannot be loaded by the job `{job}`: its feed is a {kind} \(`flights-changes`\)"


@pytest.mark.parametrize("kind", FeedKind)
@pytest.mark.parametrize("loaded", [False, True])
def test_only_a_connection_is_loaded_and_followed(copy: DatasetCopy, kind: FeedKind, loaded: bool) -> None:
    given.feed_of_kind(copy.dataset, kind)
    if loaded:
        given.run(copy, "bootstrap", started_at=NOW - given.DAY)  # type: ignore[arg-type]  # its value
    due = ["follow" if loaded else "bootstrap"] if kind == FeedKind.CONNECTION else []
    assert [run.kind for run in feed_schedule.request_due_runs(now=NOW)] == due


@pytest.mark.parametrize("kind", WITHOUT_CONNECTION)
@pytest.mark.parametrize("job", READING_KINDS)
def test_a_job_that_would_read_a_table_is_refused(copy: DatasetCopy, kind: FeedKind, job: str) -> None:
    given.feed_of_kind(copy.dataset, kind)
    remedy = {"changelog": "onboard the table with its connection", "pipeline": "register the pipeline"}
    with pytest.raises(Refused, match=REFUSAL.format(job=job, kind=kind) + f".*{remedy[kind]}"):
        job_runs.request_run(copy, job, PARAMS.get(job), asked_by="ana", now=NOW)
    assert not JobRun.objects.exists()


@pytest.mark.parametrize("kind", FeedKind)
@pytest.mark.parametrize("job", ["delete", "drop"])
def test_rows_are_taken_away_whatever_feeds_them(copy: DatasetCopy, kind: FeedKind, job: str) -> None:
    given.feed_of_kind(given.with_table(copy).dataset, kind)
    job_runs.request_run(copy, job, PARAMS.get(job), asked_by="ana", now=NOW)
    launcher = FakeLauncher()
    assert run_worker.run_next(worker_at(NOW, launcher)) is not None
    ((spec, secrets),) = launcher.asked
    assert (spec.kind, spec.source, secrets) == (job, None, {})


@pytest.mark.parametrize("kind", FeedKind)
def test_a_run_that_waited_while_its_feed_changed_ends_with_the_reason(copy: DatasetCopy, kind: FeedKind) -> None:
    job_runs.request_run(copy, "bootstrap", asked_by="ana", now=NOW)
    given.feed_of_kind(copy.dataset, kind)
    launcher = FakeLauncher()
    run_worker.run_next(worker_at(NOW, launcher))
    run = JobRun.objects.get()
    if kind == FeedKind.CONNECTION:
        assert (run.state, len(launcher.asked)) == (JobState.SUCCEEDED, 1)
    else:
        assert f"its feed is a {kind} (`flights-changes`)" in run.error
        assert launcher.asked == []


@pytest.mark.parametrize("kind", WITHOUT_CONNECTION)
def test_the_api_and_the_command_say_why(copy: DatasetCopy, kind: FeedKind, client: Client) -> None:
    given.feed_of_kind(copy.dataset, kind)
    given.member(person := given.user(), copy.dataset.team, Role.ON_CALL)
    client.force_login(person)
    asked = {"kind": "incremental"}
    answer = client.post("/api/v1/datasets/flights/runs", asked, content_type="application/json")
    assert answer.status_code == 422
    assert f"its feed is a {kind}" in answer.content.decode()
    with pytest.raises(CommandError, match=f"its feed is a {kind}"):
        call_command("ingest", "incremental", "flights")


@pytest.mark.parametrize("kind", WITHOUT_CONNECTION)
def test_a_commit_with_a_new_column_is_recorded_and_the_columns_stay(
    copy: DatasetCopy, kind: FeedKind, caplog: pytest.LogCaptureFixture
) -> None:
    given.feed_of_kind(copy.dataset, kind)
    schema = hudi_timeline.told_by("x", schema={"added": ["gate"]})
    hudi_timeline.commit(copy, "20261117100000000", {"2026-11-16": (1, 0, 0)}, run=schema)
    assert len(commits.record_new_commits(copy, now=NOW)) == 1
    assert f"`flights` comes from {kind} flights-changes, which is not a table" in caplog.text
    copy.dataset.refresh_from_db()
    assert copy.dataset.metadata_version == 1
