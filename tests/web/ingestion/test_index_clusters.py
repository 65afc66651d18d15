"""Index clusters are added by the operator, with an address that nobody gets to see."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from ingestion.domain.index_cluster.fractions import WHOLE
from ingestion.index_shares.clusters import add_cluster, change_address, note_benchmark
from ingestion.index_shares.shares import recompute_all
from ingestion.models import IndexCluster, IndexShare, JobKind
from ingestion.runs.job_specs import job_spec_of
from lakehub.accounts.models import AuditEntry
from lakehub.kernel.errors import Refused
from tests import factories as given
from tests.factories import NOW
from tests.index_jobs import ADDRESS, cluster, indexed, job

pytestmark = pytest.mark.django_db
SHOWN = "hbase://thrift:9090?quorum=zk1:2181,zk2:2181&staging=hdfs://nn/hfiles"


def command(*words: str) -> str:
    out = StringIO()
    call_command("index_clusters", *words, stdout=out)
    return out.getvalue()


def refused(url: str, *, by_operator: bool = False) -> dict[str, str]:
    given.data_center()
    with pytest.raises(Refused) as problem:
        add_cluster(name="main", data_center="dc1", url=url, actor="ana", now=NOW, by_operator=by_operator)
    assert "hush" not in str(problem.value)
    return problem.value.fields


def test_the_operator_adds_a_cluster_and_sees_who_has_which_part(monkeypatch: pytest.MonkeyPatch) -> None:
    indexed("flights")
    monkeypatch.setenv("INDEX_URL", ADDRESS)
    assert command("list") == "There is no index cluster. Add one with `manage.py index_clusters add`.\n"
    added = command("add", "main", "--data-center", "dc1", "--url-from", "INDEX_URL")
    assert added == "Index cluster main of dc1. Benchmark it, or set its QPS with set-qps.\n"
    assert command("set-qps", "main", "6000") == "Index cluster main: 6,000 requests a second and server\n"
    assert command("set-fraction", "flights", "12.5") == "flights@dc1 has 12.5% of main\n"
    assert command("list") == (
        f"main  dc1, {SHOWN}, 6,000 requests/s a server\n  flights@dc1  12.5% by hand, 0 rows, 1 server, 0 jobs\n"
    )
    assert command("set-fraction", "flights", "rule") == "flights@dc1 has 100% of main\n"
    listed = json.loads(command("list", "--json"))
    assert (listed["address"], listed["qps_per_server"]) == (SHOWN, 6_000)
    assert listed["copies"] == [{"copy": "flights@dc1", "rows": 0, "servers": 1, "fraction": 1.0, "by_hand": False}]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            ("add", "other", "--data-center", "dc1", "--url-from", "INDEX_URL"),
            "dc1 has the index cluster `main` already",
        ),
        (("add", "other", "--data-center", "dc7", "--url-from", "INDEX_URL"), "There is no data center `dc7`"),
        (("add", "other", "--data-center", "dc1", "--url-from", "NOWHERE"), "variable NOWHERE is not set"),
        (("set-qps", "mian", "6000"), "no index cluster `mian`. Did you mean `main`"),
        (("set-qps", "main", "0"), "`qps_per_server` is 0: give a number from 1"),
        (
            ("set-fraction", "flights", "lots"),
            "'lots' is not a fraction: write a percentage from 0 to 100, such as 12.5, or `rule`",
        ),
        (("set-fraction", "flights", "nan"), "'nan' is not a fraction"),
        (("set-fraction", "flights", "1e999999"), "'1e999999' is not a fraction"),
        (("set-fraction", "flights", "-5"), "'-5' is not a fraction"),
        (("set-fraction", "flights", "90"), "90% for `flights@dc1` is more than the 80% that is left of `main`"),
        (("set-fraction", "planes", "10"), "planes"),
    ],
)
def test_what_cannot_be_is_said(words: tuple[str, ...], why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    indexed("flights")
    cluster()
    monkeypatch.setenv("INDEX_URL", ADDRESS)
    with pytest.raises(CommandError, match=why):
        command(*words)


def test_a_cluster_elsewhere_is_to_be_benchmarked_and_where_files_are_staged_elsewhere_it_is_not() -> None:
    made = cluster(qps=6_000)
    change_address(made, ADDRESS.replace("/hfiles", "/entries"), actor="ana", now=NOW)
    assert IndexCluster.objects.get().qps_per_server == 6_000
    change_address(made, ADDRESS.replace("thrift", "thrift-2"), actor="ana", now=NOW)
    change_address(made, ADDRESS.replace("zk1:2181,zk2:2181", "zk2,zk1"), actor="ana", now=NOW)
    assert (made.qps_per_server, made.indexes_lost_at) == (6_000, None), "the same HBase"
    for address in (ADDRESS.replace("zk2", "zk3"), ADDRESS + "&znode=/hbase-2"):
        change_address(made, ADDRESS, actor="ana", now=NOW)
        note_benchmark(made, 6_000, actor="ana", now=NOW)
        IndexCluster.objects.update(indexes_lost_at=None)
        change_address(made, address, actor="ana", now=NOW)
        stored = IndexCluster.objects.get()
        assert (stored.qps_per_server, stored.benchmarked_at, stored.indexes_lost_at) == (None, None, NOW)
        assert stored.url == address
    entry = AuditEntry.objects.filter(action="change index cluster").latest("pk")
    assert (entry.detail["was"], entry.detail["becomes"]) == (SHOWN, SHOWN + "&znode=/hbase-2")


def test_its_address_is_encrypted_and_what_is_done_to_it_is_in_the_audit_log() -> None:
    made = cluster()
    note_benchmark(made, 7_000, actor="ana", now=NOW)
    change_address(made, ADDRESS.replace("thrift", "other"), actor="ana", now=NOW)
    with connection.cursor() as cursor:
        cursor.execute("select url from ingestion_indexcluster")
        assert "thrift" not in str(cursor.fetchone())
    entries = [*AuditEntry.objects.filter(subject="index_cluster:main").order_by("pk")]
    assert [entry.action for entry in entries] == [
        "add index cluster",
        "benchmark index cluster",
        "benchmark index cluster",
        "change index cluster",
    ]
    indexed("flights")
    recompute_all()
    shown = given.staff("view_indexcluster", "view_indexshare", "view_indexallowance")
    for page in ("indexcluster/", f"indexcluster/{made.pk}/change/", "indexshare/", "indexallowance/"):
        answer = shown.get(f"/console/ingestion/{page}", follow=True)
        assert answer.status_code == 200, page


def test_an_address_that_is_unusable_is_refused() -> None:
    assert "lacks quorum and staging" in refused("hbase://thrift")["url"]
    assert "asks for none" in refused(ADDRESS.replace("thrift", "loader:hush@thrift"))["url"]


def test_hosts_are_those_that_connections_may_be_at(settings: object) -> None:
    settings.LAKEHUB_SOURCE_HOSTS = ["thrift", "*.zk.example.org", "10.0.0.0/8"]  # type: ignore[attr-defined]
    hosts = "hbase://thrift:9090?quorum=a.zk.example.org,127.0.0.1&staging=hdfs://metadata.internal/f"
    why = refused(hosts)["url"]
    assert "127.0.0.1 is not a host" in why
    assert "metadata.internal is not a host" in why
    assert "LAKEHUB_SOURCE_HOSTS" in why
    assert "thrift is not" not in why
    assert "a.zk.example.org is not" not in why
    add_cluster(name="main", data_center="dc1", url=hosts, actor="manage.py", now=NOW, by_operator=True)


def test_files_are_not_staged_where_the_lake_is(tmp_path: Path, settings: object) -> None:
    given.data_center("dc1", (tmp_path / "lake").as_uri())
    staging = f"hbase://h?quorum=z&staging=file://{tmp_path}"
    for url in (f"{staging}/lake/hfiles", staging, f"{staging}/lake/x/../y"):
        assert "holds Lakehub's own data" in refused(url, by_operator=True)["url"]
    assert "not below a folder that may be read" in refused(f"{staging}/staging")["url"]
    add_cluster(name="main", data_center="dc1", url=f"{staging}/staging", actor="manage.py", now=NOW, by_operator=True)


def test_a_cluster_takes_in_the_datasets_that_were_there_before_it() -> None:
    flights = indexed("flights")
    cluster()
    assert IndexShare.objects.get(copy=flights).fraction == WHOLE


def test_a_cluster_without_a_thrift_server_is_known_by_its_zookeeper_and_measured_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flights = indexed("flights")
    monkeypatch.setenv("INDEX_URL", "hbase://?quorum=zk1,zk2&staging=hdfs://nn/hfiles")
    command("add", "main", "--data-center", "dc1", "--url-from", "INDEX_URL")
    with pytest.raises(CommandError, match="has no Thrift server, which the benchmark needs"):
        command("benchmark", "main")
    command("set-qps", "main", "6000")
    assert "hbase://?quorum=zk1:2181,zk2:2181&staging=hdfs://nn/hfiles, 6,000 requests/s" in command("list")
    spec, _ = job_spec_of(job(flights, JobKind.VERIFY_INDEX), staging="file:///staging", ahead=timedelta(0), now=NOW)
    index = spec.table.global_index
    assert index is not None
    assert (index.thrift, index.quorum) == ("", "zk1:2181,zk2:2181")
