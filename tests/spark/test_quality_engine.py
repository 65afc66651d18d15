"""Spark answers the engines' contract suite like the others; few tests, because each job takes its time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakehub.kernel.outcome import Outcome
from quality.domain.expression.measures import COMMITTED, ROWS, Measure
from quality.domain.expression.values import Failed
from quality.engines.duckdb import DuckDb
from quality.engines.scan import Each, HudiCopy, Limits, One, Scan, Whole
from quality.engines.spark import Spark
from tests.contracts import answers
from tests.contracts import test_engines as suite
from tests.contracts.test_answers import hudi
from tests.contracts.test_engines import DAY, MEASURES, Place
from tests.lake import hudi_table


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Place:
    made = suite.duckdb_over_hudi(tmp_path_factory.mktemp("lake"))
    return Place(Spark(lambda: spark), made.flights, made.planes, made.bad)


@pytest.mark.parametrize(
    ("part", "expected"),
    [(Whole(), suite.WHOLE), (One(DAY, "2026-11-15"), suite.FIRST_DAY), (One(DAY, "2027-01-01"), suite.NOTHING)],
    ids=["whole", "first day", "an absent day"],
)
def test_it_measures_a_part(place: Place, part: Whole | One, expected: dict[Measure, object]) -> None:
    assert place.answers(part, *MEASURES) == expected


def test_it_measures_each_partition_in_one_go(place: Place) -> None:
    suite.test_it_measures_each_partition_in_one_go(place)


def test_a_bad_measure_costs_only_itself(place: Place) -> None:
    wrong = Measure("nulls", ("tialnum",))
    words = Measure("sum", ("at",))
    found = place.answers(Whole(), ROWS, wrong, words)
    assert (found[ROWS], found[wrong]) == (
        6,
        Failed(Outcome.ERROR, "There is no column `tialnum`. Did you mean `tailnum`?"),
    )
    assert found[words].outcome is Outcome.ERROR


def test_a_target_that_is_not_there_says_so(place: Place) -> None:
    suite.test_a_target_that_is_not_there_says_so(place)


def test_names_are_quoted(place: Place) -> None:
    suite.test_names_are_quoted(place)


def test_a_table_with_no_commit_has_no_rows(place: Place, tmp_path: Path) -> None:
    uri = hudi_table(tmp_path / "new", {})
    for record in (tmp_path / "new" / ".hoodie").glob("2*"):
        record.unlink()
    assert place.engine.measure(Scan(HudiCopy(uri), (ROWS, COMMITTED)), Limits()).answers == {ROWS: 0, COMMITTED: None}


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> answers.Place:
    made = hudi(tmp_path_factory.mktemp("answers"))
    return replace(made, engine=Spark(lambda: spark))


@answers.every_fact
def test_it_answers_like_the_other_engines(table: answers.Place, fact: Callable[[answers.Place], None]) -> None:
    fact(table)


def test_times_are_utc_wherever_the_process_lives(table: answers.Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        latest = table.answer(answers.measure("maximum", "zoned"))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert latest == datetime(2026, 11, 3, 0, 30, tzinfo=UTC)


def test_the_jobs_do_not_grow_with_the_measures(spark: SparkSession, table: answers.Place) -> None:
    jobs = []
    plain = tuple(one for one in answers.ALL if one.kind != "distinct" and one.other is None)
    for count in (1, 20, len(plain)):
        before = _jobs(spark)
        table.measured(*plain[:count])
        jobs.append(_jobs(spark) - before)
    assert len(plain) > 20
    assert len(set(jobs)) == 1


def test_a_scan_that_takes_too_long_is_cancelled(table: answers.Place) -> None:
    slow = answers.measure(
        "query", values=("SELECT count(*) FROM this a, this b, this c, this d, this e, this f, this g, this h",)
    )
    found = table.answer(slow, limits=Limits(timeout=timedelta(milliseconds=300)))
    assert found == Failed(Outcome.ERROR, "the scan took longer than its timeout")


def _jobs(spark: SparkSession) -> int:
    """How many jobs the session has started so far."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().nextJobId())  # type: ignore[union-attr]


def test_both_engines_of_the_lake_agree_on_tables_that_spark_wrote(spark: SparkSession, tmp_path: Path) -> None:
    uri = (tmp_path / "written").as_uri()
    rows = spark.createDataFrame(
        [(n, f"2026-11-{15 + n % 2}", float(n) if n % 3 else None) for n in range(60)],
        "id long, flight_date string, delay double",
    )
    options = {
        "hoodie.table.name": "written",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": DAY,
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.metadata.enable": "false",
        "hoodie.embed.timeline.server": "false",
        "hoodie.bulkinsert.shuffle.parallelism": "1",
    }
    rows.write.format("hudi").options(**options).mode("overwrite").save(uri)
    measures = (ROWS, Measure("distinct", ("id",)), Measure("sum", ("delay",)), Measure("nulls", ("delay",)))
    found = [
        engine.measure(Scan(HudiCopy(uri), measures, part), Limits())
        for engine in (DuckDb(), Spark(lambda: spark))
        for part in (Each(DAY),)
    ]
    assert found[0].answers == found[1].answers
    assert found[0].answers[ROWS] == {"2026-11-15": 30, "2026-11-16": 30}
    assert found[0].instant == found[1].instant != ""
