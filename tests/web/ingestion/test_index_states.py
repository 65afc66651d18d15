"""The card *Index* of a dataset's tab Ingestion, and the same in the API, in Prometheus and in the console."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from ingestion.domain.index_cluster.fractions import WHOLE
from ingestion.index_shares.shares import recompute_all
from ingestion.index_shares.use import note_use
from ingestion.lake.index_findings import note_corrected
from ingestion.models import IndexShare, JobKind, JobRun, JobState
from ingestion.runs.index_use.allowances import Allowance, take
from ingestion.runs.source_use.source_limits import Crowded
from ingestion.spark.contract.report import IndexUse
from lakehub.catalog.models import DatasetCopy, DatasetKind
from tests import factories as given
from tests import index_jobs
from tests.factories import NOW

pytestmark = pytest.mark.django_db
PAGE, API = "/datasets/flights/ingestion", "/api/v1/datasets/flights/index"
OF_A_CLUSTER = (
    "cluster",
    "entries",
    "servers",
    "allowed_per_s",
    "requests",
    "used_at",
    "used_requests",
    "used_per_s",
)


@pytest.fixture
def viewer(client: Client) -> Client:
    client.force_login(given.user("guest"))
    return client


def card(page: Client) -> str:
    """Its words."""
    shown = page.get(PAGE).content.decode()
    section = shown[shown.index('aria-labelledby="ix"') :].partition("</section>")[0]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", section)).split())


def state(page: Client) -> dict[str, Any]:
    (only,) = page.get(API).json()
    assert isinstance(only, dict)
    return only


def verified(copy: DatasetCopy, **problems: int) -> JobRun:
    kinds = dict.fromkeys(("doubled", "missing", "misplaced", "without_row"), 0) | problems
    run = given.run(copy, JobKind.VERIFY_INDEX, started_at=NOW, ended_at=NOW)
    output = {"index": "hbase", "rows": 30, "entries": 30, "problems": kinds, "examples": {}}
    JobRun.objects.filter(pk=run.pk).update(report={"output": output})
    return run


def test_another_index_says_its_kind_and_nothing_of_a_cluster(viewer: Client) -> None:
    index_jobs.cluster()
    copy = index_jobs.indexed("flights", index="record_index")
    words, shown_state = card(viewer), state(viewer)
    assert "record_index" in words
    assert words.endswith("Verified never")
    assert not re.search(r"cluster|hbase|requests", words, re.I)
    assert (shown_state["kind"], shown_state["problem"], shown_state["waits_for"]) == ("record_index", "", "")
    assert [shown_state[name] for name in OF_A_CLUSTER] == [None] * len(OF_A_CLUSTER)
    verified(copy, missing=2)
    assert "Wrong" in card(viewer)
    assert "2 keys that the index does not know" in card(viewer)
    assert (state(viewer)["verified_right"], state(viewer)["verified_at"]) == (False, "2026-11-17T19:32:00Z")
    verified(copy, without_row=2)
    assert "Right" in card(viewer)
    assert state(viewer)["verified_right"] is True


def test_without_a_cluster_or_a_benchmark_it_says_what_to_do(viewer: Client) -> None:
    copy = index_jobs.indexed("flights")
    assert "Not usable The index of flights is hbase , and the data center dc1 has no index cluster." in card(viewer)
    assert "`manage.py index_clusters add NAME --data-center dc1`" in state(viewer)["problem"]
    index_jobs.cluster(qps=None)
    recompute_all()
    assert "Measure it with manage.py index_clusters benchmark main" in card(viewer)
    assert IndexShare.objects.filter(copy=copy).exists()


def test_a_copy_in_a_cluster_shows_what_it_may_ask_and_has_asked(viewer: Client) -> None:
    index_jobs.cluster()
    copy = index_jobs.indexed("flights")
    recompute_all()
    words = card(viewer)
    for each in (
        "Cluster main, 1 region server",
        "Entries none: no row was loaded yet",
        "Allowed 6,000 requests/s",
        "Last job none has looked up a key yet",
        "Verified never",
    ):
        assert each in words
    note_use(copy, IndexUse(("rs1:1", "rs2:1"), 5_000, 400, 4.5, entries=1_234_567, even_servers=2), now=NOW)
    words, shown_state = card(viewer), state(viewer)
    for each in (
        "Cluster main, 2 region servers",
        "Entries 1,234,567",
        "Allowed 12,000 requests/s",
        "Last job 1,200 requests/s 5,400 in all, ",
    ):
        assert each in words
    assert [shown_state[name] for name in OF_A_CLUSTER if name != "used_at"] == [
        "main",
        1_234_567,
        2,
        12_000,
        5_400,
        5_400,
        1_200,
    ]
    note_use(copy, IndexUse(reads=30, seconds=0.01), now=NOW)
    assert state(viewer)["used_per_s"] == 30, "no more than a second may have"


def test_what_a_job_waits_for_is_shown_until_it_waits_no_more(viewer: Client) -> None:
    index_jobs.cluster()
    copy = index_jobs.indexed("flights")
    held = take(index_jobs.job(copy), "host:1:a")
    assert isinstance(held, Allowance)
    run = index_jobs.job(copy, state=JobState.QUEUED)
    crowded = take(run, "host:2:b")
    assert isinstance(crowded, Crowded)
    JobRun.objects.filter(pk=run.pk).update(error=crowded.why)
    assert "Waits Waits for the index cluster main : its part is 50%" in card(viewer)
    assert state(viewer)["waits_for"] == crowded.why
    assert "lakehub_index_jobs_waiting 1.0" in viewer.get("/metrics").content.decode()
    away = "waits for the index cluster: HBase does not answer through its Thrift server thrift:9090: <b>refused</b>"
    JobRun.objects.filter(pk=run.pk).update(error=away)
    assert (
        "Waits Waits for the index cluster: HBase does not answer through its Thrift server thrift:9090: <b>ref"
        in card(viewer)
    )
    JobRun.objects.filter(pk=run.pk).update(state=JobState.FAILED)
    assert state(viewer)["waits_for"] == ""


@pytest.mark.parametrize(
    ("index", "says"),
    [
        ("hbase", "Rebuilding builds it again from the rows, while other jobs on the copy go on."),
        ("record_index", "Rebuilding builds it again from the rows; other jobs on the copy wait meanwhile."),
        ("memory", "Rebuilding reads the keys of all rows again, while other jobs on the copy go on."),
        ("simple", "Nothing is kept beside the rows, so rebuilding changes nothing."),
    ],
)
def test_what_rebuilding_does_to_other_jobs_is_said_for_each_kind(admin_client: Client, index: str, says: str) -> None:
    index_jobs.cluster()
    index_jobs.indexed("flights", index=index)
    words = card(admin_client)
    assert f"and changes nothing. {says} Copy" in words


def test_entries_are_not_known_before_there_is_a_share(viewer: Client) -> None:
    index_jobs.cluster()
    index_jobs.indexed("flights")
    assert "Entries not known before the first job Allowed" in card(viewer)
    assert state(viewer)["entries"] is None


def test_a_dataset_whose_rows_never_change_asks_seldom(viewer: Client) -> None:
    index_jobs.cluster()
    index_jobs.indexed("flights", kind=DatasetKind.APPEND_ONLY)
    recompute_all()
    assert "Rows of this dataset are never changed: only those that come late are looked up. Cluster main" in card(
        viewer
    )
    assert state(viewer)["problem"] == ""


def test_what_lakehub_does_not_load_has_no_index(viewer: Client) -> None:
    given.copy_of(given.dataset("flights"))
    assert 'aria-labelledby="ix"' not in viewer.get(PAGE).content.decode()
    assert viewer.get(API).json() == []


def test_neither_more_copies_nor_runs_cost_queries_and_no_password_is_shown(viewer: Client) -> None:
    index_jobs.cluster()
    copy = index_jobs.indexed("flights")

    def queries() -> int:
        recompute_all()
        with CaptureQueriesContext(connection) as asked:
            assert viewer.get(API).status_code == 200
        return len(asked)

    verified(copy)
    before = queries()
    for number in (2, 3):
        index_jobs.cluster(f"other-{number}", f"dc{number}")
        more = given.copy(copy.dataset, f"dc{number}")
        verified(more)
        verified(more)
    assert queries() == before
    everything = viewer.get(PAGE).content + viewer.get(API).content + viewer.get("/metrics").content
    assert b"hush" not in everything
    assert b"loader" not in everything


def test_prometheus_and_the_console_have_it(client: Client, admin_client: Client) -> None:
    index_jobs.cluster()
    copies = [index_jobs.indexed("flights"), index_jobs.indexed("planes")]
    recompute_all()
    IndexShare.objects.filter(copy=copies[0]).update(
        fraction=WHOLE // 4,
        fraction_by_hand=WHOLE // 8,
        requests=77,
        rows=9,
        used_requests=50,
        used_seconds=2,
        used_at=timezone.now() - timedelta(1),
    )
    shown = client.get("/metrics").content.decode()
    number = copies[0].pk
    assert f'lakehub_index_allowed_per_second{{copy="{number}"}} 1500.0' in shown
    assert f'lakehub_index_requests_total{{copy="{number}"}} 77.0' in shown
    assert f'lakehub_index_entries{{copy="{number}"}} 9.0' in shown
    assert "flights" not in shown
    assert f'lakehub_index_wrong{{copy="{number}"}} 0.0' in shown
    assert "lakehub_index_verified_timestamp_seconds{" not in shown
    console = admin_client.get("/console/ingestion/indexshare/").content.decode()
    assert ">1500<" in console
    assert ">25<" in console
    assert ">25%<" in console
    assert ">12.5%<" in console
    run = index_jobs.job(copies[0], JobKind.VERIFY_INDEX, JobState.SUCCEEDED)
    JobRun.objects.filter(pk=run.pk).update(ended_at=NOW)
    note_corrected(copies[0], 2, "20261116090000000", now=NOW)
    run = index_jobs.job(copies[1], state=JobState.QUEUED)
    JobRun.objects.filter(pk=run.pk).update(error="waits for the index cluster: <b>refused</b>")
    shown = client.get("/metrics").content.decode()
    assert f'lakehub_index_wrong{{copy="{number}"}} 1.0' in shown
    verified = re.search(rf'lakehub_index_verified_timestamp_seconds{{copy="{number}"}} (\S+)', shown)
    assert verified is not None
    assert float(verified[1]) == NOW.timestamp()
    console = admin_client.get("/console/ingestion/indexshare/").content.decode()
    assert console.count('alt="False"') == 1
    assert "waits for the index cluster: &lt;b&gt;refused" in console
