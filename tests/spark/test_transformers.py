"""Functions of the operator's folder between the SELECT and the table: what they make is kept right like anything else, and what they may not do writes nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingestion.domain.pipelines.cases_file import PipelineTest
from ingestion.domain.pipelines.definition import Transformer
from ingestion.spark.contract.spec import PipelineInputSpec, PipelineSpec, TransformerSpec
from ingestion.spark.contract.strict_json import load
from ingestion.spark.etl.rehearsing import rehearse
from ingestion.spark.etl.transformers.files import read_transformer
from ingestion.spark.etl.transformers.request import Answer, Request
from ingestion.spark.execute import execute
from ingestion.spark.job import JobError
from ingestion.spark.tables.timeline import Timeline
from tests.polling import scaled, wait_until
from tests.spark.pipeline_lake import PipelineLake, pipeline_of
from tests.spark.test_pipelines import TABLES

GOOD = """
from dataclasses import dataclass

from pyspark.sql import functions as F


@dataclass
class Rate:
    times: int


RATE = Rate(3)


def tripled(delay):
    return None if delay is None else delay * RATE.times


def triple(rows):
    return rows.withColumn("late", F.udf(tripled, "int")("delay")).drop("delay")


def finish(rows):
    assert "delay" not in rows.columns, "in their order"
    return rows.selectExpr("id", "day", "upper(airline) AS airline", "late + 1 AS late").where("late < 1000")
"""
COLUMNS = {"id": "long", "day": "string", "airline": "string", "late": "int"}
SQL = "SELECT f.id, f.day, a.name AS airline, f.delay FROM flights f LEFT JOIN airlines a ON f.carrier = a.carrier"
WIDE = pipeline_of(SQL, COLUMNS, ("id",), "flights", "airlines", partition="day")
ALIKE = replace(WIDE, name="alike", transform="SELECT f.id, f.day, upper(a.name) AS airline, f.delay * 3 + 1 AS late FROM flights f LEFT JOIN airlines a ON f.carrier = a.carrier WHERE coalesce(f.delay * 3 + 1, 1000) < 1000")  # fmt: skip


def lake_of(spark: SparkSession, folder: Path, code: str, *functions: str) -> PipelineLake:
    """40 flights of four days. `code`: of the one file in the operator's folder."""
    operators = folder / "transformers"
    operators.mkdir()
    (operators / "fares.py").write_text(code)
    made = replace(WIDE, transformers=tuple(Transformer(f"fares.py:{each}") for each in functions))
    lake = PipelineLake(spark, folder, TABLES, {"wide": made, "alike": ALIKE}, transformers_folder=str(operators))
    lake.put("flights", [(n, f"2013-01-{n % 4 + 1:02}", "N0", ("UA", "AA", "DL")[n % 3], n) for n in range(40)])
    lake.put("airlines", [("UA", "United"), ("AA", "American")])
    return lake


def differences(lake: PipelineLake) -> list[Sequence[object]]:
    """From what one SELECT says in place of the transformers."""
    stored, recomputed = lake.stored("wide"), lake.recomputed("alike")
    return [*stored.exceptAll(recomputed).take(3), *recomputed.exceptAll(stored).take(3)]


def test_two_in_their_order_equal_a_full_recomputation_after_each_change(spark: SparkSession, tmp_path: Path) -> None:
    """The first makes a column by a function in Python, which Spark's workers have from nowhere else; the second leaves rows out."""
    lake = lake_of(spark, tmp_path, GOOD, "triple", "finish")
    assert lake.run("bootstrap").error is None
    assert lake.stored("wide").count() == 40
    assert differences(lake) == []
    lake.put("flights", [(0, "2013-01-01", "N0", "UA", 400), (5, "2013-02-01", "N0", "AA", 9), (41, "2013-01-01", "N0", "DL", 8)])  # fmt: skip
    lake.put("airlines", [("DL", "Delta")])
    report = lake.run("incremental")
    assert (report.error, report.counts.applied > 3) == (None, True)
    assert differences(lake) == []
    assert lake.stored("wide").where("id = 0").isEmpty(), "its `late` is 1201, so the second leaves it out"
    lake.remove("flights", [(n, f"2013-01-{n % 4 + 1:02}", "", "", 0) for n in (4, 8)])
    assert lake.run("incremental").error is None
    assert differences(lake) == []
    lake.put("flights", [(12, "2013-01-01", "N0", "UA", 77)])
    assert [*lake.run("backfill", partitions=("2013-01-01",)).partitions] == ["2013-01-01"]
    assert differences(lake) == []


