"""Another index for a dataset: by API and page, built by a run of its own while jobs go on with the former one."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from ingestion.index_shares.standing import standing_index
from ingestion.models import IndexChange, JobKind, JobRun, JobState
from ingestion.runs import job_runs, run_worker
from ingestion.runs.index_choice.states import copy_indexes
from ingestion.runs.index_use import allowances
from ingestion.runs.job_specs import job_spec_of
from ingestion.spark.contract.report import FAILED, SUCCEEDED, JobReport
from ingestion.spark.contract.spec import JobSpec, TableSpec
from lakehub.accounts.models import AuditEntry, Role
from lakehub.catalog.datasets.changes import update_dataset
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.errors import Refused
from tests import factories as given
from tests import index_jobs
from tests.factories import NOW
from tests.web.ingestion.conftest import FakeLauncher, worker_at

API = "/api/v1/datasets/flights"


def chooses(copy: DatasetCopy, index: str, **others: object) -> None:
    dataset = Dataset.objects.get(pk=copy.dataset_id)
    update_dataset(dataset, {"feed_options": {"index": index, **others}}, actor="ana", now=NOW)


def fresh(copy: DatasetCopy) -> DatasetCopy:
    return DatasetCopy.with_removed.select_related("dataset__feed__connection", "data_center").get(pk=copy.pk)


def table_of(copy: DatasetCopy, kind: str = JobKind.INCREMENTAL) -> TableSpec:
    """As a job of this kind is told of it now."""
    run = JobRun(copy=fresh(copy), kind=kind, params={})
    return job_spec_of(run, staging="file:///staging", ahead=timedelta(), now=NOW)[0].table


def works(*, at: timedelta = timedelta(), status: str = SUCCEEDED, error: str = "") -> list[JobSpec]:
    """Whatever is due is run, and ends so."""
    launcher = FakeLauncher(
        lambda spec: JobReport(spec.run_id, status, output={"index": spec.table.index}, error=error or None)
    )
    while run_worker.run_next(worker_at(NOW + at, launcher)):
        pass
    return [spec for spec, _ in launcher.asked]


def waiting(kind: str) -> list[JobRun]:
    return [*JobRun.objects.filter(kind=kind, state=JobState.QUEUED)]


def sentence(copy: DatasetCopy) -> str:
    return copy_indexes(fresh(copy).dataset)[0].sentence


@pytest.fixture
def loaded(copy: DatasetCopy) -> DatasetCopy:
    """Its index is `simple`, and its data center has a cluster."""
    index_jobs.cluster()
    return given.with_table(copy)


def test_jobs_use_the_former_index_until_the_new_one_is_built(loaded: DatasetCopy) -> None:
    chooses(loaded, "hbase")
    (run,) = waiting(JobKind.REBUILD_INDEX)
    assert (run.asked_by, AuditEntry.objects.filter(action="rebuild_index").count()) == ("ana", 1)
    assert sentence(loaded) == f"simple; hbase waits to be built by run {run.pk}."
    table = table_of(loaded)
    assert (table.index, table.global_index) == ("simple", None)
    assert table_of(loaded, JobKind.BOOTSTRAP).index == "simple"
    assert not allowances.needs_allowance(JobRun(copy=fresh(loaded), kind=JobKind.BACKFILL))
    (spec,) = works()
    assert (spec.kind, spec.table.index) == ("rebuild_index", "hbase")
    assert spec.table.global_index is not None
    assert (table_of(loaded).index, sentence(loaded)) == ("hbase", "hbase.")
    assert allowances.needs_allowance(JobRun(copy=fresh(loaded), kind=JobKind.BACKFILL))
    assert not waiting(JobKind.DROP_INDEX)


def test_a_building_that_fails_leaves_the_former_in_use(loaded: DatasetCopy) -> None:
    """And asked for again, it goes on."""
    chooses(loaded, "hbase")
    for _ in range(20):
        JobRun.objects.update(due_at=NOW)
        works(status=FAILED, error="UnfitStaging: HBase has its files elsewhere")
    (run,) = JobRun.objects.filter(state=JobState.FAILED)
    assert sentence(loaded) == (
        f"simple; hbase could not be built by run {run.pk} (UnfitStaging: HBase has its files elsewhere): "
        "ask for `rebuild_index`, or set the index back."
    )
    assert table_of(loaded).index == "simple"
    call_command("ingest", "rebuild_index", "flights", stdout=StringIO())
    JobRun.objects.filter(state=JobState.QUEUED).update(due_at=NOW)
    works()
    assert sentence(loaded) == "hbase."


def test_a_building_that_is_cancelled_leaves_the_former_in_use(loaded: DatasetCopy) -> None:
    chooses(loaded, "record_index")
    job_runs.cancel_run(waiting(JobKind.REBUILD_INDEX)[0], actor="ana", now=NOW)
    assert sentence(loaded) == (
        "simple; record_index is not being built: ask for `rebuild_index`, or set the index back."
    )
    assert table_of(loaded).index == "simple"


@pytest.mark.parametrize("other", ["simple", "memory"])
def test_what_has_nothing_to_build_stands_at_once_and_the_table_in_hbase_goes_later(
    loaded: DatasetCopy, other: str
) -> None:
    """When each job that was told of it has been stopped at its deadline."""
    chooses(loaded, "hbase")
    works()
    chooses(loaded, other)
    assert table_of(loaded).index == other
    (removal,) = waiting(JobKind.DROP_INDEX)
    assert removal.due_at == NOW + timedelta(hours=1)
    assert sentence(loaded) == f"{other}; the table that hbase had is removed by run {removal.pk}."
    assert table_of(loaded, JobKind.DROP).global_index is not None
    assert works(at=timedelta(minutes=59)) == []
    (spec,) = works(at=timedelta(hours=1))
    assert (spec.kind, spec.table.index) == ("drop_index", other)
    assert spec.table.global_index is not None
    assert spec.table.global_index.table.endswith(f"-{loaded.pk}")
    assert (sentence(loaded), table_of(loaded, JobKind.DROP).global_index) == (f"{other}.", None)


def test_the_table_in_hbase_stays_while_the_other_index_is_built(loaded: DatasetCopy) -> None:
    """Its jobs take their part of the cluster until then."""
    chooses(loaded, "hbase")
    works()
    chooses(loaded, "record_index")
    assert (table_of(loaded).index, waiting(JobKind.DROP_INDEX)) == ("hbase", [])
    assert allowances.needs_allowance(JobRun(copy=fresh(loaded), kind=JobKind.BACKFILL))
    with pytest.raises(Refused, match="use the index `hbase`"):
        job_runs.request_run(fresh(loaded), JobKind.DROP_INDEX, asked_by="ana", now=NOW)
    works()
    assert table_of(loaded).index == "record_index"
    assert len(waiting(JobKind.DROP_INDEX)) == 1


def test_an_index_that_is_set_back_is_not_built(loaded: DatasetCopy) -> None:
    """What its building has left in HBase is removed."""
    chooses(loaded, "hbase")
    chooses(loaded, "simple")
    assert not IndexChange.objects.exists()
    assert JobRun.objects.get(kind=JobKind.REBUILD_INDEX).error == "the index `hbase` is not wanted any more"
    assert (table_of(loaded).index, len(waiting(JobKind.DROP_INDEX))) == ("simple", 1)
    chooses(loaded, "hbase")
    assert JobRun.objects.get(kind=JobKind.DROP_INDEX).state == JobState.CANCELLED
    works()
    assert sentence(loaded) == "hbase."


def test_a_building_that_ends_when_another_index_is_wanted_changes_nothing(loaded: DatasetCopy) -> None:
    chooses(loaded, "hbase")

    def chosen_meanwhile(spec: JobSpec) -> JobReport:
        if spec.table.index == "hbase":
            chooses(loaded, "record_index")
            assert standing_index(fresh(loaded)) == "simple"
        return JobReport(spec.run_id, SUCCEEDED, output={"index": spec.table.index})

    run_worker.run_next(worker_at(NOW, FakeLauncher(chosen_meanwhile)))
    assert (table_of(loaded).index, len(waiting(JobKind.DROP_INDEX))) == ("simple", 1)
    (spec,) = works()
    assert (spec.table.index, table_of(loaded).index) == ("record_index", "record_index")


def test_a_removal_that_was_begun_does_not_take_a_table_that_is_used_again(loaded: DatasetCopy) -> None:
    chooses(loaded, "hbase")
    works()
    with pytest.raises(Refused, match="is used again, or is being built"):
        table_of(loaded, JobKind.DROP_INDEX)


def test_a_rebuild_of_the_index_that_is_used_changes_no_choice(loaded: DatasetCopy) -> None:
    job_runs.request_run(loaded, JobKind.REBUILD_INDEX, asked_by="ana", now=NOW)
    works()
    assert (sentence(loaded), JobRun.objects.count()) == ("simple.", 1)


def test_a_copy_without_a_table_has_the_index_with_its_first_load(copy: DatasetCopy) -> None:
    index_jobs.cluster()
    chooses(copy, "hbase")
    assert (table_of(copy).index, JobRun.objects.count(), IndexChange.objects.count()) == ("hbase", 0, 0)


def test_other_options_build_nothing(loaded: DatasetCopy) -> None:
    chooses(loaded, "simple", overlap_s=60)
    update_dataset(fresh(loaded).dataset, {"tier": 2}, actor="ana", now=NOW)
    assert not JobRun.objects.exists()


def refusals(copy: DatasetCopy, index: str) -> str:
    with pytest.raises(Refused) as refused:
        chooses(copy, index)
    assert [*refused.value.fields] == ["feed_options"]
    assert not JobRun.objects.exists()
    return refused.value.fields["feed_options"]


def test_hbase_needs_a_cluster_that_was_benchmarked(copy: DatasetCopy) -> None:
    given.with_table(copy)
    assert refusals(copy, "hbase") == (
        "The index `hbase` needs an index cluster in each data center, and dc1 has none. Add it with "
        "`manage.py index_clusters add NAME --data-center dc1`, or choose another index."
    )
    index_jobs.cluster(qps=None)
    assert "The index cluster `main` of dc1 was not benchmarked" in refusals(copy, "hbase")
    index_jobs.uses_another_index(copy)
    chooses(copy, "memory")


def test_a_dataset_whose_cluster_is_gone_may_be_changed_otherwise(copy: DatasetCopy) -> None:
    given.with_table(copy)
    copy.dataset.feed.options = {"index": "hbase"}
    copy.dataset.feed.save()
    chooses(copy, "hbase", overlap_s=60)


def signed_in(client: Client, copy: DatasetCopy, role: Role) -> Client:
    person = given.user(f"person-{role.value}")
    given.member(person, copy.dataset.team, role)
    client.force_login(person)
    return client


def test_the_api_changes_it_and_says_how_far_it_is(client: Client, loaded: DatasetCopy) -> None:
    owner = signed_in(client, loaded, Role.OWNER)
    change: dict[str, Any] = {"feed_options": {"index": "hbase"}}
    assert owner.patch(API, json.dumps(change), "application/json").status_code == 200
    (state,) = owner.get(f"{API}/index").json()
    run = waiting(JobKind.REBUILD_INDEX)[0]
    assert (state["kind"], state["wanted"]) == ("simple", "hbase")
    assert state["change"] == f"simple; hbase waits to be built by run {run.pk}."
    viewer = signed_in(Client(), loaded, Role.VIEWER)
    assert viewer.patch(API, json.dumps({"feed_options": {}}), "application/json").status_code == 403
    assert standing_index(fresh(loaded)) == "simple"


def form_of(page: Client) -> dict[str, str]:
    """As a browser would send it, unchanged."""
    html = page.get("/datasets/flights/settings").content.decode()
    fields = dict(re.findall(r'<input[^>]* name="([\w-]+)"[^>]* value="([^"]*)"', html))
    return {**fields, "tier": "1", "description": ""}


def test_the_pages_change_it_and_say_how_far_it_is(client: Client, loaded: DatasetCopy) -> None:
    owner = signed_in(client, loaded, Role.OWNER)
    settings = "/datasets/flights/settings"
    assert "Index: simple" not in owner.get(settings).content.decode()
    assert owner.post(settings, form_of(owner) | {"feed-index": "hbase"}).status_code == 302
    assert [run.kind for run in JobRun.objects.all()] == ["rebuild_index"]
    JobRun.objects.update(state=JobState.RUNNING)
    shown = f"simple; hbase is being built by run {JobRun.objects.get().pk}."
    assert shown in owner.get(settings).content.decode()
    assert shown in owner.get("/datasets/flights/ingestion").content.decode()


def test_the_page_says_why_an_index_is_refused(client: Client, copy: DatasetCopy) -> None:
    given.with_table(copy)
    owner = signed_in(client, copy, Role.OWNER)
    settings = "/datasets/flights/settings"
    answer = owner.post(settings, form_of(owner) | {"feed-index": "hbase"})
    assert (answer.status_code, JobRun.objects.count()) == (422, 0)
    assert "needs an index cluster in each data center, and dc1 has none" in answer.content.decode()
