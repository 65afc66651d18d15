"""What it means to change the files of a pipeline, field by field, before anything is changed."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any

from ingestion.domain.pipelines.definition import PipelineDefinition, PipelineInput, Transformer
from lakehub.kernel.sizes.memory import memory_text

_SHOWN = 12
"""Characters of a digest."""


class Effect(StrEnum):
    """From the least on."""

    SETTINGS = "settings"
    """No job does anything else."""
    LATER_RUNS = "later runs"
    """Rows stay as they are; from the next run on it counts."""
    ALL_ROWS = "all rows"
    """They may be others: the table is recomputed in one commit, and read as before until then."""


@dataclass(frozen=True)
class Change:
    """`before` and `after`: as the files have them; empty: not there."""

    what: str
    before: str
    after: str
    effect: Effect


def digest_of(content: Any) -> str:
    """Of what a plan is for, or was made against: values of JSON. The order of names in it makes no difference."""
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def changes_between(before: PipelineDefinition, after: PipelineDefinition) -> tuple[Change, ...]:
    """None where the files say the same in other words."""
    return tuple(change for change in _all_changes(before, after) if change.before != change.after)


def makes_other_rows(changes: Collection[Change]) -> bool:
    return any(change.effect is Effect.ALL_ROWS for change in changes)


def _all_changes(before: PipelineDefinition, after: PipelineDefinition) -> Iterator[Change]:
    for name in ("team", "tier", "description"):
        yield Change(name, str(getattr(before, name)), str(getattr(after, name)), Effect.SETTINGS)
    yield Change("every", _when(before), _when(after), Effect.LATER_RUNS)
    yield from _named("audit", _audits(before), _audits(after), Effect.LATER_RUNS)
    yield Change("operation", before.operation, after.operation, Effect.LATER_RUNS)
    yield Change("precombine", before.precombine, after.precombine, Effect.ALL_ROWS)
    yield from _named("column", before.columns.types, after.columns.types, Effect.ALL_ROWS)
    yield from _input_changes(before, after)
    yield Change("SELECT", before.transform, after.transform, Effect.ALL_ROWS)
    yield Change("transformers", _transformers(before), _transformers(after), Effect.ALL_ROWS)
    yield Change("resources", _resources(before), _resources(after), Effect.LATER_RUNS)


def _when(pipeline: PipelineDefinition) -> str:
    return "commit" if pipeline.on_commit else str(pipeline.every)


def _audits(pipeline: PipelineDefinition) -> dict[str, str]:
    return {each.name: each.test for each in pipeline.audits}


def _transformers(pipeline: PipelineDefinition) -> str:
    return ", ".join(_shown_transformer(each) for each in pipeline.transformers)


def _shown_transformer(each: Transformer) -> str:
    properties = ", ".join(f"{name}: {text}" for name, text in sorted(each.properties))
    return f"{each.code} {{{properties}}}" if properties else each.code


def _resources(pipeline: PipelineDefinition) -> str:
    asked = pipeline.resources
    if asked is None:
        return ""
    memory = {"memory": asked.memory_mib, "executor_memory": asked.executor_memory_mib}
    numbers = {"cores": asked.cores, "executors": asked.executors, "shuffle_partitions": asked.shuffle_partitions}
    shown = {name: memory_text(mib) for name, mib in memory.items() if mib} | {
        name: str(number) for name, number in numbers.items() if number
    }
    return ", ".join(f"{name}: {text}" for name, text in shown.items())


def code_changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    """Of transformers, by name the digest of the file: as it is registered, and as it is. None of those that are in one of the two only."""
    for name in after:
        if name in before and before[name] != after[name]:
            yield Change(f"code of {name}", before[name][:_SHOWN], after[name][:_SHOWN], Effect.ALL_ROWS)


def _named(kind: str, before: Mapping[str, str], after: Mapping[str, str], effect: Effect) -> Iterator[Change]:
    for name in dict.fromkeys((*before, *after)):
        yield Change(f"{kind} {name}", before.get(name, ""), after.get(name, ""), effect)


def _input_changes(before: PipelineDefinition, after: PipelineDefinition) -> Iterator[Change]:
    known, wanted = ({each.name: each for each in files.inputs} for files in (before, after))
    newly = newly_followed(before.followed, after.followed)
    for name in dict.fromkeys((*known, *wanted)):
        old, new = known.get(name), wanted.get(name)
        is_less = old is not None and new is not None and old.dataset == new.dataset and name not in newly
        yield Change(f"input {name}", _shown(old), _shown(new), Effect.LATER_RUNS if is_less else Effect.ALL_ROWS)


def newly_followed(before: Collection[str], after: Collection[str]) -> tuple[str, ...]:
    """Names of inputs: rows may lack changes of those that were not followed until now. What is not followed any more was followed until now: the rows are right."""
    return tuple(sorted({*after} - {*before}))


def _shown(each: PipelineInput | None) -> str:
    if each is None:
        return ""
    return each.dataset if each.is_followed else f"{each.dataset}, changes ignored"
