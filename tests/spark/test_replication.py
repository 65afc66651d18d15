"""A replica reads as its source does after whatever happened there, and while it is made readers see only states that the source had."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hudi import HudiTable
from pyspark.sql import SparkSession

from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import ClusterSpec, DeleteSpec, JobSpec, ReplicationSpec
from ingestion.spark.execute import execute
from ingestion.spark.indexes import INDEXES
from ingestion.spark.replication.copying import Bandwidth, ChecksumMismatch
from ingestion.spark.replication.replicating import Replicated, Replication
from ingestion.spark.replication.table_folder import TableFolder
from ingestion.spark.tables import hudi
from ingestion.spark.tables.timeline import Timeline
from tests.spark.order_shop import Orders, changed_rows, loaded_by_id, read

LATER = "2026-11-16 09:00:00"
HOUR = 3600.0
QUICKLY_CLEANED = {
    "hoodie.clean.policy": "KEEP_LATEST_COMMITS",
    "hoodie.clean.commits.retained": "1",
    "hoodie.clean.trigger.max.commits": "1",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.commits.archival.batch": "1",
}


@dataclass
class Pair:
    """A table, and its replica in another lake."""

    spark: SparkSession
    shop: Orders
    replica: str
    clock: float = 1e9

    @property
    def source(self) -> str:
        return self.shop.table.uri

    def replicate(self, target: TableFolder | None = None) -> Replicated:
        folder = TableFolder(self.replica) if target is None else target
        return Replication(TableFolder(self.source), folder, Bandwidth(), 2 * HOUR, now=lambda: self.clock).run()

    def change(self, number: int, *, options: dict[str, str] | None = None) -> None:
        """A commit that changes all rows of a day and some of the next one: other days than the commit before."""
        table, whole, some = self.shop.table, number % 3, (number + 1) % 3
        changed = [n for n in range(30) if n % 3 == whole or (n % 3 == some and n < 9)]
        rows = [(n, f"2026-11-{n % 3 + 1:02}", 1000.0 * number + n, None) for n in changed]
        frame = self.spark.createDataFrame(rows, "id long, day string, amount double, updated_at timestamp")
        stored = hudi.stored_schema(self.spark, table)
        given = {name: f"`{name}`" if name in frame.columns else "NULL" for name in stored.types}
        frame = frame.selectExpr(*(f"CAST({given[name]} AS {type_}) AS `{name}`" for name, type_ in stored.types.items()))  # fmt: skip
        index = INDEXES.get(table.index)().write_options(table)
        hudi.write_commit(frame, table, "upsert", {**index, **(options or {})}, {})

    def check_equal(self) -> None:
        assert everything(self.spark, self.replica) == everything(self.spark, self.source)
        ours, theirs = ({c.instant: (c.completed, c.partitions, c.run) for c in Timeline(uri).commits()} for uri in (self.replica, self.source))  # fmt: skip
        assert ours == ours | theirs  # what the source has archived may still be there


def everything(spark: SparkSession, uri: str) -> dict[str, Any]:
    """As each of the readers has it, with the table format's own columns."""
    by_spark, by_job = read(spark, uri), hudi.read_at(spark, uri)
    return {
        "columns": by_spark.dtypes,
        "spark": sorted(map(str, by_spark.collect())),
        "job": sorted(map(str, by_job.collect())),
        "files": sorted(newest_files(uri)),
        "rows": quick_rows(uri),
    }


def newest_files(uri: str) -> list[str]:
    return [file.base_file_relative_path() for file in HudiTable(uri).get_file_slices()]


def quick_rows(uri: str) -> list[str]:
    """By hudi-rs, without a JVM. Nothing where there is no table."""
    if not Timeline(uri).exists:
        return []
    folder = Path(uri.removeprefix("file://"))
    files = (pq.read_table(folder / name, partitioning=None).to_pylist() for name in newest_files(uri))
    return sorted(str(row) for rows in files for row in rows)


