"""Change capture, from a commit in MariaDB to a commit in the lake: how fast, how late, and at what cost beside a nightly snapshot.

An instance of the product (tap, follow, workers, with their databases and JVMs) captures a table of 1,000,000 rows in 60 partitions while a writer updates
500 rows a second, 90 % of them of the two newest days; then spread over all days; then beside the first load of another table. Before that the tap is measured
alone, beside Debezium's embedded engine over the same binlog (--peers). Everything runs on this machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.capturing import trips
from bench.capturing.lag import CommitWatch, Lags
from bench.capturing.stage import Stage, stage
from bench.harness import Report, run
from tests.soak.stand.waiting import wait_until

if TYPE_CHECKING:
    from bench.capturing.taps import Comparison, Measured

PER_SECOND, SHARE_OF_NEWEST = 500, 0.9
MAX_P50_S, MAX_P95_S, MAX_GROWTH, MIN_CAPTURED = 10.0, 25.0, 1.25, 20_000
MAX_FILES_A_COMMIT, MAX_ROWS_A_COMMIT = 61, 3
"""A commit writes each of the 60 days at most, and its deletes; in the database it is a row, and the hour that it is accounted in another."""
HEADINGS = ["changes", "a second", "p50, s", "p95, s", "last third over first", "core s per 1,000"]


@dataclass(frozen=True)
class Sizes:
    rows: int
    captured: int
    """Rows by which the speed of the tap is measured."""
    hot_s: float
    other_s: float
    days: int = 60
    per_second: int = PER_SECOND
    within_s: float = 1200
    markers_s: float = 20
    """So long changes are written, whose way to the log is timed."""

    rest_s: float = 20
    tables: int = 100
    """Of which nothing changes."""


FULL = Sizes(1_000_000, 200_000, 300, 90)
QUICK = Sizes(5_000, 5_000, 4, 0, days=4, per_second=100, within_s=120, markers_s=0, rest_s=2, tables=0)
PARTS = ("taps", "changes", "idle")
TAP_HEADINGS = ["who", "rows a core s", "rows a s", "warm", "with the start", "bytes a row", "p50, ms", "p95, ms"]
MAX_IDLE_SHARE, IDLE_EVERY_S, IDLE_S = 0.05, 5, 60.0


def main() -> int:
    return run("cdc", bench, __doc__, options=_options)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--part", choices=PARTS, help="only this one")
    parser.add_argument("--peers", action="store_true", help="Debezium too, whose jars (30 MB) are fetched once")


def bench(report: Report) -> None:
    sizes = QUICK if report.quick else FULL
    parts = PARTS if report.arguments.part is None else (report.arguments.part,)
    with (
        tempfile.TemporaryDirectory(prefix="lakehub-cdc-") as folder,
        stage(Path(folder), briefly=report.quick) as standing,
    ):
        instance_runs = parts != ("taps",)
        if instance_runs and report.quick:
            # Beside the tap, of which only its processor time counts.
            standing.start()
        if "taps" in parts:
            _taps(report, standing, sizes)
        if not instance_runs:
            return
        if not report.quick:
            standing.start()
        standing.wait_until_up()
        if "changes" in parts:
            _changes(report, standing, sizes)
        if "idle" in parts and sizes.tables:
            _idle(report, standing, sizes)


def _changes(report: Report, standing: Stage, sizes: Sizes) -> None:
    _onboard(standing, "trips", sizes.rows, sizes.days)
    loaded = _load(standing, "trips", sizes)
    report.figure("loaded_rows_per_s", sizes.rows / loaded.seconds)
    report.table("First load", ["rows", "rows a second"], [[f"{sizes.rows:,}", f"{sizes.rows / loaded.seconds:,.0f}"]])
    lines = [_follow(report, standing, sizes, "hot", sizes.hot_s, SHARE_OF_NEWEST)]
    read, kept = _rows_read_at_rest(standing, sizes), _kept(standing)
    if sizes.other_s:
        lines.append(_follow(report, standing, sizes, "spread", sizes.other_s, 0.0))
        _bounds(report, kept, _kept(standing))
        _onboard(standing, "rides", sizes.rows, sizes.days)
        lines.append(_follow(report, standing, sizes, "beside a load", sizes.other_s, SHARE_OF_NEWEST))
        _load(standing, "rides", sizes)
    report.table("From commit to lake", ["writes", *HEADINGS], lines)
    _backlog(report, standing, sizes)
    _beside_snapshot(report, sizes, loaded, read)


def _taps(report: Report, standing: Stage, sizes: Sizes) -> None:
    """Of the tap alone, in this process, from the binlog to committed segments; with --peers beside Debezium."""
    from bench.capturing import taps

    compared = taps.compare(
        standing.port, standing.folder, sizes.captured, sizes.markers_s, with_debezium=report.arguments.peers
    )
    lines = [_tap_line("the tap", compared.tap), _tap_line("Debezium, embedded", compared.debezium)]
    report.table("From the binlog to durable messages", TAP_HEADINGS, lines)
    _tell_taps(report, compared)


def _tap_line(name: str, measured: Measured | str) -> list[str]:
    """With the reason where nothing was measured."""
    if isinstance(measured, str):
        return [f"{name}: {measured}", *("-" for _ in TAP_HEADINGS[1:])]
    speed, lags = measured.speed, measured.lags
    all_rates = (speed.per_core_s, speed.per_s, speed.warm, speed.started)
    rates = ["-" if rate is None else f"{rate:,.0f}" for rate in all_rates]
    late = ["-" if lags is None else f"{1000 * lags.percentile(percent):,.0f}" for percent in (50, 95)]
    return [name, *rates, f"{speed.event_bytes:,.0f}", *late]


def _tell_taps(report: Report, compared: Comparison) -> None:
    for name, measured in (("captured", compared.tap), ("debezium", compared.debezium)):
        if isinstance(measured, str):
            continue
        report.figure(f"{name}_rows_per_s", measured.speed.per_s)
        rates = {"": measured.speed.per_core_s, "_warm": measured.speed.warm, "_started": measured.speed.started}
        for which, rate in rates.items():
            if rate is not None:
                report.figure(f"{name}{which}_rows_per_core_s", rate)
        if measured.lags is not None:
            report.figure(f"{name}_p50_s", measured.lags.percentile(50))
            report.figure(f"{name}_p95_s", measured.lags.percentile(95))
    if not report.quick:
        report.at_least("rows captured and encoded in a second of a core", compared.tap.speed.per_core_s, MIN_CAPTURED)
        report.at_least("rows captured and encoded in a second", compared.tap.speed.per_s, MIN_CAPTURED)


@dataclass(frozen=True)
class _Cost:
    seconds: float
    core_s: float


def _onboard(standing: Stage, table: str, rows: int, days: int, *, every_s: float = 1) -> None:
    from lakehub.accounts.models import Team
    from lakehub.catalog import connections, data_centers
    from lakehub.catalog.models import Connection
    from lakehub.catalog.onboarding.onboard import onboard_dataset
    from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
    from lakehub.kernel.partitions import Grain

    trips.create(standing, table, rows, days)
    now = datetime.now(UTC)
    if not Connection.objects.exists():
        team = Team.objects.create(name="shop")
        data_centers.add_data_center(name="dc1", lake_uri=(standing.home / "lake").as_uri(), actor="bench", now=now)
        connections.add_connection(
            name="ops", plugin="mysql", url=standing.url, team=team.name, actor="bench", now=now, by_operator=True
        )
    request = OnboardingRequest(
        name=table, team="shop", tier=3, connection="ops", table=table, data_centers=["dc1"], primary_key=["id"], record_key=["id"],
        partition_column="day", grain=Grain.DAY, every=timedelta(seconds=every_s),
    )  # fmt: skip
    onboard_dataset(request, actor="bench", now=now)


def _load(standing: Stage, table: str, sizes: Sizes) -> _Cost:
    """Until its bootstrap has succeeded, from where that began."""
    from ingestion.models import JobRun, JobState

    before = standing.core_seconds()
    runs = JobRun.objects.filter(copy__dataset__name=table, kind="bootstrap").order_by("-pk")
    wait_until(
        lambda: runs.filter(state=JobState.SUCCEEDED).count() == runs.count() > 0, f"{table} is loaded", sizes.within_s
    )
    run = runs[0]
    # A session of Spark that is only being started is no part of it.
    return _Cost(run.report["phases"]["total"], standing.core_seconds() - before)


def _follow(report: Report, standing: Stage, sizes: Sizes, name: str, seconds: float, share: float) -> list[str]:
    from ingestion.captures.records import topic_of
    from lakehub.catalog.models import DatasetCopy

    copy = DatasetCopy.objects.select_related("dataset").get(dataset__name="trips")
    topic = topic_of(copy.dataset)
    with CommitWatch(copy.uri, topic) as watch:
        first = _end_of(topic)
        standing.execute("UPDATE trips SET seats = seats + 1 WHERE id = 1")
        wait_until(lambda: watch.reached > first, "the table is followed", sizes.within_s)
        first, before = _end_of(topic), standing.core_seconds()
        with trips.Writer(standing, "trips", sizes.rows, sizes.days, sizes.per_second, share) as writer:
            time.sleep(seconds)
        wait_until(lambda: _end_of(topic) >= first + writer.written, "all is captured", sizes.within_s)
        wait_until(lambda: watch.reached >= first + writer.written, "all is in the lake", sizes.within_s)
    core_s, lags = standing.core_seconds() - before, watch.lags(_events(copy.dataset, first), first)
    _tell(report, name, lags, 1000 * core_s / writer.written)
    speed = writer.written / seconds
    return [
        name,
        f"{writer.written:,}",
        f"{speed:,.0f}",
        f"{lags.percentile(50):.1f}",
        f"{lags.percentile(95):.1f}",
        f"{lags.growth:.2f}",
        f"{1000 * core_s / writer.written:.2f}",
    ]


def _backlog(report: Report, standing: Stage, sizes: Sizes) -> None:
    """Changes of one transaction, from its commit until all of them are in the lake."""
    from ingestion.captures.records import topic_of
    from lakehub.catalog.models import DatasetCopy

    copy = DatasetCopy.objects.select_related("dataset").get(dataset__name="trips")
    topic, before = topic_of(copy.dataset), standing.core_seconds()
    with CommitWatch(copy.uri, topic) as watch:
        end = _end_of(topic) + sizes.captured
        standing.execute(f"UPDATE trips SET seats = seats + 1 WHERE id <= {sizes.captured}")
        began = time.monotonic()
        wait_until(lambda: watch.reached >= end, "the backlog is in the lake", sizes.within_s)
        seconds = time.monotonic() - began
    core_s = standing.core_seconds() - before
    report.figure("ingested_rows_per_s", sizes.captured / seconds)
    report.figure("ingested_rows_per_core_s", sizes.captured / core_s)
    report.table("A backlog", ["changes", "a second", "a core second, all processes"], [
        [f"{sizes.captured:,}", f"{sizes.captured / seconds:,.0f}", f"{sizes.captured / core_s:,.0f}"],
    ])  # fmt: skip


def _tell(report: Report, name: str, lags: Lags, core_s: float) -> None:
    key = name.replace(" ", "_")
    report.figure(f"{key}_p50_s", lags.percentile(50))
    report.figure(f"{key}_p95_s", lags.percentile(95))
    report.figure(f"{key}_core_s_per_1000", core_s)
    report.figure(f"{key}_growth", lags.growth)
    if not report.quick:
        report.at_most(f"median lag, {name}", lags.percentile(50), MAX_P50_S, unit=" s")
        report.at_most(f"95 % of the changes, {name}", lags.percentile(95), MAX_P95_S, unit=" s")
        report.at_most(f"last third over first, {name}", lags.growth, MAX_GROWTH)


def _end_of(topic: str) -> int:
    from ingestion.captures.changelog import configured_changelog

    bounds = configured_changelog().reader().bounds(topic)
    return bounds["0"].next if bounds else 0


def _events(dataset: Any, first: int) -> Iterator[tuple[int, datetime]]:
    """(offset, when the change was committed in the source)."""
    from ingestion.captures.topics import topic_to_read
    from ingestion.heatpipe.decoder import Decoder

    topic = topic_to_read(dataset, now=datetime.now(UTC))
    decoder = Decoder(topic.topic, ("id",), bytes, topic.schema_of)
    for message in topic.reader.read(topic.topic, {"0": first}):
        committed_at = decoder.decode(message.value or b"", (message.offset,)).event.source_committed_at
        assert committed_at is not None
        yield message.offset, committed_at


def _beside_snapshot(report: Report, sizes: Sizes, loaded: _Cost, read: int) -> None:
    """A snapshot a night reads all rows of the source, and shows changes a day later."""
    hot = report.figures["hot_core_s_per_1000"] / 1000
    worth = loaded.core_s / hot
    report.figure("snapshot_core_s", loaded.core_s)
    report.figure("changes_worth_a_snapshot", worth)
    report.figure("source_rows_read_at_rest", read)
    report.table("Beside a nightly snapshot", ["what", "capture", "snapshot"], [
        [f"rows read of the source's tables, {sizes.rest_s:.0f} s without changes", f"{read:,}", f"{sizes.rows:,} a night"],
        ["core seconds", f"{1000 * hot:.2f} for 1,000 changes", f"{loaded.core_s:,.0f} for the table"],
        ["changes for the core seconds of one snapshot", f"{worth:,.0f}", "-"],
        ["p95 of the lag", f"{report.figures['hot_p95_s']:.0f} s", "a day"],
    ])  # fmt: skip


def _rows_read_at_rest(standing: Stage, sizes: Sizes) -> int:
    """By the server's own count of its tables, while the copy is followed and nobody writes. After a load its tests read them once for each day."""
    before = standing.rows_read()
    time.sleep(sizes.rest_s)
    return standing.rows_read() - before


