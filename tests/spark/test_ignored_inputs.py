"""A pipeline with an input whose changes are ignored: the others are followed, whatever happens to it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ingestion.domain.pipelines.definition import PipelineInput
from ingestion.spark.contract.report import NOTHING_TO_DO
from ingestion.spark.tables.timeline import Timeline
from tests.spark.pipeline_lake import InputTable, PipelineLake, pipeline_of

TABLES = {
    "flights": InputTable({"id": "long", "tail": "string", "delay": "int"}, ("id",)),
    "planes": InputTable({"tail": "string", "maker": "string"}, ("tail",)),
}
WIDE = replace(
    pipeline_of(
        "SELECT f.id, p.maker, f.delay FROM flights f JOIN planes p ON f.tail = p.tail",
        {"id": "long", "maker": "string", "delay": "int"},
        ("id",),
        "flights",
    ),
    inputs=(PipelineInput("flights", "flights"), PipelineInput("planes", "planes", is_followed=False)),
)


def loaded_lake(spark: SparkSession, folder: Path) -> PipelineLake:
    lake = PipelineLake(spark, folder, TABLES, {"wide": WIDE})
    lake.put("flights", [(n, f"N{n % 2}", n) for n in range(4)])
    lake.put("planes", [("N0", "Boeing"), ("N1", "Airbus")])
    assert lake.run("bootstrap").error is None
    return lake


def stored(lake: PipelineLake) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in lake.stored("wide").collect())


def test_a_deleted_flight_goes_though_its_plane_has_gone_before(spark: SparkSession, tmp_path: Path) -> None:
    lake = loaded_lake(spark, tmp_path)
    lake.remove("planes", [("N0", "")])
    before, report = Timeline(lake.uri("wide")).latest_completion(), lake.run("incremental")
    assert (report.error, report.status) == (None, NOTHING_TO_DO), "nobody follows the planes"
    assert Timeline(lake.uri("wide")).latest_completion() == before, "an empty commit would only cost readers time"
    latest = {name: Timeline(lake.uri(name)).latest_completion() for name in TABLES}
    assert (report.checkpoint or {})["inputs"] == latest, "files of planes are not kept for it"
    lake.remove("flights", [(0, "", 0)])
    lake.put("flights", [(1, "N1", 100)])
    assert lake.run("incremental").error is None
    assert stored(lake) == [(1, "Airbus", 100), (2, "Boeing", 2), (3, "Airbus", 3)]


def test_a_table_that_was_built_anew_makes_no_other_rows_anew(spark: SparkSession, tmp_path: Path) -> None:
    lake = loaded_lake(spark, tmp_path)
    shutil.rmtree(tmp_path / "lake" / "planes")
    lake.put("planes", [("N0", "Comac"), ("N1", "Embraer")])
    lake.put("flights", [(1, "N1", 100)])
    report = lake.run("incremental")
    assert (report.error, "made_anew" in report.output) == (None, False)
    assert stored(lake) == [(0, "Boeing", 0), (1, "Embraer", 100), (2, "Boeing", 2), (3, "Airbus", 3)]
