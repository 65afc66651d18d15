"""Classes of the operator's jars between the SELECT and the table, called by the interface that Hudi's own ingestion has, in a session of the job's own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest
from pyspark.sql import SparkSession

from ingestion.domain.pipelines.cases_file import PipelineTest
from ingestion.domain.pipelines.definition import Transformer
from ingestion.domain.resources.job_resources import JobResources
from ingestion.launchers import LAUNCHERS, LauncherConfig
from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import JobSpec, PipelineInputSpec, PipelineSpec, TransformerSpec
from ingestion.spark.etl.rehearsing import rehearse
from ingestion.spark.etl.transformers.jars import read_jars
from ingestion.spark.execute import execute
from ingestion.spark.job import JobError
from ingestion.spark.tables.timeline import Timeline
from tests.polling import scaled, wait_until
from tests.spark.compiled_jars import INTERFACE, make_jar
from tests.spark.pipeline_lake import PipelineLake
from tests.spark.test_pipelines import TABLES
from tests.spark.test_transformers import ALIKE, WIDE, differences

IMPORTS = """
package com.example;

import org.apache.hudi.common.config.TypedProperties;
import org.apache.hudi.utilities.transform.Transformer;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.expressions.Window;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
"""
FARES = (
    IMPORTS
    + """
public class Times implements Transformer {
    public static class Product implements UDF1 {
        private final int times;
        public Product(int times) { this.times = times; }
        public Object call(Object delay) {
            return delay == null ? null : Integer.valueOf(((Integer) delay).intValue() * this.times);
        }
    }

    public Dataset apply(JavaSparkContext jsc, SparkSession spark, Dataset rows, TypedProperties properties) {
        if (!jsc.sc().equals(spark.sparkContext())) throw new IllegalArgumentException("another context");
        int times = Integer.parseInt(properties.getProperty("fares.times"));
        UserDefinedFunction product = functions.udf(new Product(times), DataTypes.IntegerType);
        return rows.withColumn("late", product.apply(new Column[] { functions.col("delay") })).drop("delay");
    }
}
"""
)
BAD = (
    IMPORTS
    + """
public class Bad implements Transformer {
    public static class Fails implements UDF1 {
        public Object call(Object delay) { throw new UnsupportedOperationException("the fare of Ann is " + delay); }
    }

    public Dataset apply(JavaSparkContext jsc, SparkSession spark, Dataset rows, TypedProperties properties) throws Exception {
        String does = properties.getProperty("does");
        Dataset late = rows.withColumn("late", functions.col("delay")).drop("delay");
        if (does.equals("raises")) throw new IllegalStateException("the fare of Ann is 7");
        if (does.equals("raises later")) {
            UserDefinedFunction fails = functions.udf(new Fails(), DataTypes.IntegerType);
            return late.withColumn("late", fails.apply(new Column[] { functions.col("late") }));
        }
        if (does.equals("more")) return late.withColumn("extra", functions.lit(new Integer(1)));
        if (does.equals("keeps")) return rows;
        if (does.equals("other key")) return late.withColumn("id", functions.col("id").plus(new Integer(1)));
        if (does.equals("twice")) return late.union(late);
        if (does.equals("nothing")) return null;
        if (does.equals("waits")) while (true) Thread.sleep(50);
        if (does.equals("ends")) System.exit(3);
        if (does.equals("total"))
            return rows.withColumn("late", functions.sum("delay").over(Window.partitionBy(new Column[] { functions.col("day") })).cast("int")).drop("delay");
        return late;
    }
}
"""
)
NEEDY = (
    IMPORTS
    + "public class Needy extends Needed { public Dataset apply(JavaSparkContext a, SparkSession b, Dataset rows, TypedProperties c) { return null; } }"
)
NEEDED = "package com.example; public class Needed {}"
NONE = "package com.example; public class None { public Object apply(Object rows) { return rows; } }"
CLOSED = (
    IMPORTS
    + "public class Closed implements Transformer { public Closed(int n) {} public Dataset apply(JavaSparkContext a, SparkSession b, Dataset rows, TypedProperties c) { return rows; } }"
)
FINISH = """
def finish(rows):
    return rows.selectExpr("id", "day", "upper(airline) AS airline", "late + 1 AS late").where("late < 1000")
