"""What jobs may ask of the Global Index and what they ask: over one, two and three region servers, and three jobs at once.

The jobs are processes with Spark sessions of their own that look keys up in a real HBase, by the allowances that they take from the
database. What was asked is what the region servers counted, each of which answers no more than HBase's own quota lets it: a job that is told of twice the
servers asks for more than they answer, and must not get it. `--draw FILE` draws both figures as SVG.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from multiprocessing.connection import Connection, wait
from pathlib import Path

from bench.harness import Report, run
from bench.indexing.server import HBase, hbase
from bench.pacing.counters import FRESH_AFTER_S, Counts, read_counts
from bench.pacing.drawing import Drawn, draw
from bench.pacing.job import Done, Work, run_job
from bench.pacing.limit import SETTINGS
from bench.schedule import instance

QPS = 2_000
"""Of a server, as it was measured, and as its quota in HBase limits it: so few that neither the jobs nor this machine is what does."""
FRACTION = 0.5
"""Of the one dataset, set by hand, while servers come."""
TOO_MANY = 2
"""Times the servers that there are: so many the job is told of that must not get what it then asks for. It has the whole cluster."""
WITHIN = 0.10
STRETCH_S = 10.0
_READY_WITHIN_S = 600.0
_ENDS_WITHIN_S = 60.0


@dataclass(frozen=True)
class Table:
    """A dataset of so many rows, as the rule counts them, whose table of HBase has so many regions."""

    name: str
    rows: int
    regions: int


@dataclass(frozen=True)
class Size:
    """`too_many_s`: how long the job asks that is told of too many servers. Without `at_once` no three jobs do."""

    servers: tuple[int, ...]
    seconds: float
    keys: int
    too_many_s: float = 0.0
    at_once: bool = False


FULL = Size((1, 2, 3), 80.0, 340_000, too_many_s=40.0, at_once=True)
QUICK = Size((1,), 8.0, 10_000)
ALONE = Table("flights", 1_000_000, 12)
AT_ONCE = (Table("trips", 8_000_000, 12), Table("orders", 2_000_000, 6), Table("cities", 20_000, 1))


def main() -> int:
    return run("index_rates", bench, __doc__, options=_options)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--draw", type=Path, help="the file of the drawing")


def bench(report: Report) -> None:
    size = QUICK if report.quick else FULL
    alone, too_many, at_once = [], [], []
    with instance("sqlite"):
        for servers in size.servers:
            with _hbase(servers) as cluster:
                alone.append(_stage((ALONE,), cluster, size.seconds, size.keys, by_hand=FRACTION))
                if size.too_many_s:
                    too_many.append(_stage((ALONE,), cluster, size.too_many_s, size.keys, told_times=TOO_MANY))
                if size.at_once and servers == size.servers[-1]:
                    at_once.append(_stage(AT_ONCE, cluster, size.seconds, size.keys))
    _tell(report, alone, too_many)
    for stage in at_once:
        _tell_at_once(report, stage)
    if report.arguments.draw:
        report.arguments.draw.write_text(draw(_drawn(alone), _drawn(at_once)))


@dataclass(frozen=True)
class Measured:
    """A job: what it was allowed, and what the servers have counted of its table; keys a second."""

    name: str
    servers: int
    allowed: float
    achieved: float


@dataclass(frozen=True)
class Stage:
    """What the jobs of a cluster of so many `servers` have done, the most rows a second that one of these has read in one stretch, and how often they
    have held a job back."""

    servers: int
    jobs: list[Measured]
    most_of_a_server: float
    throttled: int


def _stage(
    tables: Sequence[Table],
    cluster: HBase,
    seconds: float,
    keys: int,
    *,
    by_hand: float | None = None,
    told_times: int = 1,
) -> Stage:
    center = f"of-{cluster.servers * told_times}-of-{cluster.servers}-servers-{len(tables)}-jobs"
    names = [_make_dataset(table, center) for table in tables]
    if by_hand is not None:
        _set_fraction(names[0], by_hand)
    works = [
        Work(name, cluster.index(name), table.regions, keys, seconds, QPS, told_times)
        for name, table in zip(names, tables, strict=True)
    ]
    done, samples = _play(works, cluster.counter_ports)
    counted = samples[-1].since(samples[0])
    jobs = [Measured(job.name, job.servers, job.allowed, counted.of_table(job.name) / job.seconds) for job in done]
    stretches = [later.since(earlier) for earlier, later in pairwise(samples)]
    most = max(each.rate_of_server(server) for each in stretches for server in range(1, cluster.servers + 1))
    return Stage(cluster.servers, jobs, most, counted.throttled)


@contextmanager
def _hbase(servers: int) -> Iterator[HBase]:
    name = "lakehub-bench-hbase-"
    with tempfile.TemporaryDirectory(prefix=name) as folder, hbase(Path(folder), servers, SETTINGS) as cluster:
        yield cluster


def _make_dataset(table: Table, center: str) -> str:
    """Onboarded, with a job that is at work; its data center has a cluster of its own. Returns its name."""
    from ingestion.index_shares.shares import note_table, recompute_all
    from ingestion.models import IndexCluster
    from tests import factories, index_jobs

    if not IndexCluster.objects.filter(name=center).exists():
        index_jobs.cluster(center, center, qps=QPS)
    dataset = factories.dataset(f"{table.name}-{center}", copies=(center,))
    factories.feed(dataset, options={"index": "hbase"})
    copy = factories.copy_of(dataset, center)
    index_jobs.job(copy)
    recompute_all()
    note_table(copy, servers=1, rows=table.rows)
    return str(dataset.name)


def _set_fraction(name: str, fraction: float) -> None:
    from ingestion.domain.index_cluster.fractions import WHOLE
    from ingestion.index_shares.shares import set_fraction
    from lakehub.catalog.models import DatasetCopy

    copy = DatasetCopy.objects.get(dataset__name=name)
    set_fraction(copy, int(WHOLE * fraction), actor="bench", now=datetime.now(UTC))


def _play(works: Sequence[Work], ports: Sequence[int]) -> tuple[list[Done], list[Counts]]:
    """A process for each, all at once; and the counters of the servers from before they began until after they ended."""
    spawn = multiprocessing.get_context("spawn")
    ready, answers, processes = spawn.Barrier(len(works) + 1), [], []
    for work in works:
        answer, sender = spawn.Pipe(duplex=False)
        processes.append(spawn.Process(target=run_job, args=(work, ready, sender)))
        processes[-1].start()
        sender.close()
        answers.append(answer)
    try:
        ready.wait(_READY_WITHIN_S)
        time.sleep(FRESH_AFTER_S)
        samples = [read_counts(ports)]
        ready.wait(_READY_WITHIN_S)
        samples += _samples(ports, answers)
        return [answer.recv() for answer in answers], samples
    finally:
        for process in processes:
            process.join(_ENDS_WITHIN_S)
            process.kill()


def _samples(ports: Sequence[int], answers: Sequence[Connection]) -> Iterator[Counts]:
    """Until each of the jobs has answered, and one more, in which all that they have asked is counted."""
    working = set(answers)
    while working:
        answered = wait(working, timeout=STRETCH_S)
        working -= set(answered)
        if not answered:
            yield read_counts(ports)
    time.sleep(FRESH_AFTER_S)
    yield read_counts(ports)


def _tell(report: Report, alone: Sequence[Stage], too_many: Sequence[Stage]) -> None:
    lines = []
    for stage in alone:
        lines.append(_line(report, stage, "", str(stage.servers)))
        (job,) = stage.jobs
        _judge(report, f"{stage.servers} servers: counted, of allowed", job.achieved / job.allowed)
        report.at_most(f"{stage.servers} servers: times that they held the job back", stage.throttled, 0)
    for stage in too_many:
        lines.append(_line(report, stage, "too_many_", f"{stage.servers}, told of {TOO_MANY * stage.servers}"))
        (job,) = stage.jobs
        of_limit = job.achieved / (QPS * stage.servers)
        report.at_most(f"{stage.servers} servers, told of twice as many: counted, of the limit", of_limit, 1 + WITHIN)
        report.at_least(f"{stage.servers} servers, told of twice as many: times held back", stage.throttled, 1)
    headings = [
        "region servers",
        "allowed keys/s",
        "counted by the servers/s",
        "counted, of allowed",
        "times held back",
    ]
    report.table(
        f"One job, {FRACTION:.0%} of a cluster whose servers answer {QPS:,} keys/s each; all of it where told of too many",
        headings,
        lines,
    )
    least, most = alone[0], alone[-1]
    if most is not least:
        grown = most.jobs[0].achieved / least.jobs[0].achieved
        _judge(report, f"{most.servers} servers, of {most.servers} times one", grown / most.servers * least.servers)


def _line(report: Report, stage: Stage, slug: str, servers: str) -> list[str]:
    (job,) = stage.jobs
    report.figure(f"{slug}allowed_{stage.servers}_servers", job.allowed)
    report.figure(f"{slug}achieved_{stage.servers}_servers", job.achieved)
    report.figure(f"{slug}throttled_{stage.servers}_servers", stage.throttled)
    ratio = f"{job.achieved / job.allowed:.3f}"
    return [servers, f"{job.allowed:,.0f}", f"{job.achieved:,.0f}", ratio, f"{stage.throttled:,}"]


def _tell_at_once(report: Report, stage: Stage) -> None:
    lines = []
    for job in stage.jobs:
        name = job.name.partition("-")[0]
        achieved = job.achieved / job.allowed
        lines.append([name, job.servers, f"{job.allowed:,.0f}", f"{job.achieved:,.0f}", f"{achieved:.3f}"])
        report.figure(f"allowed_{name}", job.allowed)
        report.figure(f"achieved_{name}", job.achieved)
        _judge(report, f"{name}, beside the others: counted, of allowed", achieved)
    headings = ["dataset", "on servers", "allowed keys/s", "counted by the servers/s", "counted, of allowed"]
    report.table(f"Three jobs at once, {stage.servers} servers", headings, lines)
    report.figure("most_of_a_server", stage.most_of_a_server)
    report.at_most("three jobs: times that the servers held one back", stage.throttled, 0)
    report.at_most(
        f"most that a server has answered in {STRETCH_S:g} s, of its keys/s", stage.most_of_a_server / QPS, 1
    )


def _drawn(stages: Sequence[Stage]) -> list[Drawn]:
    """By the number of servers where a stage has one job, else by the dataset."""
    return [
        Drawn(f"{stage.servers}" if len(stage.jobs) == 1 else job.name.partition("-")[0], job.allowed, job.achieved)
        for stage in stages
        for job in stage.jobs
    ]


def _judge(report: Report, label: str, ratio: float) -> None:
    """Neither more nor less."""
    report.at_most(f"{label}: off by", abs(ratio - 1), WITHIN)


if __name__ == "__main__":
    sys.exit(main())
