"""`manage.py index_clusters list`, `add main --data-center dc1 --url-from INDEX_URL`, `set-qps main 6000`, `set-fraction flights 12.5`, `recover main`, `verify main`."""

from __future__ import annotations

import json
import os
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from thriftpy2.thrift import TException

from ingestion.domain.index_cluster.address import read_address
from ingestion.domain.index_cluster.fractions import WHOLE, as_percent
from ingestion.index.benchmark import benchmark
from ingestion.index_shares import clusters, shares
from ingestion.lake.index_findings import index_sentence
from ingestion.models import IndexAllowance, IndexCluster, IndexShare, JobKind
from ingestion.runs.index_use import recovery
from ingestion.runs.index_use.recovery import CopyRecovery
from ingestion.runs.job_runs import find_copy
from lakehub import wiring
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.output.terminal import printable

_ACTOR = "manage.py"
_BY_RULE = "rule"
_POLL_S = 2.0
_pause = time.sleep


class Command(BaseCommand):
    help = "The HBase clusters of the Global Index: lists and adds them, and says how many requests they answer and who may send them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("list").add_argument("--json", action="store_true", help="one JSON object a cluster")
        for action in ("add", "move"):
            named = actions.add_parser(action)
            named.add_argument("name")
            named.add_argument("--url-from", required=True, metavar="VARIABLE", help="its address is read from there")
            if action == "add":
                named.add_argument("--data-center", required=True)
        qps = actions.add_parser("set-qps")
        qps.add_argument("name")
        qps.add_argument("qps", type=int, help="requests a second that one server was measured to answer")
        measured = actions.add_parser("benchmark")
        measured.add_argument("name")
        measured.add_argument("--seconds", type=float, default=20.0)
        measured.add_argument("--processes", type=int, default=2, help="that ask at once from this machine")
        fraction = actions.add_parser("set-fraction")
        fraction.add_argument("dataset")
        fraction.add_argument("percent", help=f"such as 12.5, or `{_BY_RULE}`")
        fraction.add_argument("--data-center", default="", help="may be left out where the dataset has one copy")
        recover = actions.add_parser(
            "recover", help="makes all indexes anew that were not made since it was lost or moved"
        )
        recover.add_argument("--again", action="store_true", help="it has lost them once more: all of them")
        verify = actions.add_parser("verify", help="compares all indexes with their tables")
        verify.add_argument("--sampled", default="", metavar="SHARE", help="of the keys, such as 0.01 or 1%%")
        verify.add_argument("--repairs", action="store_true", help="puts right what is wrong")
        for of_all in (recover, verify):
            of_all.add_argument("name")
            of_all.add_argument("--wait", action="store_true", help="until all have ended; they go on without it")
            of_all.add_argument("--json", action="store_true", help="one JSON object a copy")

    def handle(self, *, action: str, **options: Any) -> None:
        acts: dict[str, Callable[..., None]] = {
            "list": self._list,
            "add": self._add,
            "move": self._move,
            "benchmark": self._benchmark,
            "set-qps": self._set_qps,
            "set-fraction": self._set_fraction,
            "recover": self._recover,
            "verify": self._verify,
        }
        try:
            acts[action](**options)
        except (Refused, NotFound) as problem:
            raise CommandError(printable(str(problem))) from problem

    def _list(self, *, json: bool, **_: Any) -> None:
        known = [*IndexCluster.objects.select_related("data_center")]
        for cluster in known:
            self.stdout.writelines([_as_json(cluster) + "\n"] if json else _as_lines(cluster))
        if not known and not json:
            self.stdout.write("There is no index cluster. Add one with `manage.py index_clusters add`.")

    def _add(self, *, name: str, data_center: str, url_from: str, **_: Any) -> None:
        by: dict[str, Any] = {"actor": _ACTOR, "now": wiring.clock.now(), "by_operator": True}
        cluster = clusters.add_cluster(name=name, data_center=data_center, url=_url(url_from), **by)
        self.stdout.write(f"Index cluster {cluster} of {data_center}. Benchmark it, or set its QPS with set-qps.")

    def _move(self, *, name: str, url_from: str, **_: Any) -> None:
        by: dict[str, Any] = {"actor": _ACTOR, "now": wiring.clock.now(), "by_operator": True}
        cluster = clusters.change_address(clusters.find_cluster(name), _url(url_from), **by)
        self.stdout.writelines(_as_lines(cluster))

    def _set_qps(self, *, name: str, qps: int, **_: Any) -> None:
        cluster = clusters.find_cluster(name)
        clusters.note_benchmark(cluster, qps, actor=_ACTOR, now=wiring.clock.now())
        self.stdout.write(f"Index cluster {cluster}: {qps:,} requests a second and server")

    def _benchmark(self, *, name: str, seconds: float, processes: int, **_: Any) -> None:
        """What nobody else asked for meanwhile: other jobs of the cluster take their part of what the server can do."""
        cluster = clusters.find_cluster(name)
        thrift = read_address(cluster.url).thrift
        if thrift is None:
            raise CommandError(
                f"Index cluster {cluster} has no Thrift server, which the benchmark needs. Measure a region server with HBase's own tool, `hbase pe`, "
                "and store the result with `set-qps`."
            )
        try:
            qps = benchmark(thrift.host, thrift.port, seconds=seconds, processes=processes)
        except (OSError, TException) as problem:
            raise CommandError(printable(f"Index cluster {cluster} was not benchmarked: {problem}")) from problem
        clusters.note_benchmark(cluster, qps, actor=_ACTOR, now=wiring.clock.now())
        self.stdout.write(f"Index cluster {cluster}: {qps:,} requests a second and server")

    def _set_fraction(self, *, dataset: str, percent: str, data_center: str, **_: Any) -> None:
        copy = find_copy(live_dataset(dataset), data_center)
        parts = None if percent == _BY_RULE else _parts(percent)
        share = shares.set_fraction(copy, parts, actor=_ACTOR, now=wiring.clock.now())
        self.stdout.write(f"{copy} has {as_percent(share.fraction)} of {share.cluster}")

    def _recover(self, *, name: str, again: bool, **how: Any) -> None:
        cluster = clusters.find_cluster(name)
        states = recovery.recover(cluster, again=again, actor=_ACTOR, now=wiring.clock.now())
        self._show(states, partial(recovery.recovery_states, cluster), **how)

    def _verify(self, *, name: str, sampled: str, repairs: bool, **how: Any) -> None:
        cluster, now = clusters.find_cluster(name), wiring.clock.now()
        params = {"sampled": _share(sampled)} if sampled else {}
        states = recovery.verify(cluster, params | ({"repairs": True} if repairs else {}), actor=_ACTOR, now=now)
        self._show(states, partial(recovery.verify_states, cluster, now), **how)

    def _show(
        self,
        states: list[CopyRecovery],
        states_now: Callable[[], list[CopyRecovery]],
        *,
        wait: bool,
        json: bool,
        **_: Any,
    ) -> None:
        """A line for each copy; with `wait` once more whenever it has changed. Raises CommandError where something was not done that was waited for, or asked for."""
        shown: dict[int, str] = {}
        problems = {state.copy.pk: state.problem for state in states if not state.is_under_way}
        self._write_changed(states, shown, json=json)
        while wait and any(state.is_under_way for state in states):
            _pause(_POLL_S)
            states = [replace(now, problem=now.problem or problems.get(now.copy.pk, "")) for now in states_now()]
            self._write_changed(states, shown, json=json)
        if not states and not json:
            self.stdout.write("No dataset has its index in this cluster.")
        left = [state for state in states if not state.is_well and not state.is_under_way]
        if left:
            raise CommandError(f"{len(left)} of {len(states)} indexes are left. Call it again for the rest.")

    def _write_changed(self, states: list[CopyRecovery], shown: dict[int, str], *, json: bool) -> None:
        for state in states:
            line = _state_as_json(state) if json else _state_as_line(state)
            if shown.get(state.copy.pk) != line:
                self.stdout.write(line)
            shown[state.copy.pk] = line