@dataclass(frozen=True)
class _Kept:
    commits: int
    """Of the followed table."""
    files_a_commit: float
    database_rows: int
    memory_mib: float


def _kept(standing: Stage) -> _Kept:
    from django.apps import apps

    from ingestion.models import Commit
    from lakehub.catalog.models import DatasetCopy

    copy = DatasetCopy.objects.get(dataset__name="trips")
    files = sum(1 for _ in Path(copy.uri.removeprefix("file://")).rglob("*.parquet"))
    commits = Commit.objects.filter(copy=copy).count()
    rows = sum(model._default_manager.count() for model in apps.get_models())
    return _Kept(commits, files / max(commits, 1), rows, standing.memory_mib())


def _bounds(report: Report, before: _Kept, after: _Kept) -> None:
    """What grows with the changes, and not with the time: versions of files go after the hours that they are retained."""
    rows_a_commit = (after.database_rows - before.database_rows) / max(after.commits - before.commits, 1)
    growth = after.memory_mib / before.memory_mib
    report.figure("files_a_commit", after.files_a_commit)
    report.figure("database_rows_a_commit", rows_a_commit)
    report.figure("memory_mib", after.memory_mib)
    report.figure("memory_growth", growth)
    report.table("What is kept", ["what", "after the first changes", "after more of them"], [
        ["commits of the table", f"{before.commits:,}", f"{after.commits:,}"],
        ["files for each of them", f"{before.files_a_commit:.1f}", f"{after.files_a_commit:.1f}"],
        ["rows in the database", f"{before.database_rows:,}", f"{after.database_rows:,}"],
        ["MiB of all processes", f"{before.memory_mib:,.0f}", f"{after.memory_mib:,.0f}"],
    ])  # fmt: skip
    if not report.quick:
        report.at_most("files kept for each commit", after.files_a_commit, MAX_FILES_A_COMMIT)
        report.at_most("rows in the database for each commit", rows_a_commit, MAX_ROWS_A_COMMIT)
        report.at_most("memory after more changes over that after the first", growth, MAX_GROWTH)


