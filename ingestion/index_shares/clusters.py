"""Index clusters: which there are, where, and what a server of each can answer."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.db import transaction

from ingestion.domain.index_cluster.address import ClusterAddress, UnusableAddress, read_address
from ingestion.index_shares.shares import recompute
from ingestion.models import IndexCluster
from lakehub.accounts.audit import audit_log
from lakehub.catalog.connection_guard import refuse_guarded_location
from lakehub.catalog.models import DataCenter
from lakehub.catalog.storages import LocalPath
from lakehub.catalog.validation import Problems, find_by_name, save_validated
from lakehub.kernel.addresses import is_listed_host
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.suggest import did_you_mean

MAX_QPS_PER_SERVER = 10_000_000


def add_cluster(
    *, name: str, data_center: str, url: str, actor: str, now: datetime, by_operator: bool = False
) -> IndexCluster:
    """Keeps the address encrypted; nothing is connected to. Raises Refused by field, which never holds what may be a password.

    `by_operator`: said by somebody who works on this machine anyway, who may name any host.
    """
    problems = Problems()
    center = find_by_name(problems, "data_center", DataCenter, data_center)
    address = _checked_address(problems, url, by_operator=by_operator)
    other = IndexCluster.objects.filter(data_center=center).first() if center is not None else None
    if other is not None:
        problems.add(
            "data_center",
            f"The data center {data_center} has the index cluster `{other}` already, and has one at most. Change the address of that one.",
        )
    problems.raise_if_any()
    assert center is not None  # a missing one is a problem
    assert address is not None
    cluster = IndexCluster(name=name, data_center=center, url=url)
    with transaction.atomic():
        save_validated(cluster)
        audit_log.record(
            actor, "add index cluster", f"index_cluster:{name}", now=now, data_center=data_center, place=str(address)
        )
        recompute(cluster)
    return cluster


def change_address(
    cluster: IndexCluster, url: str, *, actor: str, now: datetime, by_operator: bool = False
) -> IndexCluster:
    """Where it is another HBase, what a server answers there is not known until it is benchmarked, and indexes are to be made there. Raises Refused."""
    problems = Problems()
    address = _checked_address(problems, url, by_operator=by_operator)
    problems.raise_if_any()
    assert address is not None
    was = read_address(cluster.url)
    with transaction.atomic():
        cluster.url = url
        if not address.is_same_hbase(was):
            cluster.qps_per_server = cluster.benchmarked_at = None
            cluster.indexes_lost_at = now
        cluster.save(update_fields=["url", "qps_per_server", "benchmarked_at", "indexes_lost_at"])
        places = {"was": str(was), "becomes": str(address)}
        audit_log.record(actor, "change index cluster", f"index_cluster:{cluster.name}", now=now, **places)
    return cluster


def note_benchmark(cluster: IndexCluster, qps_per_server: int, *, actor: str, now: datetime) -> None:
    """One region server was measured to answer so many requests a second. Jobs at work follow it with their next renewal. Raises Refused."""
    if not 1 <= qps_per_server <= MAX_QPS_PER_SERVER:
        raise Refused.for_fields(
            {
                "qps_per_server": f"`qps_per_server` is {qps_per_server}: give a number from 1 to {MAX_QPS_PER_SERVER:,}, as one server was measured."
            }
        )
    was = cluster.qps_per_server
    with transaction.atomic():
        IndexCluster.objects.filter(pk=cluster.pk).update(qps_per_server=qps_per_server, benchmarked_at=now)
        numbers = {"was": was, "becomes": qps_per_server}
        audit_log.record(actor, "benchmark index cluster", f"index_cluster:{cluster.name}", now=now, **numbers)
    cluster.qps_per_server, cluster.benchmarked_at = qps_per_server, now


def find_cluster(name: str) -> IndexCluster:
    """Raises NotFound."""
    cluster = IndexCluster.objects.filter(name=name).first()
    if cluster is None:
        names = list(IndexCluster.objects.values_list("name", flat=True)[:1000])
        raise NotFound(f"There is no index cluster `{name}`.{did_you_mean(name, names)}")
    return cluster


def _checked_address(problems: Problems, url: str, *, by_operator: bool) -> ClusterAddress | None:
    try:
        address = read_address(url)
    except UnusableAddress as unusable:
        problems.add("url", str(unusable))
        return None
    if not by_operator:
        _refuse_unlisted(problems, address.hosts)
    _check_staging(problems, address.staging, by_operator=by_operator)
    return address


def _refuse_unlisted(problems: Problems, hosts: Iterable[str]) -> None:
    """By the list of the hosts that connections may be at."""
    listed = settings.LAKEHUB_SOURCE_HOSTS
    for host in hosts:
        if listed and not is_listed_host(host, listed):
            problems.add(
                "url",
                f"{host} is not a host that may be connected to. The operator names such hosts in LAKEHUB_SOURCE_HOSTS, or adds the cluster "
                "with `manage.py index_clusters add`.",
            )


def _check_staging(problems: Problems, staging: str, *, by_operator: bool) -> None:
    """On this machine it is written to, and must not be where Lakehub's own data lies."""
    parts = urlsplit(staging)
    if parts.scheme != "file":
        return
    lakes = list(DataCenter.objects.values_list("lake_uri", flat=True))
    try:
        refuse_guarded_location(LocalPath(Path(unquote(parts.path))), by_operator=by_operator, lake_uris=lakes)
    except Refused as refused:
        problems.add("url", f"`staging`: {refused}")