@pytest.fixture(params=["record_index", "simple"])
def pair(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Pair:
    return pair_of(spark, tmp_path, request.param)


def pair_of(spark: SparkSession, folder: Path, index: str) -> Pair:
    return Pair(spark, loaded_by_id(spark, folder, index), (folder / "lake2" / "orders").as_uri())


def take_back(pair: Pair, procedure: str) -> None:
    """By one of Hudi's own."""
    pair.spark.sql(f"create table taken_back using hudi location '{pair.source}'")
    try:
        pair.spark.sql(f"call {procedure}").collect()
    finally:
        pair.spark.sql("drop table taken_back")


def test_it_reads_as_its_source_after_each_change(pair: Pair) -> None:
    spark, shop = pair.spark, pair.shop

    def do(kind: str, run: str, **fields: Any) -> Callable[[], None]:
        def work() -> None:
            report = shop.run(spark, kind, run, **fields)
            assert (report.status, report.error) == ("succeeded", None)

        return work

    def upsert() -> None:
        shop.change(3, 300.0, LATER)
        shop.add((31, "2026-11-09", 1.0, LATER))
        do("incremental", "i1")()

    def widen() -> None:
        shop.sql("alter table orders add column note text")
        shop.sql("update orders set note = 'x', updated_at = '2026-11-16 10:00:00' where id < 5")
        do("incremental", "i2")()

    def roll_back() -> None:
        take_back(pair, f"rollback_to_instant(table => 'taken_back', instant_time => '{Timeline(pair.source).commits()[-1].instant}')")  # fmt: skip

    def rename() -> None:
        shop.sql("delete from orders where day = '2026-11-02' and id > 10")
        do("backfill", "f", partitions=("2026-11-02",))()

    changes: dict[str, Callable[[], None]] = {
        "nothing": lambda: None,
        "upsert": upsert,
        "delete": do("delete", "d", delete=DeleteSpec(keys=(("7",), ("8",)))),
        "cluster": do("cluster", "c", cluster=ClusterSpec()) if pair.shop.table.index == "simple" else lambda: None,
        "overwritten partition": rename,
        "column": widen,
        "changed": lambda: pair.change(1),
        # Of a table with the record index Hudi takes no commit back right after that was compacted, which each tenth commit does.
        "rolled back": roll_back if shop.table.index == "simple" else lambda: None,
        "after a rollback": lambda: pair.change(2),
        "replaced": do("bootstrap", "b2", replace=True),
    }
    for name, work in changes.items():
        work()
        done = pair.replicate()
        pair.check_equal()
        assert (name, done.resync) == (name, "there is no replica yet" if name == "nothing" else "")
        assert (name, done.taken_back) == (name, int(name == "rolled back" and shop.table.index == "simple"))
        assert pair.replicate().has_changed is False
    assert not hudi.has_metadata_table(pair.replica)


def test_readers_of_increments_are_told_the_same(pair: Pair) -> None:
    pair.replicate()
    loaded = Timeline(pair.source).latest_completion()
    pair.change(1)
    assert pair.shop.run(pair.spark, "delete", "d", delete=DeleteSpec(keys=(("7",),))).error is None
    pair.replicate()
    changes, theirs = (changed_rows(pair.spark, uri, loaded) for uri in (pair.replica, pair.source))
    assert sorted(map(str, changes)) == sorted(map(str, theirs))
    assert {operation for operation, _ in changes} == {"u", "d"}


def test_a_job_tells_which_commit_it_is_equal_to(spark: SparkSession, tmp_path: Path) -> None:
    pair = pair_of(spark, tmp_path, "simple")
    reports = [_job(pair, "r1"), _job(pair, "r2")]
    newest = Timeline(pair.source).commits()[-1]
    assert [(report.status, report.error, report.instant) for report in reports] == [
        ("succeeded", None, newest.instant),
        ("nothing_to_do", None, newest.instant),
    ]
    facts = reports[0].output["replication"]
    assert (facts["commits"], facts["resync"], facts["completed"]) == (1, "there is no replica yet", newest.completed)
    assert facts["files"] >= 3
    assert facts["bytes"] > 0
    pair.check_equal()


def _job(pair: Pair, run: str) -> JobReport:
    table = replace(pair.shop.table, uri=pair.replica)
    spec = JobSpec(run, "replicate", table, replication=ReplicationSpec(pair.source, mib_per_s=500.0))
    return execute(spec, spark=pair.spark, secrets={})


def test_only_files_that_changed_are_copied(spark: SparkSession, tmp_path: Path) -> None:
    pair = pair_of(spark, tmp_path, "simple")
    assert pair.replicate().files >= 3
    pair.change(1)
    changed = Timeline(pair.source).completed()[-1]
    of_commit = Timeline(pair.source).written_files(changed)
    logs = [stat.get("cdcStats") or {} for _, stat in Timeline(pair.source).write_stats(changed)]
    assert pair.replicate().files == len(of_commit) + sum(map(len, logs))


def test_commits_that_were_cleaned_or_archived_before_make_it_anew(spark: SparkSession, tmp_path: Path) -> None:
    pair = pair_of(spark, tmp_path, "simple")
    pair.replicate()
    for number in range(3):
        pair.change(number, options=QUICKLY_CLEANED | {"hoodie.archive.automatic": "false"})
    done = pair.replicate()
    pair.check_equal()
    assert done.resync == "files were cleaned away in the source before they were replicated"
    assert done.reused > 0
    for number in range(9):
        pair.change(number, options=QUICKLY_CLEANED)
    done = pair.replicate()
    assert done.resync.startswith("commits were archived in the source")
    pair.check_equal()


def test_what_the_source_has_no_longer_goes_after_a_time(spark: SparkSession, tmp_path: Path) -> None:
    """And the commits with it that the source has archived."""
    pair = pair_of(spark, tmp_path, "simple")
    for number in range(12):
        pair.change(number, options=QUICKLY_CLEANED | {"hoodie.clean.commits.retained": "2"})
        assert number == 0 or not pair.replicate().resync
        pair.replicate()
        pair.check_equal()
    replica, source = Path(pair.replica.removeprefix("file://")), Path(pair.source.removeprefix("file://"))
    files = lambda folder: {str(path.relative_to(folder)) for path in folder.glob("day=*/*.parquet")}  # noqa: E731
    assert files(replica) > files(source)
    pair.clock += 2 * HOUR
    assert pair.replicate().deleted > 0
    assert files(replica) == files(source)
    names, theirs = (TableFolder(uri).timeline() for uri in (pair.replica, pair.source))
    assert names.writes == theirs.writes
    pair.check_equal()


def test_a_table_that_was_made_anew_is_one_that_is_replicated_anew(spark: SparkSession, tmp_path: Path) -> None:
    pair = pair_of(spark, tmp_path, "simple")
    pair.replicate()
    assert pair.shop.run(spark, "drop", "x").error is None
    assert pair.shop.run(spark, "bootstrap", "b2").error is None
    assert pair.replicate().resync
    pair.check_equal()


def test_a_file_that_is_damaged_on_the_way_is_not_published(spark: SparkSession, tmp_path: Path) -> None:
    pair = pair_of(spark, tmp_path, "simple")
    pair.replicate()
    before = quick_rows(pair.replica)
    pair.change(1)
    with pytest.raises(ChecksumMismatch, match="another checksum"):
        pair.replicate(DamagingFolder(pair.replica))
    assert quick_rows(pair.replica) == before
    pair.replicate()
    pair.check_equal()


@dataclass(frozen=True)
class DamagingFolder(TableFolder):
    """A disk that stores one byte of each file of data wrong."""

    def open(self, path: str) -> Any:
        if path.endswith(".parquet"):
            file = Path(self.uri.removeprefix("file://")) / path
            content = bytearray(file.read_bytes())
            content[len(content) // 2] ^= 1
            file.write_bytes(content)
        return super().open(path)


class Killed(BaseException):
    """Nobody catches it, as nobody catches a kill."""


@dataclass
class Countdown:
    """Of operations until the kill; `after` each: what readers see then."""

    left: int
    after: Callable[[], None]
    done: list[str] = field(default_factory=list)

    def count(self, operation: str) -> None:
        self.done.append(operation)
        self.after()
        self.left -= 1
        if self.left == 0:
            raise Killed


@dataclass(frozen=True)
class MortalFolder(TableFolder):
    """Dies after some of its operations that change anything."""

    countdown: Countdown = field(default_factory=lambda: Countdown(0, lambda: None))

    def create(self, path: str) -> Any:
        self.countdown.count(f"begin {path}")
        return super().create(path)

    def move(self, path: str, to: str) -> None:
        super().move(path, to)
        self.countdown.count(f"move {to}")

    def delete(self, path: str) -> None:
        super().delete(path)
        self.countdown.count(f"delete {path}")

    def rename(self, to: TableFolder) -> None:
        super().rename(to)
        self.countdown.count(f"rename {to.uri}")

    def remove(self) -> None:
        super().remove()
        self.countdown.count("remove")


@pytest.mark.parametrize("case", ["backlog", "resync"])
def test_killed_after_each_operation_it_ends_equal_and_shows_only_what_was(
    spark: SparkSession, tmp_path: Path, case: str
) -> None:
    pair = pair_of(spark, tmp_path, "simple")
    states = [[], quick_rows(pair.source)]
    pair.change(1)
    states.append(quick_rows(pair.source))
    pair.replicate()
    if case == "backlog":  # the newest commit is taken back, and five come
        newest = Timeline(pair.source).commits()[-1].instant
        take_back(pair, f"rollback_to_instant(table => 'taken_back', instant_time => '{newest}')")
    for number in range(2, 7 if case == "backlog" else 8):
        pair.change(number, options=QUICKLY_CLEANED if case == "resync" else None)
        states.append(quick_rows(pair.source))
    readable = {str(state) for state in (states if case != "backlog" else states[1:])}

    def look() -> None:
        assert str(quick_rows(pair.replica)) in readable

    kills = 0
    while True:
        # Long enough for a file to be copied, and killed right after, or within the next.
        countdown = Countdown(3 + kills % 2, look)
        try:
            pair.replicate(MortalFolder(pair.replica, countdown))
        except Killed:
            kills += 1
            continue
        break
    pair.check_equal()
    assert not [path for path in tmp_path.rglob("*") if "lake2/.lakehub/replica/" in str(path) or "lake2/.lakehub/dropped/" in str(path)]  # fmt: skip
    assert kills >= 20
