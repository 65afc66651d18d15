"""The path of one commit, from the report of its job to a message that was sent: few files, few returns, and the page that lists them is true."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.core import mail
from django.urls import reverse

from incidents.alerts.generate import generate_outdated_alerts
from incidents.lifecycle.intake import process_flips
from incidents.notifications.sender import send_due_messages
from ingestion.models import JobKind, JobRun
from ingestion.runs import job_runs, run_worker
from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import SUCCEEDED, JobReport
from ingestion.spark.contract.spec import JobSpec
from lakehub.accounts.models import Team
from quality.execution.worker import run_due_units
from quality.models import Category, Flip, Unit
from quality.planning.touched_partitions import claim_touched_partitions
from tests import factories, hudi_tables
from tests.architecture.call_path import CallPath
from tests.architecture.imports import ROOT
from tests.factories import HOUR, MINUTE, NOW, day
from tests.web.ingestion.hudi_timeline import commit, told_by
from tests.web.quality.conftest import DAYS, World, rows

INSTANT = "20261117120000000"


class CommittingLauncher:
    """A job that takes rows away from a day in dc2."""

    def __init__(self, world: World) -> None:
        self._world = world

    def run(self, spec: JobSpec, secrets: object, lease: object, guidance: object = None) -> JobReport:
        copy, folder = self._world.copy("dc2"), self._world.table("dc2")
        properties = folder / ".hoodie" / "hoodie.properties"
        stored = properties.read_text()
        hudi_tables.overwrite(folder, DAYS[1], rows(DAYS[1], 990), column="flight_date", instant=INSTANT)
        commit(copy, INSTANT, {DAYS[1]: (0, 990, 0)}, run=told_by(spec.run_id, read=990, applied=990))
        properties.write_text(stored)
        return JobReport(run_id=spec.run_id, status=SUCCEEDED)

    def progress(self, run_id: str) -> JobProgress | None:
        return None

    def close(self) -> None:
        pass


@pytest.fixture
def path(world: World) -> CallPath:
    """Recorded while a commit that loses rows becomes a message to the team."""
    world.monitored()
    Team.objects.update(email="ops@example.org")
    generate_outdated_alerts(now=NOW)
    copy = world.copy("dc2")
    test = factories.quality_test(
        world.flights,
        Category.COMPLETENESS,
        key="custom",
        check_name="custom",
        expression="rows(this) > 995",
        sustain=timedelta(),
    )
    unit = factories.unit(test, copy, day(DAYS[1]))
    Unit.objects.exclude(pk=unit.pk).update(due_at=None)
    JobRun.objects.create(copy=copy, kind=JobKind.INCREMENTAL, due_at=NOW)
    reverse("home")  # the addresses are known by then
    worker = run_worker.Worker(
        name="host:1:a",
        launcher=CommittingLauncher(world),
        staging=world.lakes["dc2"].as_uri(),
        clock=lambda: NOW,
        clock_offset=timedelta,
        draw_jitter=lambda: 0.0,
        gate=lambda inputs, **_: [],
    )
    run = job_runs.claim_next_run(worker.name, now=NOW)
    assert run is not None
    report = run_worker._launch(run, worker, None, None)
    recorded = CallPath()
    with recorded.recording():
        run_worker._record_outcome(run, report, worker)
        claim_touched_partitions(now=NOW)
    Unit.objects.exclude(pk=unit.pk).update(due_at=None)
    Flip.objects.update(claimed_at=NOW)
    with recorded.recording():
        run_due_units(now=NOW + HOUR, worker="test")
        process_flips(now=NOW + HOUR)
        send_due_messages(now=NOW + HOUR + MINUTE)
    assert [message.to for message in mail.outbox] == [["ops@example.org"]]
    return recorded


def test_the_path_of_a_commit_is_short(path: CallPath) -> None:
    assert len(path.files) <= 35, "\n".join(path.visits)
    assert path.returns <= 12, "\n".join(path.visits)


def test_the_page_on_the_architecture_lists_it(path: CallPath) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    listed = page.partition("<!-- call path -->")[2].partition("<!-- end -->")[0]
    assert re.findall(r"^\d+\. `([^`]+)`", listed, re.MULTILINE) == path.files, "\n".join(
        f"{number}. `{file}`" for number, file in enumerate(path.files, 1)
    )
