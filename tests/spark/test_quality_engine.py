"""Spark answers the engines' contract suite like the others; few tests, because each job takes its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakehub.catalog.metadata.tables import HudiCopy
from lakehub.kernel.outcome import Outcome
from quality.domain.language.measures import LAST_COMMIT, ROWS, Measure
from quality.domain.language.values import Failed
from quality.engines.duckdb import DuckDbEngine
from quality.engines.scans.parts import CannotRead, EachPartition, WholeTable
from quality.engines.scans.scan import Limits, Scan
from quality.engines.spark import SparkEngine
from quality.engines.sql.measure_sql import KEY_KINDS
from tests.contracts import engine_answers
from tests.contracts import test_engines as suite
from tests.contracts.test_engine_answers import hudi
from tests.contracts.test_engines import DAY, Place
from tests.hudi_tables import hudi_table


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Place:
    made = suite.duckdb_over_hudi(tmp_path_factory.mktemp("lake"))
    return Place(SparkEngine(lambda: spark), made.flights, made.planes, made.bad)


def test_a_target_that_is_not_there_says_so(place: Place) -> None:
    suite.test_a_target_that_is_not_there_says_so(place)


def test_a_table_with_no_commit_has_no_rows(place: Place, tmp_path: Path) -> None:
    uri = hudi_table(tmp_path / "new", {})
    for record in (tmp_path / "new" / ".hoodie").glob("2*"):
        record.unlink()
    assert place.engine.measure(Scan(HudiCopy(uri), (ROWS, LAST_COMMIT)), Limits()).answers == {
        ROWS: 0,
        LAST_COMMIT: None,
    }


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> engine_answers.Place:
    made = hudi(tmp_path_factory.mktemp("answers"))
    return replace(made, engine=SparkEngine(lambda: spark))


@engine_answers.every_fact
def test_it_answers_like_the_other_engines(
    table: engine_answers.Place, fact: Callable[[engine_answers.Place], None]
) -> None:
    fact(table)


def test_times_are_utc_wherever_the_process_lives(table: engine_answers.Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        latest = table.answer(engine_answers.measure("maximum", "zoned"))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert latest == datetime(2026, 11, 3, 0, 30, tzinfo=UTC)


def test_the_jobs_do_not_grow_with_the_measures(spark: SparkSession, table: engine_answers.Place) -> None:
    # A lookup is a join, with a job of its own; keys are counted in queries of their own.
    plain = tuple(measure for measure in engine_answers.ALL if measure.other is None and measure.kind not in KEY_KINDS)
    jobs = [_jobs_of(spark, table, plain[:count]) for count in (1, 20, len(plain))]
    assert len(plain) > 20
    assert len(set(jobs)) == 1


def test_keys_are_counted_beside_the_one_scan_and_said_to_be(table: engine_answers.Place) -> None:
    keys = [measure for measure in engine_answers.ALL if measure.kind in KEY_KINDS]
    others = [measure for measure in engine_answers.ALL if measure.kind == "nulls"]
    assert [table.measured(*some).scan_count for some in (others, keys[:1], [*others, *keys])] == [1, 1, 1 + len(keys)]


def _jobs_of(spark: SparkSession, table: engine_answers.Place, measures: Sequence[Measure]) -> int:
    before = _jobs(spark)
    table.measured(*measures)
    return _jobs(spark) - before


def test_a_scan_that_takes_too_long_is_cancelled(table: engine_answers.Place) -> None:
    slow = engine_answers.measure(
        "query", values=("SELECT count(*) FROM " + ", ".join(f"this t{n}" for n in range(11)),)
    )
    answer = table.answer(slow, limits=Limits(timeout=timedelta(milliseconds=300)))
    assert answer == Failed(Outcome.ERROR, "the scan took longer than its timeout")


def _jobs(spark: SparkSession) -> int:
    """How many jobs the session has started so far."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().nextJobId())  # type: ignore[union-attr]


def _write(spark: SparkSession, uri: str, rows: list[tuple[int, str, float | None]], **options: str) -> None:
    frame = spark.createDataFrame(rows, "id long, flight_date string, delay double")
    written = {
        "hoodie.table.name": "written",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": DAY,
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.metadata.enable": "false",
        "hoodie.embed.timeline.server": "false",
        "hoodie.bulkinsert.shuffle.parallelism": "1",
        "hoodie.upsert.shuffle.parallelism": "1",
    }
    frame.write.format("hudi").options(**{**written, **options}).mode("append").save(uri)


def test_both_engines_of_the_lake_agree_on_tables_that_spark_wrote(spark: SparkSession, tmp_path: Path) -> None:
    uri = (tmp_path / "written").as_uri()
    _write(spark, uri, [(n, f"2026-11-{15 + n % 2}", float(n) if n % 3 else None) for n in range(60)])
    measures = (ROWS, Measure("distinct", ("id",)), Measure("sum", ("delay",)), Measure("nulls", ("delay",)))
    by_engine = [
        engine.measure(Scan(HudiCopy(uri), measures, EachPartition(DAY)), Limits())
        for engine in (DuckDbEngine(), SparkEngine(lambda: spark))
    ]
    assert by_engine[0].answers == by_engine[1].answers
    assert by_engine[0].answers[ROWS] == {"2026-11-15": 30, "2026-11-16": 30}
    assert by_engine[0].instant == by_engine[1].instant != ""


def test_a_table_with_log_files_is_measured_by_spark_as_the_other_engine_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    uri = (tmp_path / "merged").as_uri()
    kind = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    _write(spark, uri, [(n, "2026-11-15", 1.0) for n in range(10)], **kind)
    delay, before = Measure("sum", ("delay",)), DuckDbEngine().part_states(HudiCopy(uri), [WholeTable()])
    # Base files alone: nothing is hidden from DuckDB.
    assert DuckDbEngine().measure(Scan(HudiCopy(uri), (ROWS, delay)), Limits()).answers == {ROWS: 10, delay: 10.0}
    upsert = {"hoodie.datasource.write.operation": "upsert", "hoodie.compact.inline": "false"}
    _write(spark, uri, [(3, "2026-11-15", 5.0)], **kind, **upsert)
    with pytest.raises(CannotRead, match=r"merge-on-read table with log files.* Write the test with engine=spark"):
        DuckDbEngine().measure(Scan(HudiCopy(uri), (ROWS, delay)), Limits())
    answers = SparkEngine(lambda: spark).measure(Scan(HudiCopy(uri), (ROWS, delay)), Limits()).answers
    assert answers == {ROWS: 10, delay: 14.0}
    assert DuckDbEngine().part_states(HudiCopy(uri), [WholeTable()]) != before
