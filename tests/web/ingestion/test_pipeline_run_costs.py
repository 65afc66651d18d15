"""What runs of pipelines cost and how many fail, for Prometheus: of all copies by one query."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ingestion.models import JobKind, JobRun, JobState
from ingestion.runs.modelled_tables import run_costs
from ingestion.runs.modelled_tables.run_costs import RunCosts, run_costs_of
from lakehub.catalog.models import DatasetCopy
from tests import factories as given
from tests.query_plans import plans_of
from tests.web.ingestion.test_pipeline_progress import modelled

pytestmark = pytest.mark.django_db
NO_ROWS = {"inserted": 0, "updated": 0, "deleted": 0}
CHANGED = {"inserted": 3, "updated": 2, "deleted": 1}
INPUTS = {"flights": {"commits": 2, "files": 2, "bytes": 700}, "airlines": {"commits": 1, "files": 1, "bytes": 300}}


@pytest.fixture
def copy() -> DatasetCopy:
    """Of flights-by-day, whose load has told nothing."""
    return modelled()


def ran(
    copy: DatasetCopy, seconds: float, status: str = "succeeded", core_s: float | None = None, **output: Any
) -> JobRun:
    written = {"inserts": 0, "updates": 0, "deletes": 0} if status == "nothing_to_do" else {"inserts": 3, "updates": 2, "deletes": 1}  # fmt: skip
    return given.run(copy, report={"status": status, "phases": {"compute": 1, "total": seconds}, "core_s": core_s, "written": written, "output": output})  # fmt: skip


def costs(copy: DatasetCopy) -> RunCosts:
    return run_costs_of([copy])[copy.pk]


def test_it_is_the_newest_run_that_makes_rows_and_has_ended(copy: DatasetCopy) -> None:
    assert costs(copy) == RunCosts(None, None, NO_ROWS, None, 0)
    ran(copy, 42.5, core_s=61.2, inputs=INPUTS)
    given.run(copy, state=JobState.CANCELLED, report={"phases": {"total": 1.0}})
    given.run(copy, JobKind.CLUSTER, report={"phases": {"total": 2.0}})
    given.run(copy, state=JobState.RUNNING, ended_at=None)
    assert costs(copy) == RunCosts(42.5, 61.2, CHANGED, 1_000, 0)


def test_what_was_read_as_a_whole_is_of_no_known_size_and_nothing_is_nothing(copy: DatasetCopy) -> None:
    ran(copy, 100, made_anew="the commits are archived")
    assert costs(copy) == RunCosts(100, None, CHANGED, None, 0)
    ran(copy, 0.4, "nothing_to_do")
    assert costs(copy) == RunCosts(0.4, None, NO_ROWS, 0, 0)


def test_failures_are_counted_among_the_newest_runs(copy: DatasetCopy, monkeypatch: pytest.MonkeyPatch) -> None:
    for state in (JobState.FAILED, JobState.FAILED, JobState.SUCCEEDED):
        given.run(copy, state=state)
    assert costs(copy).failed_runs == 2
    given.run(copy, JobKind.CLUSTER, JobState.FAILED)
    assert costs(copy).failed_runs == 2, "rows are as they were"
    monkeypatch.setattr(run_costs, "COUNTED_RUNS", 3)
    assert costs(copy).failed_runs == 1


def test_one_query_tells_it_of_all_copies_and_reads_the_newest_runs_only(copy: DatasetCopy) -> None:
    copies = [copy, given.copy(copy.dataset, "dc2"), given.copy(copy.dataset, "dc3")]
    for each in copies[:2]:
        ran(each, 5)
    with CaptureQueriesContext(connection) as queries:
        assert run_costs_of(copies).keys() == {each.pk for each in copies[:2]}
    assert len(queries) == 1
    (plan,) = plans_of(lambda: run_costs_of(copies))
    assert "jobrun_of_copy" in plan
    assert "SCAN ingestion_jobrun" not in plan


def test_prometheus_has_it_by_the_number_of_the_copy(copy: DatasetCopy, client: Client) -> None:
    ran(copy, 42.5, core_s=61.2, inputs=INPUTS)
    metrics = client.get("/metrics").content.decode().splitlines()
    assert sorted(line for line in metrics if line.startswith(("lakehub_pipeline_last_run", "lakehub_pipeline_failed"))) == [
        f'lakehub_pipeline_failed_runs{{copy="{copy.pk}"}} 0.0',
        f'lakehub_pipeline_last_run_compared_bytes{{copy="{copy.pk}"}} 1000.0',
        f'lakehub_pipeline_last_run_core_seconds{{copy="{copy.pk}"}} 61.2',
        *(
            f'lakehub_pipeline_last_run_rows{{copy="{copy.pk}",kind="{kind}"}} {CHANGED[kind]}.0'
            for kind in sorted(CHANGED)
        ),
        f'lakehub_pipeline_last_run_seconds{{copy="{copy.pk}"}} 42.5',
    ]  # fmt: skip