"""


@pytest.fixture(scope="module")
def operators(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The operator's folder. The interface is in a jar of its own, as Hudi's is."""
    folder = tmp_path_factory.mktemp("transformers")
    make_jar(spark, folder / "hudi.jar", INTERFACE)
    make_jar(spark, folder / "fares.jar", FARES, BAD, NONE, CLOSED, known=(INTERFACE,))
    make_jar(spark, folder / "needy.jar", NEEDY, known=(INTERFACE, NEEDED))
    (folder / "fares.py").write_text(FINISH)
    return folder


def step(name: str, **properties: str) -> Transformer:
    return Transformer(f"fares.jar:com.example.{name}", 0, tuple(properties.items()), ("hudi.jar",))


def lake_of(spark: SparkSession, folder: Path, operators: Path, *steps: Transformer) -> PipelineLake:
    made = replace(WIDE, transformers=steps)
    lake = PipelineLake(spark, folder, TABLES, {"wide": made, "alike": ALIKE}, transformers_folder=str(operators))
    lake.put("flights", [(n, f"2013-01-{n % 4 + 1:02}", "N0", ("UA", "AA", "DL")[n % 3], n) for n in range(40)])
    lake.put("airlines", [("UA", "United"), ("AA", "American")])
    return lake


@pytest.fixture(scope="module")
def few_flights(spark: SparkSession, operators: Path, tmp_path_factory: pytest.TempPathFactory) -> PipelineLake:
    """Inputs, and no table."""
    lake = PipelineLake(spark, tmp_path_factory.mktemp("lake"), TABLES, {}, transformers_folder=str(operators))
    lake.put("flights", [(0, "2013-01-01", "N0", "UA", 0), (1, "2013-01-02", "N0", "UA", 1)])
    lake.put("airlines", [("UA", "United")])
    return lake


_JAR, _NOTHING = "The transformer `fares.jar:com.example.", "Nothing was written."


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (step("Bad", does="raises"), f"{_JAR}Bad` failed: java.lang.IllegalStateException. The log of the worker has its words. {_NOTHING}"),
        (step("Bad", does="raises later"), f"{_JAR}Bad` failed: java.lang.UnsupportedOperationException. "),
        (step("Bad", does="more"), f"{_JAR}Bad` returns the column `extra`, which table.sql lacks."),
        (step("Bad", does="keeps"), f"{_JAR}Bad` returns no column `late`, which table.sql has."),
        (step("Bad", does="other key"), f"{_JAR}Bad` returns rows with values in `id`, `day` that no row had that it was given"),
        (step("Bad", does="twice"), f"{_JAR}Bad` returns several rows with the same values in `id`, `day`"),
        (step("Bad", does="nothing"), f"{_JAR}Bad` returns NoneType"),
        (step("None"), f"{_JAR}None` cannot be loaded: it needs a constructor without arguments, and `apply(JavaSparkContext, SparkSession, Dataset, TypedProperties)`"),
        (step("Closed"), f"{_JAR}Closed` cannot be loaded: it needs a constructor without arguments"),
        (step("Bda"), "fares.jar has no class `com.example.Bda`. Did you mean `com.example.Bad`?"),
        (Transformer("needy.jar:com.example.Needy"), "`needy.jar:com.example.Needy` cannot be loaded: it needs the class `com.example.Needed`, which no jar has. Name the jar that has it in `jars`."),
    ],
)  # fmt: skip
def test_what_none_may_do_is_told_by_name_without_values_and_writes_nothing(
    few_flights: PipelineLake, made: Transformer, error: str
) -> None:
    lake = replace(few_flights, pipelines={"wide": replace(WIDE, transformers=(made,))})
    report = lake.run("bootstrap")
    assert report.status == "failed"
    assert error in str(report.error)
    assert "Ann" not in str(report.error)
    assert not Timeline(lake.uri("wide")).exists


