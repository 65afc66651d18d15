"""Transformers that a pipeline names: whether they are in the operator's folder, as far as this machine can see it, and what jobs are told of them."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings

from ingestion.domain.pipelines.definition import PipelineDefinition, Transformer
from ingestion.domain.pipelines.pipeline_file import PIPELINE_FILE
from ingestion.domain.pipelines.problems import Problem
from ingestion.spark.contract.spec import TransformerSpec
from ingestion.spark.etl.transformers.files import NoTransformer, read_transformer
from ingestion.spark.etl.transformers.jars import read_jars


def transformers_folder() -> str:
    return str(settings.LAKEHUB_TRANSFORMERS)


def check_transformers(pipeline: PipelineDefinition, problems: list[Problem]) -> dict[str, str]:
    """By `code` of each the digest of its files, which jobs compare with those that they have. What is wrong is added to `problems`."""
    folder, digests = transformers_folder(), dict[str, str]()
    for each in pipeline.transformers:
        try:
            digests[each.code] = _digest(folder, each)
        except NoTransformer as problem:
            problems.append(Problem(PIPELINE_FILE, each.line, str(problem)))
    return digests


def _digest(folder: str, transformer: Transformer) -> str:
    """Raises NoTransformer."""
    if transformer.is_jvm:
        return read_jars(folder, transformer.name, transformer.jars).digest
    return read_transformer(folder, transformer.name).digest


def transformer_specs(pipeline: PipelineDefinition, digests: Mapping[str, str]) -> tuple[TransformerSpec, ...]:
    return tuple(
        TransformerSpec(each.name, digests.get(each.code, ""), dict(each.properties), each.jars)
        for each in pipeline.transformers
    )
