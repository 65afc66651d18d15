"""Lakehub's own jobs and the gate: a run waits for the incident of an input, and goes on when that resolves."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from incidents.gate import overrides
from incidents.gate.input_gate import input_gate
from incidents.lifecycle import resolution
from incidents.lifecycle.intake import process_flips
from incidents.models import GatePolicy, GateQuestion
from ingestion.lake import readers
from ingestion.models import JobKind, JobRun, JobState
from ingestion.pipelines.positions import reader_name
from ingestion.pipelines.registering import register_pipeline
from ingestion.ports import GATE_CONSUMER, JobInput
from ingestion.runs import job_runs, run_worker
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.interval import Interval
from tests import factories
from tests.factories import DAY, HOUR, MINUTE, NOW, day
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE, TABLE, TRANSFORM
from tests.web.incidents.failing_dataset import BAD_DAY, DAY_BEFORE, FailingDataset
from tests.web.ingestion.conftest import FakeLauncher, worker_at

pytestmark = pytest.mark.django_db
TODAY = day("2026-11-17")


@pytest.fixture
def stage() -> FailingDataset:
    """flights in dc1, whose days passed."""
    made = FailingDataset(copies=("dc1",))
    for over in (BAD_DAY, DAY_BEFORE):
        made.unit(over, "dc1")
    return made


@pytest.fixture
def delays(stage: FailingDataset, tmp_path: Any) -> DatasetCopy:
    """A table that is made from flights, and was looked at for the last time on the bad day."""
    made = factories.dataset("delays", copies=())
    factories.edge(stage.dataset, made)
    factories.feed(made)
    copy = factories.copy(made, "dc1", uri=(tmp_path / "delays").as_uri())
    factories.run(copy, JobKind.BOOTSTRAP, started_at=NOW - DAY)
    return copy


def go(now: datetime) -> FakeLauncher:
    launcher = FakeLauncher()
    run_worker.run_next(worker_at(now, launcher, gate=input_gate))
    return launcher


def wanted(stage: FailingDataset, over: Interval = BAD_DAY) -> JobInput:
    return JobInput(stage.dataset.copies.get().pk, "flights", "dc1", over)


def test_a_run_waits_for_the_incident_of_its_input_and_goes_on_when_it_resolves(
    stage: FailingDataset, delays: DatasetCopy
) -> None:
    incident = stage.opened(where="dc1")
    run = job_runs.request_run(delays, "incremental", asked_by="schedule", now=NOW)
    assert go(NOW).asked == []
    run.refresh_from_db()
    assert (run.state, run.error) == (JobState.WAITING, "waits for flights@dc1: fail: sustained")
    (held,) = run.blocked_by.all()
    assert (held.incidents, Interval(held.start, held.end)) == ([incident.pk], Interval(BAD_DAY.start, TODAY.end))
    assert go(NOW + MINUTE).asked == []
    stage.passes(stage.unit(BAD_DAY, "dc1"), at=NOW + 2 * MINUTE)
    process_flips(now=NOW + 2 * MINUTE)
    run.refresh_from_db()
    assert (run.state, run.due_at) == (JobState.WAITING, NOW + 2 * MINUTE)
    assert len(go(NOW + 2 * MINUTE).asked) == 1
    run.refresh_from_db()
    assert run.state == JobState.SUCCEEDED


def test_a_person_who_resolves_it_lets_the_run_go_on_too(stage: FailingDataset, delays: DatasetCopy) -> None:
    incident = stage.opened(where="dc1")
    run = job_runs.request_run(delays, "incremental", asked_by="schedule", now=NOW)
    go(NOW)
    resolution.resolve_by_force(
        incident.pk,
        resolution="false_positive",
        false_positive="wrong_test",
        why="holiday",
        actor="ana",
        now=NOW + MINUTE,
    )
    assert len(go(NOW + MINUTE).asked) == 1
    run.refresh_from_db()
    assert run.state == JobState.SUCCEEDED


def test_so_does_an_override_of_the_gate(stage: FailingDataset, delays: DatasetCopy) -> None:
    stage.opened(where="dc1")
    run = job_runs.request_run(delays, "incremental", asked_by="schedule", now=NOW)
    go(NOW)
    until = NOW + HOUR
    over = Interval(BAD_DAY.start, TODAY.end)
    overrides.create_override(stage.dataset, over, reason="holiday", expires_at=until, actor=factories.user(), now=NOW)
    assert len(go(NOW).asked) == 1
    run.refresh_from_db()
    assert run.state == JobState.SUCCEEDED


def test_an_incident_about_other_days_blocks_nobody(stage: FailingDataset, delays: DatasetCopy) -> None:
    stage.opened(DAY_BEFORE, "dc1")
    JobRun.objects.update(started_at=NOW - HOUR)
    job_runs.request_run(delays, "incremental", asked_by="schedule", now=NOW)
    assert len(go(NOW).asked) == 1


def test_a_pipeline_waits_for_the_old_partition_that_a_late_commit_has_touched(stage: FailingDataset) -> None:
    """It follows commits, whenever their data is from."""
    columns = {"flights": ("id", "day", "carrier", "delay"), "airlines": ("carrier", "name")}
    factories.dataset("airlines")
    for name, names in columns.items():
        Dataset.objects.filter(name=name).update(columns=[{"name": each, "type": "string", "nullable": True} for each in names])  # fmt: skip
    texts = {"table.sql": TABLE, "pipeline.yaml": PIPELINE, "transform.sql": TRANSFORM}
    made = factories.copy_of(register_pipeline(texts, actor="ana", now=NOW - DAY).dataset)
    factories.run(made, JobKind.BOOTSTRAP, started_at=NOW - HOUR, ended_at=NOW - HOUR)
    for each in DatasetCopy.objects.filter(dataset__name__in=columns):
        readers.note_position(each, reader_name(made.dataset), f"{NOW - HOUR:%Y%m%d%H%M%S}000", actor="x", now=NOW)
    old = day("2026-10-12")
    stage.opened(old, "dc1")
    run = job_runs.request_run(made, "incremental", asked_by="schedule", now=NOW)
    assert len(go(NOW).asked) == 1, "what it has read stays read"
    factories.commit(stage.dataset.copies.get(), NOW - MINUTE, touched=[old])
    run = job_runs.request_run(made, "incremental", asked_by="schedule", now=NOW + MINUTE)
    assert go(NOW + MINUTE).asked == []
    run.refresh_from_db()
    assert (run.state, run.error) == (JobState.WAITING, "waits for flights@dc1: fail: sustained")
    stage.passes(stage.unit(old, "dc1"), at=NOW + 2 * MINUTE)
    process_flips(now=NOW + 2 * MINUTE)
    assert len(go(NOW + 2 * MINUTE).asked) == 1


def test_what_is_unknown_blocks_our_own_jobs_only_where_their_policy_says_so(stage: FailingDataset) -> None:
    def ask() -> tuple[bool, str]:
        (answer,) = input_gate([wanted(stage, TODAY)], consumer=GATE_CONSUMER, request_id="1", now=NOW)
        return answer.allowed, answer.verdict

    assert ask() == (True, "unknown")
    GatePolicy.objects.create(consumer=GATE_CONSUMER, tier=1, preset="strict")
    assert ask() == (False, "unknown")


def test_a_run_that_asks_again_is_counted_once(stage: FailingDataset, delays: DatasetCopy) -> None:
    stage.opened(where="dc1")
    run = job_runs.request_run(delays, "incremental", asked_by="schedule", now=NOW)
    go(NOW)
    go(NOW + 20 * MINUTE)
    question = GateQuestion.objects.get()
    assert (question.consumer, question.request_id, question.allowed) == (GATE_CONSUMER, str(run.key), False)


def test_the_answer_names_the_incident_and_when_to_ask_again(stage: FailingDataset) -> None:
    incident = stage.opened(where="dc1")
    incident.eta = NOW + 3 * HOUR
    incident.save(update_fields=["eta"])
    stage.fails(where="dc1", due_at=NOW + 9 * MINUTE)
    (bad, good) = input_gate(
        [wanted(stage), wanted(stage, DAY_BEFORE)],
        consumer=GATE_CONSUMER,
        request_id="1",
        now=NOW + timedelta(seconds=1),
    )
    assert (bad.allowed, bad.incidents, bad.reason) == (False, (incident.pk,), "fail: sustained")
    assert bad.retry_at == NOW + 9 * MINUTE
    assert (good.allowed, good.incidents) == (True, ())


def test_many_inputs_are_one_question(stage: FailingDataset) -> None:
    def queries(count: int) -> int:
        inputs = [wanted(stage, day(f"2026-11-{number:02}")) for number in range(1, count + 1)]
        with CaptureQueriesContext(connection) as seen:
            input_gate(inputs, consumer=GATE_CONSUMER, request_id=str(count), now=NOW)
        return len(seen)

    assert queries(12) == queries(2)