def test_a_job_takes_no_jar_that_was_changed_since_it_was_registered(
    few_flights: PipelineLake, operators: Path
) -> None:
    lake = replace(few_flights, pipelines={"wide": replace(WIDE, transformers=(step("Bad", does="works"),))})
    spec = lake.spec("bootstrap", "b")
    assert spec.pipeline is not None
    (known,) = spec.pipeline.transformers
    digest = read_jars(str(operators), known.name).digest  # without the jar that it needs besides
    registered = replace(spec.pipeline, transformers=(replace(known, digest=digest),))
    report = execute(replace(spec, pipeline=registered), spark=few_flights.spark, secrets={})
    assert "`fares.jar:com.example.Bad` is not as it was when the pipeline was registered: fares.jar, hudi.jar was changed" in str(report.error)  # fmt: skip
    assert not Timeline(lake.uri("wide")).exists


def test_a_pipelines_own_tests_run_them_and_notice_what_is_not_made_row_by_row(
    spark: SparkSession, operators: Path
) -> None:
    rows = tuple({"id": str(n), "day": "2013-01-01", "delay": str(n)} for n in range(3))
    test = PipelineTest("late", {"f": rows}, tuple({"id": row["id"], "late": row["delay"]} for row in rows))
    types = {"f": {"id": "long", "day": "string", "delay": "int"}}
    spec = PipelineSpec((PipelineInputSpec("f", ""),), "SELECT f.id, f.day, f.delay FROM f", {"id": "long", "day": "string", "late": "int"}, transformers_folder=str(operators))  # fmt: skip

    def rehearsed(does: str) -> bool:
        made = TransformerSpec("fares.jar:com.example.Bad", properties={"does": does}, jars=("hudi.jar",))
        with_it = replace(spec, transformers=(made,))
        return all(each.passes for each in rehearse(spark, with_it, ("id",), types, (test,)))

    assert rehearsed("works")
    with pytest.raises(JobError, match=r"`fares.jar:com.example.Bad` makes other rows of a half of the rows"):
        rehearsed("total")


class Watched:
    """A job that `spark_submit` runs, and what was seen of it meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.launcher = LAUNCHERS.get("spark_submit")(LauncherConfig(folder))
        self.java: list[str] = []
        self.progress: list[JobProgress] = []

    def run(self, spec: JobSpec) -> JobReport:
        ended = Event()
        asking = Thread(target=self._look, args=(spec.run_id, ended))
        asking.start()
        try:
            return self.launcher.run(spec, {})
        finally:
            ended.set()
            asking.join()

    def _look(self, run_id: str, ended: Event) -> None:
        while not ended.wait(0.1):
            self.java = self.java or next((words for words in processes(self.folder).values() if _is_job(words)), [])
            progress = self.launcher.progress(run_id)
            self.progress += [] if progress is None else [progress]


def wait_until_all_ended(folder: Path) -> None:
    """The process of transformers ends a moment after that of its job."""
    wait_until(lambda: not processes(folder), within_s=20, otherwise=lambda: str(processes(folder)))


def _is_job(words: list[str]) -> bool:
    """The JVM itself, rather than what puts its command together."""
    return Path(words[0]).name == "java" and "org.apache.spark.launcher.Main" not in words


def processes(folder: Path) -> dict[int, list[str]]:
    """The commands of all that name the folder in these, or have their code from there."""
    commands = dict[int, list[str]]()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_text()
            if str(folder) in command or str(folder) in (process / "environ").read_text():
                commands[int(process.name)] = command.split("\0")
    return commands


def test_in_a_session_of_the_size_that_was_asked_for_they_equal_a_full_recomputation(
    spark: SparkSession, operators: Path, tmp_path: Path
) -> None:
    """A class whose function runs in Spark's tasks, and Python after it. Other names than in the session of the tests: it has nothing from there."""
    lake = lake_of(spark, tmp_path, operators, step("Times", **{"fares.times": "3"}), Transformer("fares.py:finish"))
    asked = JobResources(memory_mib=700, cores=1, shuffle_partitions=5)

    def spec(kind: str) -> JobSpec:
        unsized = lake.spec(kind, kind)
        assert unsized.pipeline is not None
        return replace(unsized, pipeline=replace(unsized.pipeline, resources=asked))

    watched = Watched(tmp_path / "jobs")
    assert watched.run(spec("bootstrap")).error is None
    assert lake.stored("wide").count() == 40
    assert differences(lake) == []
    assert "-Xmx700m" in watched.java
    assert {"spark.master=local[1]", "spark.sql.shuffle.partitions=5"} <= set(watched.java)
    assert "compute" in {each.phase for each in watched.progress}
    lake.put("flights", [(0, "2013-01-01", "N0", "UA", 400), (41, "2013-01-01", "N0", "DL", 8)])
    report = watched.run(spec("incremental"))
    assert (report.error, report.counts.applied >= 2) == (None, True)
    assert differences(lake) == []
    wait_until_all_ended(tmp_path / "jobs")


