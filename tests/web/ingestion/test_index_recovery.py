"""A cluster that was lost or moved: its indexes are made anew in the order of the tiers, and what is done is not done again; all are verified by one command."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ingestion.index_shares.clusters import change_address
from ingestion.management.commands import index_clusters
from ingestion.models import IndexCluster, JobKind, JobRun, JobState
from ingestion.runs import run_worker
from ingestion.runs.copy_lag import has_table, with_table
from ingestion.runs.index_use import recovery
from ingestion.runs.job_runs import MAX_WAITING_REQUESTS, request_run
from ingestion.spark.contract.report import FAILED, INDEX_AWAY, SUCCEEDED, IndexUse, JobReport
from ingestion.spark.contract.spec import JobSpec
from lakehub import wiring
from lakehub.accounts.models import AuditEntry
from lakehub.catalog.models import DatasetCopy, Feed
from tests import factories as given
from tests.factories import NOW
from tests.index_jobs import ADDRESS, cluster, indexed, uses_another_index
from tests.web.ingestion.conftest import FakeLauncher, worker_at

pytestmark = pytest.mark.django_db
SOON = NOW + timedelta(minutes=1)
AWAY = "HBase does not answer through its Thrift server thrift:9090"
UNFIT = "UnfitStaging: HBase does not take files from there"


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, NOW)


def at(monkeypatch: pytest.MonkeyPatch, now: datetime) -> None:
    monkeypatch.setattr(wiring.clock, "now", lambda: now)


@pytest.fixture
def copies() -> list[DatasetCopy]:
    """In the order of their tiers, which is not that of their names. One more has another index."""
    cluster()
    tiers = {"zebras": 0, "flights": 1, "planes": 1, "airports": 4}
    made = [given.with_table(indexed(name, tier=tier)) for name, tier in tiers.items()]
    uses_another_index(given.with_table(indexed("others", tier=0)))
    return made


def command(*words: str) -> list[str]:
    out = StringIO()
    try:
        call_command("index_clusters", *words, stdout=out)
    except CommandError as problem:
        out.write(f"{problem}\n")
    return out.getvalue().splitlines()


def rows(*words: str) -> dict[str, dict[str, Any]]:
    """By dataset."""
    lines = [json.loads(line) for line in command(*words, "--json") if line.startswith("{")]
    return {line["copy"].partition("@")[0]: line for line in lines}


def states(*words: str) -> dict[str, str]:
    return {name: row["state"] for name, row in rows(*words).items()}


def built(spec: JobSpec) -> JobReport:
    return JobReport(spec.run_id, SUCCEEDED, output={"index": spec.table.index})


def away(spec: JobSpec) -> JobReport:
    return JobReport(spec.run_id, INDEX_AWAY, error=AWAY)


def unfit(spec: JobSpec) -> JobReport:
    return JobReport(spec.run_id, FAILED, error=UNFIT)


def work(launcher: FakeLauncher, times: int = 1, now: datetime = SOON) -> None:
    for _ in range(times):
        assert run_worker.run_next(worker_at(now, launcher)) is not None


def test_all_indexes_are_made_anew_by_tier_and_a_call_in_between_goes_on_with_the_rest(
    copies: list[DatasetCopy], monkeypatch: pytest.MonkeyPatch
) -> None:
    queued = dict.fromkeys(("zebras", "flights", "planes", "airports"), "queued")
    assert states("recover", "main") == queued
    launcher = FakeLauncher(built)
    work(launcher, 2)
    assert [spec.table.name for spec, _ in launcher.asked] == ["zebras", "flights"]
    at(monkeypatch, SOON)
    assert states("recover", "main") == queued | {"zebras": "done", "flights": "done"}
    assert JobRun.objects.count() == 4
    work(launcher, 2)
    assert [spec.table.name for spec, _ in launcher.asked[2:]] == ["planes", "airports"]
    assert {*states("recover", "main").values()} == {"done"}
    assert run_worker.run_next(worker_at(SOON, launcher)) is None
    assert AuditEntry.objects.filter(action="recover index cluster", subject="index_cluster:main").count() == 3
    assert AuditEntry.objects.filter(action="rebuild_index", actor="manage.py").count() == 4


def test_while_hbase_is_away_runs_wait_with_its_words_and_are_not_asked_for_again(copies: list[DatasetCopy]) -> None:
    command("recover", "main")
    work(FakeLauncher(away), 4)
    assert run_worker.run_next(worker_at(SOON, FakeLauncher(away))) is None
    by_name = rows("recover", "main")
    assert {row["state"] for row in by_name.values()} == {"queued"}
    assert {row["problem"] for row in by_name.values()} == {f"waits for the index cluster: {AWAY}"}
    launcher = FakeLauncher(built)
    work(launcher, 4, now=SOON + timedelta(minutes=1))
    assert [spec.table.name for spec, _ in launcher.asked] == ["zebras", "flights", "planes", "airports"]
    assert ({*states("recover", "main").values()}, JobRun.objects.count()) == ({"done"}, 4)


def test_what_has_failed_says_why_and_the_next_call_asks_for_these_only(
    copies: list[DatasetCopy], monkeypatch: pytest.MonkeyPatch
) -> None:
    command("recover", "main")
    work(FakeLauncher(built), 1)
    JobRun.objects.filter(state=JobState.QUEUED).update(attempt=9)  # the last one
    work(FakeLauncher(unfit), 3)
    assert JobRun.objects.filter(state=JobState.FAILED).count() == 3
    assert [line for line in command("recover", "main") if "failed" in line] == []  # they were asked for again
    work(FakeLauncher(built), 1)
    JobRun.objects.filter(state=JobState.QUEUED).update(attempt=9)
    monkeypatch.setattr(index_clusters, "_pause", lambda _: work(FakeLauncher(unfit)))
    lines = command("recover", "main", "--wait")
    assert lines[-1] == "2 of 4 indexes are left. Call it again for the rest."
    (planes,) = [line for line in lines if "planes@dc1" in line and "failed" in line]
    assert UNFIT in planes
    assert planes.startswith("tier 1  planes@dc1")
    monkeypatch.setattr(index_clusters, "_pause", lambda _: work(FakeLauncher(built)))
    assert {line.split()[3] for line in command("recover", "main", "--wait")[-2:]} == {"done"}


def test_a_move_makes_all_due_and_what_began_before_it_does_not_count(
    copies: list[DatasetCopy], monkeypatch: pytest.MonkeyPatch
) -> None:
    command("recover", "main")
    work(FakeLauncher(built), 4)
    at(monkeypatch, SOON)
    command("recover", "main")
    claimed = request_run(copies[0], JobKind.REBUILD_INDEX, asked_by="ana", now=SOON)
    JobRun.objects.filter(pk=claimed.pk).update(state=JobState.RUNNING, started_at=SOON)
    moved_at = SOON + timedelta(minutes=1)
    change_address(IndexCluster.objects.get(), ADDRESS.replace("zk2", "zk3"), actor="ana", now=moved_at)
    at(monkeypatch, moved_at)
    assert states("recover", "main")["zebras"] == "running"
    JobRun.objects.filter(pk=claimed.pk).update(state=JobState.SUCCEEDED, report={"output": {"index": "hbase"}})
    assert {*states("recover", "main").values()} == {"queued"}
    launcher = FakeLauncher(built)
    work(launcher, 4, now=moved_at + timedelta(minutes=1))
    assert launcher.asked[0][0].table.global_index is not None
    assert launcher.asked[0][0].table.global_index.quorum == "zk1:2181,zk3:2181"
    assert {*states("recover", "main").values()} == {"done"}


def test_another_thrift_server_makes_nothing_due_and_again_makes_all(
    copies: list[DatasetCopy], monkeypatch: pytest.MonkeyPatch
) -> None:
    command("recover", "main")
    work(FakeLauncher(built), 4)
    at(monkeypatch, SOON + timedelta(minutes=1))
    later = SOON + timedelta(minutes=1)
    change_address(IndexCluster.objects.get(), ADDRESS.replace("thrift", "thrift-2"), actor="ana", now=later)
    assert {*states("recover", "main").values()} == {"done"}
    assert {*states("recover", "main", "--again").values()} == {"queued"}


def test_an_index_that_another_job_has_made_since_is_not_made_once_more(
    copies: list[DatasetCopy], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that was made before, or that a job has only asked, is."""
    uses = {"zebras": IndexUse(reads=5, entries=0), "flights": IndexUse(reads=5), "planes": None}
    for copy in copies[:3]:
        request_run(copy, JobKind.INCREMENTAL, asked_by="ana", now=NOW)
    work(FakeLauncher(lambda spec: JobReport(spec.run_id, SUCCEEDED, index_use=uses[spec.table.name])), 3, now=SOON)
    before = given.run(copies[3], started_at=NOW - timedelta(days=1))
    JobRun.objects.filter(pk=before.pk).update(report={"index_use": {"entries": 30}})
    queued = dict.fromkeys(("flights", "planes", "airports"), "queued")
    assert states("recover", "main") == queued | {"zebras": "done"}
    assert JobRun.objects.filter(kind=JobKind.REBUILD_INDEX).count() == 3
    at(monkeypatch, SOON + timedelta(minutes=1))
    assert states("recover", "main", "--again")["zebras"] == "queued"


