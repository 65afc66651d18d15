"""Commands show what people and sources have written, and no terminal obeys it."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from ingestion.models import JobKind, JobRun, JobState, ReaderPosition
from lakehub.catalog.models import DatasetCopy, Feed
from tests import factories as given
from tests.factories import NOW
from tests.web.incidents.failing_dataset import FailingDataset

HOSTILE = "moved\x1b[2J\x9b31m\u202e\x7f\nRun 7 succeeded"
SHOWN = r"moved\x1b[2J\x9b31m\u202e\x7f\nRun 7 succeeded"


@pytest.fixture
def paused(copy: DatasetCopy) -> DatasetCopy:
    Feed.objects.update(paused=True, paused_at=NOW, paused_by="ana", paused_why=HOSTILE)
    return given.with_table(copy)


def shown_by(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    with suppress(SystemExit):
        call_command(*command)
    out = capsys.readouterr().out
    assert not set("\x1b\x9b\u202e\x7f") & set(out)
    return out


def test_the_gate_shows_the_reason_of_a_pause(paused: DatasetCopy, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("gate", "flights", "2026-11-16", "2026-11-17")
    assert SHOWN in shown_by(capsys, *asked)
    assert "moved" in shown_by(capsys, *asked, "--json")


def test_runs_and_readers_are_lines(paused: DatasetCopy, capsys: pytest.CaptureFixture[str]) -> None:
    run = given.run(paused, JobKind.INCREMENTAL, JobState.FAILED)
    JobRun.objects.filter(pk=run.pk).update(error=HOSTILE)
    until = NOW + timedelta(hours=1)
    ReaderPosition.objects.create(
        copy=paused, name=HOSTILE, position="20261116080000000", seen_at=NOW, expires_at=until
    )
    assert SHOWN in shown_by(capsys, "runs", "flights")
    assert SHOWN in shown_by(capsys, "readers", "flights")


def test_a_refusal_that_repeats_a_reason(paused: DatasetCopy) -> None:
    with pytest.raises(CommandError) as refused:
        call_command("ingest", "incremental", "flights")
    assert SHOWN in str(refused.value)


@pytest.mark.django_db
def test_the_title_of_an_incident(capsys: pytest.CaptureFixture[str]) -> None:
    incident = FailingDataset().opened()
    type(incident).objects.update(title=HOSTILE)
    assert SHOWN in shown_by(capsys, "incidents", "flights")
