"""The resources that a pipeline asks for: how they are written, what is allowed, and which launcher and session they lead to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from ingestion.domain.pipelines.plan import Effect, changes_between
from ingestion.domain.pipelines.reading import read_pipeline
from ingestion.domain.resources.job_resources import JobResources, ResourceLimits, excess
from ingestion.launchers.shared_or_own import SharedOrOwnSession
from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import SUCCEEDED, JobReport
from ingestion.spark.contract.spec import (
    JobSpec,
    PipelineInputSpec,
    PipelineSpec,
    SourceSpec,
    TableSpec,
    TransformerSpec,
)
from ingestion.spark.session import sized_settings
from lakehub.kernel.sizes.memory import memory_mib, memory_text
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE, TABLE, TRANSFORM, problems

ASKED = "resources:\n  memory: 4g\n  cores: 3\n  shuffle_partitions: 64\n"


def read(resources: str) -> JobResources | None:
    texts = {"table.sql": TABLE, "pipeline.yaml": PIPELINE + resources, "transform.sql": TRANSFORM}
    return read_pipeline(texts).resources


def test_they_are_read_by_plain_names_and_by_sparks() -> None:
    assert read("") is None
    assert read(ASKED) == JobResources(memory_mib=4096, cores=3, shuffle_partitions=64)
    of_spark = "resources: {spark.driver.memory: 1536m, spark.executor.memory: 2G, spark.executor.cores: 4, spark.executor.instances: 8, spark.sql.shuffle.partitions: 200}\n"
    assert read(of_spark) == JobResources(1536, 4, 8, 2048, 200)


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        ("resources: 4g\n", "pipeline.yaml:11: `resources` has fields"),
        ("resources: {}\n", "pipeline.yaml:11: `resources` has fields"),
        ("resources:\n", "pipeline.yaml:11: `resources` has fields"),
        ("resources: [4g]\n", "pipeline.yaml:11: `resources` has fields"),
        ("resource:\n  memory: 4g\n", "pipeline.yaml:11: There is no field `resource`. Did you mean `resources`?"),
        ("resources:\n  cores: 2\n  memry: 4g\n", "pipeline.yaml:13: `resources` has no field `memry`. Did you mean `memory`?"),
        ("resources:\n  spark.executor.core: 4\n", "pipeline.yaml:12: `resources` has no field `spark.executor.core`. Did you mean `spark.executor.cores`?"),
        ("resources:\n  spark.jars: /tmp/x.jar\n", "pipeline.yaml:12: `resources` has no field `spark.jars`."),
        ("resources:\n  memory: 4g\n  spark.driver.memory: 2g\n", "pipeline.yaml:13: `spark.driver.memory` says `memory` once more."),
        ("resources:\n  memory: lots\n", "pipeline.yaml:12: `memory` is 'lots': write memory from 512m on, such as 2g or 1536m."),
        ("resources:\n  memory: 100m\n", "pipeline.yaml:12: `memory` is '100m'"),
        ("resources:\n  memory: 4g -XX:+Evil\n", "pipeline.yaml:12: `memory` is '4g -XX:+Evil'"),
        ("resources:\n  memory: 9999999999t\n", "pipeline.yaml:12: `memory` is '9999999999t'"),
        ("resources:\n  memory: {a: 1}\n", "pipeline.yaml:12: `memory` is no single value"),
        ("resources:\n  cores: 0\n", "pipeline.yaml:12: `cores` is '0': write a whole number from 1 to 1,000."),
        ("resources:\n  cores: -2\n", "pipeline.yaml:12: `cores` is '-2'"),
        ("resources:\n  cores: ٣\n", "pipeline.yaml:12: `cores` is '٣'"),
        ("resources:\n  cores: 2]\n", "pipeline.yaml:12: `cores` is '2]'"),
        ("resources:\n  shuffle_partitions: 1000000\n", "pipeline.yaml:12: `shuffle_partitions` is '1000000': write a whole number from 1 to 100,000."),
    ],
)  # fmt: skip
def test_what_is_none_is_refused_with_its_line(resources: str, why: str) -> None:
    assert any(problem.startswith(why) for problem in problems(pipeline=PIPELINE + resources)), problems(pipeline=PIPELINE + resources)  # fmt: skip


def test_others_are_about_later_runs_only() -> None:
    before, after = (
        read_pipeline({"table.sql": TABLE, "pipeline.yaml": PIPELINE + resources, "transform.sql": TRANSFORM})
        for resources in ("", ASKED)
    )
    (change,) = changes_between(before, after)
    assert (change.what, change.before, change.after) == ("resources", "", "memory: 4g, cores: 3, shuffle_partitions: 64")  # fmt: skip
    assert change.effect is Effect.LATER_RUNS
    turned = ASKED.replace("memory: 4g", "spark.driver.memory: 4096m")
    assert not changes_between(after, read_pipeline({"table.sql": TABLE, "pipeline.yaml": PIPELINE + turned, "transform.sql": TRANSFORM}))  # fmt: skip


def test_on_one_machine_the_driver_counts_and_on_a_cluster_all_executors() -> None:
    asked = JobResources(memory_mib=1024, cores=4, executors=3, executor_memory_mib=2048)
    assert excess(asked, ResourceLimits(1024, 4)) == {}
    assert excess(asked, ResourceLimits(7168, 12, on_cluster=True)) == {}
    few = excess(asked, ResourceLimits(1023, 3))
    assert few["memory"].startswith("`resources` asks for 1g of memory, and this instance allows 1023m for a session.")
    assert "LAKEHUB_SPARK_MAX_MEMORY" in few["memory"]
    assert few["cores"].startswith("`resources` asks for 4 cores, and this instance allows 3 for a session.")
    assert "LAKEHUB_SPARK_MAX_CORES" in few["cores"]
    few = excess(asked, ResourceLimits(7167, 11, on_cluster=True))
    assert few["executor_memory"].startswith("`resources` asks for 7g of memory in all")
    assert few["cores"].startswith("`resources` asks for 12 cores in all")
    assert excess(JobResources(shuffle_partitions=9), ResourceLimits(0, 0, on_cluster=True)) == {}


def test_a_session_has_what_was_asked_for_and_on_a_cluster_no_executor_more() -> None:
    asked = JobResources(memory_mib=1536, cores=3, executors=2, executor_memory_mib=2048, shuffle_partitions=9)
    assert sized_settings(asked, "local[2]") == {
        "spark.master": "local[3]",
        "spark.driver.memory": "1536m",
        "spark.sql.shuffle.partitions": "9",
    }
    assert sized_settings(asked, "spark://host:7077") == {
        "spark.driver.memory": "1536m",
        "spark.executor.cores": "3",
        "spark.executor.instances": "2",
        "spark.executor.memory": "2048m",
        "spark.cores.max": "6",
        "spark.dynamicAllocation.enabled": "false",
        "spark.sql.shuffle.partitions": "9",
    }
    assert sized_settings(JobResources(cores=8), "local[2]") == {"spark.master": "local[8]", "spark.sql.shuffle.partitions": "8"}  # fmt: skip
    assert sized_settings(JobResources(memory_mib=600), "yarn") == {"spark.driver.memory": "600m"}


@pytest.mark.parametrize(("text", "mib"), [("4g", 4096), ("512m", 512), ("1024", 1024), ("1t", 1024**2), ("2048K", 2), ("3GB", 3072), ("", None), ("g", None), ("-1g", None), ("1.5g", None)])  # fmt: skip
def test_memory_is_read_as_spark_writes_it(text: str, mib: int | None) -> None:
    assert memory_mib(text) == mib
    if mib:
        assert memory_mib(memory_text(mib)) == mib


@dataclass
class Remembering:
    """A launcher that runs nothing. `closed`: how often."""

    runs: list[str] = field(default_factory=list)
    closed: int = 0

    def run(self, spec: JobSpec, secrets: object, lease: object = None, guidance: object = None) -> JobReport:
        self.runs.append(spec.run_id)
        return JobReport(spec.run_id, SUCCEEDED)

    def progress(self, run_id: str) -> JobProgress | None:
        return JobProgress(run_id, 0.0, 0, None, 0, 0) if run_id in self.runs else None

    def close(self) -> None:
        self.closed += 1


TABLE_SPEC = TableSpec("wide", "file:///lake/wide", "file:///lake/_errors/wide", ("id",))
PIPELINE_SPEC = PipelineSpec((PipelineInputSpec("f", "file:///lake/f"),), "SELECT 1", {"id": "long"})


def spec_of(run: str, pipeline: PipelineSpec | None) -> JobSpec:
    source = None if pipeline else SourceSpec("sql", "env:X", "x")
    return JobSpec(run, "bootstrap", TABLE_SPEC, source, pipeline)


def test_a_job_that_asks_for_its_own_size_or_brings_a_jar_has_a_session_of_its_own() -> None:
    shared, own = Remembering(), Remembering()
    launcher = SharedOrOwnSession(shared, own)
    python, jvm = TransformerSpec("fares.py:f"), TransformerSpec("fares.jar:com.example.F")
    for spec in (
        spec_of("source", None),
        spec_of("plain", PIPELINE_SPEC),
        spec_of("python", replace(PIPELINE_SPEC, transformers=(python,))),
        spec_of("sized", replace(PIPELINE_SPEC, resources=JobResources(cores=1))),
        spec_of("jar", replace(PIPELINE_SPEC, transformers=(python, jvm))),
    ):
        launcher.run(JobSpec.from_json(spec.to_json()), {})
        progress = launcher.progress(spec.run_id)
        assert progress is not None
        assert progress.phase == spec.run_id
    assert (shared.runs, own.runs) == (["source", "plain", "python"], ["sized", "jar"])
    launcher.close()
    assert (shared.closed, own.closed) == (1, 1)