def _idle(report: Report, standing: Stage, sizes: Sizes) -> None:
    """Many tables through one tap, each looked at every five seconds: what the tap and the follower cost while nothing changes."""
    from ingestion.models import Commit, JobRun, JobState

    without = _shares(standing, ("",))[0]
    for number in range(sizes.tables):
        _onboard(standing, f"quiet_{number}", 10, sizes.days, every_s=IDLE_EVERY_S)
    quiet = JobRun.objects.filter(copy__dataset__name__startswith="quiet_")
    loaded = quiet.filter(kind="bootstrap", state=JobState.SUCCEEDED)
    wait_until(lambda: loaded.count() == sizes.tables, "all tables are loaded", 3 * sizes.within_s)
    followed = quiet.filter(kind="follow", state=JobState.RUNNING)
    wait_until(lambda: followed.count() == sizes.tables, "all tables are followed", sizes.within_s)
    time.sleep(IDLE_S)
    commits = Commit.objects.count()
    tap, follow, together = _shares(standing, ("tap", "follow", ""))
    report.table(f"{sizes.tables} tables in which nothing changes", ["process", "% of a core"], [
        ["tap", f"{100 * tap:.2f}"], ["follow", f"{100 * follow:.2f}"],
        ["all processes", f"{100 * together:.2f}"], ["all processes, before these tables were there", f"{100 * without:.2f}"],
    ])  # fmt: skip
    report.figure("idle_tap_share", tap)
    report.figure("idle_follow_share", follow)
    report.figure("idle_share", together)
    report.figure("idle_share_without", without)
    report.at_most(
        f"share of a core of {sizes.tables} idle tables", 100 * (tap + follow), 100 * MAX_IDLE_SHARE, unit=" %"
    )
    report.at_most("commits meanwhile", Commit.objects.count() - commits, 0)
    _wake(report, standing, sizes)


