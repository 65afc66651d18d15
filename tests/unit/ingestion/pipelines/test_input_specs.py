"""What a job of a pipeline is told of its inputs."""

from __future__ import annotations

from ingestion.domain.pipelines.reading import read_pipeline
from ingestion.pipelines.input_specs import input_specs
from ingestion.spark.contract.spec import PipelineInputSpec
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE, TABLE, TRANSFORM


def test_an_input_has_its_place_and_only_one_that_is_followed_has_queries() -> None:
    file = PIPELINE.replace("airlines: airlines", "airlines: {dataset: airlines, changes: ignored}")
    sql = TRANSFORM.replace("a.name", "f.carrier")
    texts = {"table.sql": TABLE, "pipeline.yaml": file + "operation: insert_overwrite\n", "transform.sql": sql}
    columns = {"flights": ("day", "carrier", "delay"), "airlines": ("carrier", "name")}
    pipeline = read_pipeline(texts, columns)
    flights, airlines = input_specs(pipeline, columns, {"flights": "file:///lake/f", "airlines": "file:///lake/a"})
    assert (flights.name, flights.uri, flights.partition_source) == ("flights", "file:///lake/f", "day")
    assert "lakehub_changed_flights" in flights.affected_keys
    assert "lakehub_changed_flights" in flights.affected_partitions
    assert airlines == PipelineInputSpec("airlines", "file:///lake/a")
