"""Readers of increments say how far they are, and the lake keeps what they have not read, within a bound."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from ingestion.lake import readers
from ingestion.models import Finding, JobKind, JobRun, ReaderPosition
from ingestion.runs.job_specs import job_spec_of
from lakehub.accounts.models import AuditEntry
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Refused
from tests.factories import HOUR, NOW


@pytest.fixture(autouse=True)
def _bounds(settings: Any) -> None:
    settings.LAKEHUB_LAKE_RETENTION_HOURS, settings.LAKEHUB_LAKE_READER_HOURS = 2, 48


def instant(at: datetime) -> str:
    return f"{at:%Y%m%d%H%M%S}000"


def read_upto(copy: DatasetCopy, hours_ago: float, name: str = "load", lasts: timedelta = readers.LASTS) -> None:
    position = instant(NOW - hours_ago * HOUR)
    readers.note_position(copy, name, position, actor="ada", now=NOW, lasts=lasts)


def hours(copy: DatasetCopy, now: datetime = NOW) -> int:
    return readers.retention_hours(copy, now=now, wall=NOW)


def test_what_the_oldest_live_reader_has_not_read_is_kept_within_a_bound(copy: DatasetCopy) -> None:
    assert hours(copy) == 2
    read_upto(copy, 0.5)
    assert hours(copy) == 2
    read_upto(copy, 5, "other", HOUR)
    assert hours(copy) == 6
    read_upto(copy, 5.1, "other", HOUR)
    assert hours(copy) == 7
    read_upto(copy, 1000, "other", HOUR)
    assert hours(copy) == 48
    assert hours(copy, NOW + HOUR) == 2


def test_every_job_is_told(copy: DatasetCopy) -> None:
    """Commits are timed by the wall, from which the platform's clock may differ."""
    read_upto(copy, 5)
    run = JobRun.objects.create(copy=copy, kind=JobKind.DELETE, params={"keys": [["1"]]}, due_at=NOW)
    spec, _ = job_spec_of(run, staging="file:///tmp/staging", ahead=timedelta(), now=NOW)
    assert spec.table.retention_hours == 6
    spec, _ = job_spec_of(run, staging="file:///tmp/staging", ahead=-10 * HOUR, now=NOW)
    assert spec.table.retention_hours == 16


def test_a_finding_says_whose_position_was_passed_until_it_is_not(copy: DatasetCopy) -> None:
    read_upto(copy, 47, "near")
    readers.report_passed_readers(now=NOW, wall=NOW)
    assert not Finding.objects.exists()
    read_upto(copy, 49, "far")
    readers.report_passed_readers(now=NOW, wall=NOW)
    finding = Finding.objects.get(copy=copy, kind="reader_passed", cleared_at=None)
    assert finding.detail["readers"] == {"far": instant(NOW - 49 * HOUR)}
    read_upto(copy, 1, "far")
    readers.report_passed_readers(now=NOW, wall=NOW)
    assert not Finding.objects.filter(cleared_at=None).exists()


@pytest.mark.parametrize(
    "position",
    [
        "",
        "earliest",
        "2026111608000000",
        "20261399080000000",
        "２０２６１１１６０８００００0００",
        # Those that Python's own parser of times takes for a time.
        "２０２６1116080000000",
        "2026111608000000０",
    ],
)
def test_what_is_no_instant_is_refused(copy: DatasetCopy, position: str) -> None:
    with pytest.raises(Refused, match="is no instant"):
        readers.note_position(copy, "load", position, actor="ada", now=NOW)
    assert not ReaderPosition.objects.exists()


def test_the_command_sets_shows_and_removes(copy: DatasetCopy, capsys: pytest.CaptureFixture[str]) -> None:
    name, position = copy.dataset.name, instant(NOW)
    call_command("readers", name, "--set", "load", position)
    call_command("readers", name, "--set", "load", position)
    assert f"{position}  load" in capsys.readouterr().out
    assert AuditEntry.objects.filter(action="reader").count() == 1
    call_command("readers", name, "--remove", "load")
    assert "No reader" in capsys.readouterr().out
    with pytest.raises(CommandError, match="has no reader `load`"):
        call_command("readers", name, "--remove", "load")
