"""Transformers that a pipeline names: whether they are in the operator's folder, as far as this machine can see it, and what jobs are told of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from django.conf import settings

from ingestion.domain.pipelines.definition import PipelineDefinition, Transformer
from ingestion.domain.pipelines.pipeline_file import PIPELINE_FILE, read_pipeline_file
from ingestion.domain.pipelines.problems import Problem
from ingestion.models import Pipeline
from ingestion.spark.contract.spec import TransformerSpec
from ingestion.spark.etl.transformers.files import NoTransformer, read_transformer
from ingestion.spark.etl.transformers.jars import read_jars


class CodeState(StrEnum):
    AS_REGISTERED = "as registered"
    CHANGED = "changed"
    """The folder has other code than what was registered."""
    GONE = "gone"
    NOT_KNOWN = "not known"


@dataclass(frozen=True)
class TransformerState:
    """`why`: what its state means, in a sentence; empty: it is as registered."""

    name: str
    state: CodeState
    why: str = ""


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


def _files(transformer: Transformer) -> str:
    return ", ".join((transformer.name.partition(":")[0], *transformer.jars))


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


def transformer_states(registered: Pipeline) -> list[TransformerState]:
    """In the order in which they run: the code in the folder of this machine against the code that was registered."""
    facts = read_pipeline_file(registered.files.get(PIPELINE_FILE, ""), []).facts
    return [
        _state_of(each, registered.transformer_digests.get(each.code, "")) for each in facts.get("transformers", ())
    ]


def _state_of(transformer: Transformer, registered: str) -> TransformerState:
    name, folder = transformer.code, transformers_folder()
    if not folder or not Path(folder).is_dir():
        return TransformerState(
            name, CodeState.NOT_KNOWN, "The folder of transformers is not on the machine of this page."
        )
    try:
        digest = _digest(folder, transformer)
    except NoTransformer as problem:
        return TransformerState(name, CodeState.GONE, f"{problem} Until then runs fail.")
    if not registered:
        return TransformerState(
            name,
            CodeState.NOT_KNOWN,
            "Its code was not read when the pipeline was registered: runs take what they find.",
        )
    if digest != registered:
        return TransformerState(
            name,
            CodeState.CHANGED,
            f"{_files(transformer)} was changed since it was registered, so runs fail. Register the pipeline again, and all rows are made by the new code.",
        )
    return TransformerState(name, CodeState.AS_REGISTERED)