def _shares(standing: Stage, processes: Sequence[str]) -> list[float]:
    """Of a core, over a while, by process; empty: of all."""
    before = [standing.core_seconds(name) for name in processes]
    time.sleep(IDLE_S)
    return [(standing.core_seconds(name) - cost) / IDLE_S for name, cost in zip(processes, before, strict=True)]


def _wake(report: Report, standing: Stage, sizes: Sizes) -> None:
    """A change in each of the tables, until all of them are in the lake."""
    from ingestion.models import Commit, TapServer

    newest = Commit.objects.order_by("-pk").values_list("pk", flat=True)[0]
    woken = Commit.objects.filter(pk__gt=newest, copy__dataset__name__startswith="quiet_").values("copy").distinct()
    standing.execute(*(f"UPDATE quiet_{number} SET seats = seats + 1 WHERE id = 1" for number in range(sizes.tables)))
    began = time.monotonic()
    wait_until(lambda: woken.count() == sizes.tables, "a change of each is in the lake", sizes.within_s)
    seconds = time.monotonic() - began
    report.figure("woken_s", seconds)
    report.table("A change in each of them", ["tables", "taps", "s until all are in the lake"], [
        [str(sizes.tables), str(TapServer.objects.count()), f"{seconds:.0f}"],
    ])  # fmt: skip
    report.at_most("taps of all tables", TapServer.objects.count(), 1)


if __name__ == "__main__":
    sys.exit(main())