BAD = """
import os
import sys

from pyspark.sql import functions as F


def same(rows):
    return rows.withColumnRenamed("delay", "late")


def more_columns(rows):
    return same(rows).withColumn("extra", F.lit(1))


def fewer_columns(rows):
    return rows.withColumnRenamed("delay", "lte")


def no_key(rows):
    return rows.drop("id")


def other_key(rows):
    return rows.withColumn("id", F.col("id") + 1)


def null_key(rows):
    return same(rows).withColumn("id", F.when(F.col("id") > 0, F.col("id")))


def other_day(rows):
    return same(rows).withColumn("day", F.lit("2013-01-01"))


def doubled(rows):
    return same(rows).union(same(rows))


def raises(rows):
    raise ValueError("no fares today")


def inverse(number):
    return 1 // number


def raises_in_udf(rows):
    return rows.withColumn("delay", F.udf(inverse, "int")("delay"))


def counts(rows):
    rows.count()
    return same(rows.where("delay < " + str(rows.agg(F.max("delay")).first()[0])))


def ends(rows):
    sys.exit(0)


def ends_hard(rows):
    os._exit(3)


def nothing(rows):
    same(rows)


def tells(rows):
    raise RuntimeError if {"LAKEHUB_SECRET_KEY", "PYSPARK_GATEWAY_SECRET"} & {*os.environ} else LookupError


def stops(rows):
    rows.sparkSession.stop()
"""