def test_one_that_ends_the_jvm_ends_its_own_job_only(few_flights: PipelineLake, tmp_path: Path) -> None:
    lake = replace(few_flights, pipelines={"wide": replace(WIDE, transformers=(step("Bad", does="ends"),))})
    report = Watched(tmp_path / "jobs").run(lake.spec("bootstrap", "ends"))
    assert report.status == "failed"
    error, log = str(report.error), tmp_path / "jobs" / "ends" / "log.txt"
    # The job itself could not tell it where its launcher has seen the end of the JVM first.
    assert "fares.jar:com.example.Bad" in (log.read_text() if str(log) in error else error)
    assert not Timeline(lake.uri("wide")).exists
    wait_until_all_ended(tmp_path / "jobs")
    assert few_flights.spark.range(1).count() == 1


def test_one_that_does_not_end_is_ended_with_its_run(few_flights: PipelineLake, tmp_path: Path) -> None:
    lake = replace(few_flights, pipelines={"wide": replace(WIDE, transformers=(step("Bad", does="waits"),))})
    report = Watched(tmp_path / "jobs").run(lake.spec("bootstrap", "waits", deadline_s=scaled(20)))
    assert (report.status, report.timed_out) == ("failed", True)
    assert "longer than its deadline" in str(report.error)
    wait_until_all_ended(tmp_path / "jobs")


_LAUNCH = """
import sys
from pathlib import Path
from ingestion.launchers import LAUNCHERS, LauncherConfig
from ingestion.spark.contract.spec import JobSpec

launcher = LAUNCHERS.get("spark_submit")(LauncherConfig(Path(sys.argv[1])))
launcher.run(JobSpec.from_file(Path(sys.argv[2])), {})
"""


@contextmanager
def launched(spec: JobSpec, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """By a process of its own, as a worker is."""
    folder.mkdir()
    (folder.parent / "told.json").write_text(spec.to_json())
    with (folder.parent / "log").open("wb") as log:
        command = [sys.executable, "-c", _LAUNCH, str(folder), str(folder.parent / "told.json")]
        worker = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield worker
    finally:
        worker.kill()
        worker.wait()
        for process in processes(folder):  # of a test that has failed
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def test_a_worker_that_is_killed_leaves_nothing_of_the_session_that_it_started(
    few_flights: PipelineLake, tmp_path: Path
) -> None:
    """Whatever the job does: this one waits in the JVM for ever, and asks for no lease."""
    lake = replace(few_flights, pipelines={"wide": replace(WIDE, transformers=(step("Bad", does="waits"),))})
    folder = tmp_path / "jobs"
    with launched(lake.spec("bootstrap", "b"), folder) as worker:
        log = folder / "b" / "log.txt"
        wait_until(
            lambda: log.exists() and "com.example.Bad` is called" in log.read_text(),
            within_s=60,
            otherwise=lambda: log.read_text()[-3000:] if log.exists() else (tmp_path / "log").read_text(),
        )
        assert len(processes(folder)) >= 3, "the worker, the JVM and its Python"
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
        wait_until_all_ended(folder)
    assert not Timeline(lake.uri("wide")).exists
