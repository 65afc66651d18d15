"""Runs show how far they are, on the wizard, the dataset's page and the first page."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from frontend.components.runs.progress import run_progress
from ingestion.models import JobKind, JobRun, JobState
from lakehub.catalog.models import Dataset
from tests import factories as make
from tests.architecture.imports import ROOT
from tests.factories import MINUTE, NOW

READING = {"phase": "read", "phase_s": 60.0, "rows_read": 1_000_000, "rows_total": 3_000_000}
SENTENCE = "Reading 1,000,000 of 3,000,000 rows, about 2 min left to read."


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


@pytest.fixture
def running(flights: Dataset) -> JobRun:
    copy = make.copy_of(flights, "dc1")
    JobRun.objects.filter(copy=copy, state=JobState.RUNNING).delete()
    return make.run(
        copy,
        JobKind.BOOTSTRAP,
        JobState.RUNNING,
        started_at=NOW - MINUTE,
        ended_at=None,
        attempt=1,
        progress=READING,
        progress_at=NOW,
    )


@pytest.mark.parametrize(
    ("where", "part"),
    [
        ("/", "run"),
        ("/onboarding/flights", "made"),
        ("/datasets/flights", "running"),
        ("/datasets/flights/ingestion", "running"),
    ],
)
def test_it_is_shown_and_the_live_part_brings_it_up_to_date(
    page: Client, running: JobRun, where: str, part: str
) -> None:
    answer = page.get(where)
    assert SENTENCE in text_of(answer)
    assert re.search(rf'id="{part}"[^>]*data-live', answer.content.decode())
    JobRun.objects.filter(pk=running.pk).update(progress=READING | {"rows_read": 1_500_000})
    fresh = page.get(where, headers={"X-Fragment": part})
    assert "Reading 1,500,000 of 3,000,000 rows" in text_of(fresh)
    assert "<html" not in fresh.content.decode()


@pytest.mark.parametrize(
    ("progress", "sentence", "share"),
    [
        ({}, "Starting: Spark takes some seconds.", None),
        (READING, SENTENCE, 1 / 3),
        (READING | {"rows_total": None}, "Reading, 1,000,000 rows so far.", None),
        (READING | {"rows_total": 0, "rows_read": 0}, "Reading, 0 rows so far.", None),
        (READING | {"rows_read": 3_100_000}, "Reading, 3,100,000 rows so far.", 1.0),
        (READING | {"phase_s": 1}, "Reading 1,000,000 of 3,000,000 rows.", 1 / 3),
        (
            {"phase": "write", "phase_s": 10.0, "rows_read": 3_000_000, "tasks_done": 5, "tasks_total": 10},
            "Writing 3,000,000 rows, 5 of 10 parts, about 10 s left to do this step.",
            0.5,
        ),
        ({"phase": "judge", "phase_s": 1.0}, "Checking rows.", None),
        ({"phase": "of a later version"}, "Working.", None),
    ],
)
def test_it_says_what_is_known_and_no_more(
    running: JobRun, progress: dict[str, Any], sentence: str, share: float | None
) -> None:
    running.progress = progress
    shown = run_progress(running, now=NOW)
    assert (shown.sentence, shown.share) == (sentence, pytest.approx(share) if share else share)


def test_an_old_number_says_how_old_it_is(running: JobRun) -> None:
    assert "Last update 5 min ago." in run_progress(running, now=NOW + timedelta(minutes=5)).sentence


def test_what_waits_says_for_what(flights: Dataset) -> None:
    copy = make.copy_of(flights, "dc1")
    queued = JobRun(copy=copy, kind=JobKind.BOOTSTRAP, state=JobState.QUEUED, progress=READING)
    assert run_progress(queued, now=NOW).sentence == "Queued: it starts as soon as a worker is free."
    queued.error, queued.due_at = "waits for the index cluster: HBase does not answer.", NOW + 2 * MINUTE
    sentence = "Queued again, next try in 2 min: waits for the index cluster: HBase does not answer."
    assert run_progress(queued, now=NOW).sentence == sentence
    assert run_progress(queued, now=NOW + 2 * MINUTE).sentence == "Queued: it starts as soon as a worker is free."


def test_each_phase_of_a_job_has_words(running: JobRun) -> None:
    sources = [file.read_text() for file in (ROOT / "ingestion/spark").rglob("*.py")]
    phases = {name for source in sources for name in re.findall(r'\bphase\("(\w+)"\)', source)}
    assert {"index", "read", "write"} <= phases
    for phase in phases:
        running.progress = {"phase": phase, "phase_s": 1.0}
        running.progress_at = NOW
        assert not run_progress(running, now=NOW).sentence.startswith("Working"), phase