def test_which_copies_have_a_table_is_asked_for_all_at_once() -> None:
    """By what came after the last drop: a load, or a commit of whomever that is no part of a load."""
    names = ("nothing", "loaded", "dropped", "loaded again", "written", "dropped since", "written again", "in parts")
    copies = {name: given.copy_of(given.dataset(name.replace(" ", "_"))) for name in names}
    hour = timedelta(hours=1)

    def has(name: str, *kinds: JobKind) -> None:
        for number, kind in enumerate(kinds):
            given.run(copies[name], kind, started_at=NOW - (9 - number) * hour)

    has("loaded", JobKind.BOOTSTRAP, JobKind.INCREMENTAL)
    has("dropped", JobKind.BOOTSTRAP, JobKind.DROP)
    has("loaded again", JobKind.BOOTSTRAP, JobKind.DROP, JobKind.BOOTSTRAP)
    has("dropped since", JobKind.DROP)
    has("written again", JobKind.DROP)
    for name, ago in {"written": 9, "dropped since": 10, "written again": 8, "in parts": 1}.items():
        given.commit(copies[name], NOW - ago * hour, is_part_of_load=name == "in parts")
    keys = {copy.pk: name for name, copy in copies.items()}
    expected = {"loaded", "loaded again", "written", "written again"}
    assert {keys[key] for key in with_table([*keys])} == expected
    assert {name for name, copy in copies.items() if has_table(copy)} == expected