def _url(variable: str) -> str:
    url = os.environ.get(variable)
    if not url:
        raise CommandError(f"The environment variable {variable} is not set: put the address of the cluster there.")
    return url


def _share(percent: str) -> float:
    """Of `1%` or `0.01`."""
    try:
        number = Decimal(percent.removesuffix("%")) / (100 if percent.endswith("%") else 1)
        is_share = 0 < number <= 1
    except InvalidOperation:  # also of a comparison with NaN
        is_share = False
    if not is_share:
        raise Refused(
            f"{percent!r} is not a share of the keys: write a percentage above 0% and at most 100%, such as 1%."
        )
    return float(number)


def _parts(percent: str) -> int:
    try:
        number = Decimal(percent.removesuffix("%"))
        is_percentage = 0 <= number <= 100
    except InvalidOperation:  # also of a comparison with NaN
        is_percentage = False
    if not is_percentage:
        raise Refused(
            f"{percent!r} is not a fraction: write a percentage from 0 to 100, such as 12.5, or `{_BY_RULE}`."
        )
    return int(number * WHOLE / 100)


def _as_json(cluster: IndexCluster) -> str:
    facts = {
        "name": cluster.name,
        "data_center": cluster.data_center.name,
        "address": str(read_address(cluster.url)),
        "qps_per_server": cluster.qps_per_server,
        "benchmarked_at": cluster.benchmarked_at and cluster.benchmarked_at.isoformat(),
        "copies": [
            {
                "copy": str(share.copy),
                "rows": share.rows,
                "servers": share.servers,
                "fraction": share.fraction / WHOLE,
                "by_hand": share.fraction_by_hand is not None,
            }
            for share in _shares_of(cluster)
        ],
    }
    return json.dumps(facts)


