"""Transformers that a pipeline names: whether they are in the operator's folder, as far as this machine can see it, and what jobs are told of them."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings

from ingestion.domain.pipelines.definition import PipelineDefinition
from ingestion.domain.pipelines.pipeline_file import PIPELINE_FILE
from ingestion.domain.pipelines.problems import Problem
from ingestion.spark.contract.spec import TransformerSpec
from ingestion.spark.etl.transformers.files import NoTransformer, read_transformer


def transformers_folder() -> str:
    return str(settings.LAKEHUB_TRANSFORMERS)


def check_transformers(pipeline: PipelineDefinition, problems: list[Problem]) -> dict[str, str]:
    """By name the digests of their files, which jobs compare with those that they have. What is wrong is added to `problems`."""
    folder, digests = transformers_folder(), dict[str, str]()
    for each in pipeline.transformers:
        try:
            digests[each.name] = read_transformer(folder, each.name).digest
        except NoTransformer as problem:
            problems.append(Problem(PIPELINE_FILE, each.line, str(problem)))
    return digests


def transformer_specs(pipeline: PipelineDefinition, digests: Mapping[str, str]) -> tuple[TransformerSpec, ...]:
    return tuple(TransformerSpec(each.name, digests.get(each.name, "")) for each in pipeline.transformers)
