"""What a job of a pipeline is told of its inputs, from the files alone: no database is asked."""

from __future__ import annotations

from collections.abc import Mapping

from ingestion.domain.pipelines.affected.affected_keys import affected_keys, affected_partitions, partition_source
from ingestion.domain.pipelines.affected.query_shape import Columns, QueryShape
from ingestion.domain.pipelines.definition import PipelineDefinition, PipelineInput
from ingestion.spark.contract.spec import PipelineInputSpec


def input_specs(
    pipeline: PipelineDefinition, columns: Columns, uris: Mapping[str, str]
) -> tuple[PipelineInputSpec, ...]:
    """`columns` and `uris`: of the inputs, by what the SELECT calls them. Raises NotFollowed."""
    shape = QueryShape.of(pipeline.transform, columns, pipeline.ignored)
    return tuple(_input_spec(each, pipeline, shape, uris[each.name]) for each in pipeline.inputs)


def _input_spec(each: PipelineInput, pipeline: PipelineDefinition, shape: QueryShape, uri: str) -> PipelineInputSpec:
    if not each.is_followed:
        return PipelineInputSpec(each.name, uri)
    return PipelineInputSpec(
        each.name,
        uri,
        affected_keys(shape, pipeline.record_key, each.name),
        affected_partitions(shape, pipeline, each.name),
        partition_source(shape, pipeline, each.name),
    )