def _as_lines(cluster: IndexCluster) -> Iterator[str]:
    qps = f"{cluster.qps_per_server:,} requests/s a server" if cluster.qps_per_server else "not benchmarked"
    yield f"{cluster.name}  {cluster.data_center}, {printable(str(read_address(cluster.url)))}, {qps}\n"
    for share in _shares_of(cluster):
        at_work = IndexAllowance.objects.filter(share=share).count()
        yield (
            f"  {share.copy}  {as_percent(share.fraction)}{' by hand' if share.fraction_by_hand else ''}, {share.rows:,} rows, "
            f"{share.servers} server{'' if share.servers == 1 else 's'}, {at_work} job{'' if at_work == 1 else 's'}\n"
        )


def _state_as_json(state: CopyRecovery) -> str:
    run = state.run
    facts = {
        "copy": str(state.copy),
        "tier": state.copy.dataset.tier,
        "state": str(state.state),
        "run": run and run.pk,
        "problem": state.problem,
        "result": run.report.get("output", {}) if run is not None and state.state == recovery.DONE else {},
    }
    return json.dumps(facts)


def _state_as_line(state: CopyRecovery) -> str:
    run = "" if state.run is None else f"run {state.run.pk}"
    result = ""
    if state.run is not None and state.run.kind == JobKind.VERIFY_INDEX and state.state == recovery.DONE:
        result = index_sentence(state.run.report["output"])
    detail = printable(state.problem or result)
    return f"tier {state.copy.dataset.tier}  {state.copy!s:<32} {state.state:<9} {run:<10} {detail}".rstrip()


def _shares_of(cluster: IndexCluster) -> list[IndexShare]:
    known = IndexShare.objects.filter(cluster=cluster).select_related("copy__dataset", "copy__data_center")
    return [*known.order_by("-fraction", "copy__dataset__name")]