def test_more_copies_cost_no_more_queries(copies: list[DatasetCopy]) -> None:
    made = IndexCluster.objects.get()
    recovery.recover(made, again=False, actor="ana", now=NOW)

    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert {state.state for state in recovery.recovery_states(made)} == {"queued"}
        return len(asked)

    of_four = queries()
    Feed.objects.filter(dataset__name__in=("zebras", "planes", "airports")).update(options={"index": "simple"})
    assert len(recovery.recovery_states(made)) == 1
    assert queries() == of_four


def test_a_run_that_made_another_index_does_not_count(copies: list[DatasetCopy]) -> None:
    command("recover", "main")
    work(FakeLauncher(lambda spec: JobReport(spec.run_id, SUCCEEDED, output={"index": "simple"})), 1)
    assert states("recover", "main")["zebras"] == "queued"
    assert JobRun.objects.filter(copy=copies[0]).count() == 2


def test_what_cannot_be_asked_for_is_said_and_the_others_are(copies: list[DatasetCopy]) -> None:
    indexed("fresh", tier=0)
    for _ in range(MAX_WAITING_REQUESTS):
        request_run(copies[0], JobKind.DELETE, {"share": 1}, asked_by="ana", now=NOW)
    by_name = rows("recover", "main")
    assert (by_name["fresh"]["state"], by_name["zebras"]["state"]) == ("no table", "not asked")
    assert "that people asked for wait already" in by_name["zebras"]["problem"]
    assert {by_name[name]["state"] for name in ("flights", "planes", "airports")} == {"queued"}
    assert command("recover", "main")[-1] == "1 of 5 indexes are left. Call it again for the rest."


def test_all_are_verified_in_a_sample_and_put_right(copies: list[DatasetCopy], monkeypatch: pytest.MonkeyPatch) -> None:
    assert {*states("verify", "main", "--sampled", "1%", "--repairs").values()} == {"queued"}
    assert {json.dumps(run.params) for run in JobRun.objects.all()} == {'{"sampled": 0.01, "repairs": true}'}
    right = {"index": "hbase", "rows": 9, "entries": 9, "problems": {"missing": 0}, "examples": {}, "repaired": {}}

    def verified(spec: JobSpec) -> JobReport:
        wrong = {"problems": {"missing": 2}} if spec.table.name == "planes" else {}
        return JobReport(spec.run_id, SUCCEEDED, output=right | wrong)

    monkeypatch.setattr(index_clusters, "_pause", lambda _: work(FakeLauncher(verified)))
    lines = command("verify", "main", "--wait")
    assert JobRun.objects.count() == 4  # those that waited are waited for
    ended = [line for line in lines if " done " in line]
    assert [line.split()[2] for line in ended] == ["zebras@dc1", "flights@dc1", "planes@dc1", "airports@dc1"]
    assert ended[0].endswith("The index hbase was compared with 9 rows, and is right.")
    assert "2 keys that the index does not know" in ended[2]


@pytest.mark.parametrize("words", ["0", "0%", "101%", "2", "nan", "lots", "1e999999%"])
def test_a_share_that_is_none_is_refused(copies: list[DatasetCopy], words: str) -> None:
    (line,) = command("verify", "main", "--sampled", words)
    assert line.startswith(f"{words!r} is not a share of the keys: write a percentage above 0%")
    assert not JobRun.objects.exists()


def test_a_cluster_without_datasets_and_one_that_is_none() -> None:
    cluster()
    assert command("recover", "main") == ["No dataset has its index in this cluster."]
    assert command("verify", "mian") == ["There is no index cluster `mian`. Did you mean `main`?"]