@pytest.fixture(scope="module")
def two_flights(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> PipelineLake:
    """Inputs, and no table yet."""
    folder = tmp_path_factory.mktemp("lake")
    (folder / "fares.py").write_text(BAD)
    lake = PipelineLake(spark, folder, TABLES, {}, transformers_folder=str(folder))
    lake.put("flights", [(0, "2013-01-01", "N0", "UA", 0), (1, "2013-01-02", "N0", "UA", 1)])
    lake.put("airlines", [("UA", "United")])
    return lake


@pytest.mark.parametrize(
    ("functions", "error"),
    [
        (["more_columns"], "`fares.py:more_columns` returns the column `extra`, which table.sql lacks."),
        (["fewer_columns"], "`fares.py:fewer_columns` returns no column `late`, which table.sql has. Did you mean `lte`?"),
        (["no_key", "same"], "`fares.py:no_key` returns no column `id`, which stays as it is."),
        (["other_key", "same"], "`fares.py:other_key` returns rows with values in `id`, `day` that no row had that it was given (2 of them)"),
        (["null_key"], "`fares.py:null_key` returns rows with values in `id`, `day` that no row had that it was given (1 of them)"),
        (["other_day"], "`fares.py:other_day` returns rows with values in `id`, `day` that no row had that it was given (1 of them)"),
        (["doubled"], "`fares.py:doubled` returns several rows with the same values in `id`, `day`, of which it was given one (2 too many)"),
        (["same", "raises"], "`fares.py:raises` failed: fares.py:41: ValueError. "),
        (["raises_in_udf", "same"], "`fares.py:raises_in_udf` failed: fares.py:45: ZeroDivisionError. "),
        (["raises_in_udf", "counts"], "`fares.py:raises_in_udf` failed: fares.py:45: ZeroDivisionError"),
        (["ends"], "`fares.py:ends` failed: fares.py:58: SystemExit. "),
        (["ends_hard"], "`fares.py:ends_hard` ended its process (code 3)"),
        (["nothing"], "`fares.py:nothing` returns NoneType"),
        (["tells"], "`fares.py:tells` failed: fares.py:70: LookupError. "),
        (["stops"], "`fares.py:stops` failed: fares.py:74: StopsSpark. "),
        (["sme"], "`fares.py:sme` is not there: fares.py has no function `sme`. Did you mean `same`?"),
    ],
)  # fmt: skip
def test_what_none_may_do_is_told_by_name_and_writes_nothing(
    two_flights: PipelineLake, functions: list[str], error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHUB_SECRET_KEY", "hush")
    made = replace(WIDE, transformers=tuple(Transformer(f"fares.py:{each}") for each in functions))
    lake = replace(two_flights, pipelines={"wide": made})
    report = lake.run("bootstrap")
    assert report.status == "failed"
    assert error in str(report.error)
    assert "Nothing was written" in str(report.error) or "has no function" in str(report.error)
    assert not Timeline(lake.uri("wide")).exists


UNSTEADY = """
import subprocess
import time

from pyspark.sql import Window
from pyspark.sql import functions as F


def refuses_late(rows):
    if rows.where("delay > 500").count():
        raise ValueError("too late")
    return rows.withColumnRenamed("delay", "late")


def waits(rows):
    subprocess.Popen(["sleep", "98765.25"])
    while True:
        time.sleep(0.1)


def totals(rows):
    return rows.withColumn("late", F.sum("delay").over(Window.partitionBy("day")).cast("int")).drop("delay")


def totals_in_microseconds(rows):
    at = F.timestamp_micros(F.count("*").over(Window.partitionBy("day")))
    return rows.withColumn("at", F.create_map(F.lit("at"), at)).withColumnRenamed("delay", "late")


def totals_without_zone(rows):
    at = F.timestamp_micros(F.count("*").over(Window.partitionBy("day"))).cast("timestamp_ntz")
    return rows.withColumn("at", at).withColumnRenamed("delay", "late")


def without_at(rows):
    return rows.drop("at")
"""


def test_a_run_that_fails_leaves_the_table_and_its_position_and_the_next_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = lake_of(spark, tmp_path, UNSTEADY, "refuses_late")
    assert lake.run("bootstrap").error is None
    before = Timeline(lake.uri("wide")).latest_completion()
    lake.put("flights", [(0, "2013-01-01", "N0", "UA", 501), (1, "2013-01-02", "N0", "AA", 44)])
    assert "`fares.py:refuses_late` failed: fares.py:11: ValueError. " in str(lake.run("incremental").error)
    assert Timeline(lake.uri("wide")).latest_completion() == before
    lake.put("flights", [(0, "2013-01-01", "N0", "UA", 9)])
    assert lake.run("incremental").error is None
    assert [row.late for row in lake.stored("wide").where("id < 2").orderBy("id").collect()] == [9, 44]


def test_one_that_does_not_end_is_ended_with_its_run(spark: SparkSession, tmp_path: Path) -> None:
    lake = lake_of(spark, tmp_path, UNSTEADY, "waits")
    report = lake.run("bootstrap", deadline_s=scaled(15))
    assert (report.status, report.timed_out) == ("failed", True)
    assert "longer than its deadline" in str(report.error)
    assert not processes()


def processes() -> list[str]:
    """Of transformers, begun by this one: they are told where in its own folder to answer."""
    own = [line for line in command_lines() if "etl.transformers" in line and f"~{os.getpid()}~" in line]
    return own + [line for line in command_lines() if "98765.25" in line]


def command_lines() -> list[str]:
    return [
        path.read_bytes().decode(errors="replace") for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()
    ]


def test_a_job_takes_no_file_that_leads_out_and_none_that_was_changed_since_it_was_registered(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = lake_of(spark, tmp_path, GOOD, "triple", "finish")
    spec = lake.spec("bootstrap", "b")
    assert spec.pipeline is not None
    digest = read_transformer(lake.transformers_folder, "fares.py:triple").digest
    registered = replace(
        spec.pipeline, transformers=tuple(replace(each, digest=digest) for each in spec.pipeline.transformers)
    )
    file = Path(lake.transformers_folder) / "fares.py"
    file.write_text(f"{GOOD}\n# one comment more")
    report = execute(replace(spec, pipeline=registered), spark=spark, secrets={})
    assert "`fares.py:triple` is not as it was when the pipeline was registered" in str(report.error)
    file.rename(tmp_path / "elsewhere.py")
    file.symlink_to(tmp_path / "elsewhere.py")
    assert "`fares.py` leads out of the folder" in str(execute(spec, spark=spark, secrets={}).error)
    assert not Timeline(lake.uri("wide")).exists


def test_a_pipelines_own_tests_run_them_and_notice_what_is_not_made_row_by_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "fares.py").write_text(UNSTEADY)
    rows = tuple({"id": str(n), "day": "2013-01-01", "delay": str(n)} for n in range(3))
    test = PipelineTest("late", {"f": rows}, tuple({"id": row["id"], "late": row["delay"]} for row in rows))
    types = {"f": {"id": "long", "day": "string", "delay": "int"}}
    spec = PipelineSpec((PipelineInputSpec("f", ""),), "SELECT f.id, f.day, f.delay FROM f", {"id": "long", "day": "string", "late": "int"}, transformers_folder=str(tmp_path))  # fmt: skip

    def rehearsed(*functions: str) -> bool:
        chain = tuple(TransformerSpec(f"fares.py:{each}") for each in functions)
        with_it = replace(spec, transformers=chain)
        return all(each.passes for each in rehearse(spark, with_it, ("id",), types, (test,)))

    assert rehearsed("refuses_late")
    for name, *others in (("totals",), ("totals_in_microseconds", "without_at"), ("totals_without_zone", "without_at")):
        with pytest.raises(JobError, match=re.escape(f"`fares.py:{name}` makes other rows of a half of the rows")):
            rehearsed(name, *others)


def test_their_process_ends_with_that_of_the_job(tmp_path: Path) -> None:
    """Whatever it does: the file has no end, and the job's process was killed."""
    (tmp_path / "endless.py").write_text("def endless(rows): ...\nopen('begun', 'w').close()\nwhile True: ...\n")
    request = Request(0, "", "run", str(tmp_path), (TransformerSpec("endless.py:endless"),), "", "", {}, ())
    command = [sys.executable, "-m", "ingestion.spark.etl.transformers", str(tmp_path / "answer.json")]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, cwd=tmp_path, env=environment)
    try:
        assert process.stdin is not None
        process.stdin.write(f"{json.dumps(asdict(request))}\n")
        process.stdin.flush()
        wait_until((tmp_path / "begun").exists)
        assert load(Answer, (tmp_path / "answer.json").read_text(), source="it") == Answer(running="endless.py:endless")
        process.stdin.close()
        assert process.wait(scaled(20)) == 1
    finally:
        process.kill()
