"""Transformers that a pipeline names: whether they are in the operator's folder, as far as this machine can see it, and what jobs are told of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from django.conf import settings

from ingestion.domain.pipelines.definition import PipelineDefinition
from ingestion.domain.pipelines.pipeline_file import PIPELINE_FILE, read_pipeline_file
from ingestion.domain.pipelines.problems import Problem
from ingestion.models import Pipeline
from ingestion.spark.contract.spec import TransformerSpec
from ingestion.spark.etl.transformers.files import NoTransformer, read_transformer


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


def transformer_states(registered: Pipeline) -> list[TransformerState]:
    """In the order in which they run: the code in the folder of this machine against the code that was registered."""
    facts = read_pipeline_file(registered.files.get(PIPELINE_FILE, ""), []).facts
    return [
        _state_of(each.name, registered.transformer_digests.get(each.name, ""))
        for each in facts.get("transformers", ())
    ]


def _state_of(name: str, digest: str) -> TransformerState:
    folder = transformers_folder()
    if not folder or not Path(folder).is_dir():
        return TransformerState(
            name, CodeState.NOT_KNOWN, "The folder of transformers is not on the machine of this page."
        )
    try:
        code = read_transformer(folder, name)
    except NoTransformer as problem:
        return TransformerState(name, CodeState.GONE, f"{problem} Until then runs fail.")
    if not digest:
        return TransformerState(
            name,
            CodeState.NOT_KNOWN,
            "Its code was not read when the pipeline was registered: runs take what they find.",
        )
    if code.digest != digest:
        return TransformerState(
            name,
            CodeState.CHANGED,
            f"{code.file} was changed since it was registered, so runs fail. Register the pipeline again, and all rows are made by the new code.",
        )
    return TransformerState(name, CodeState.AS_REGISTERED)
