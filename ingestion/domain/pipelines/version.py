"""By which version of a pipeline the rows of a table were made: a note in the checkpoint, compared with the pipeline as it is registered now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ingestion.domain.pipelines.definition import PipelineDefinition
from ingestion.domain.pipelines.plan import Effect, changes_between, code_changes, digest_of, newly_followed
from ingestion.domain.schema import Schema

_NO_PIPELINE = PipelineDefinition("", "", 0, (), "", (), Schema(()), "")
_DIGEST_LENGTH = 16
_WORDS = {"column": "columns", "input": "inputs", "code": "code of transformers"}


@dataclass(frozen=True)
class PipelineVersion:
    """`files`: a digest of their texts and of the code of the transformers. `facts`: by kind, in the words of the plan, a digest of what all rows depend on. `followed`: the
    names of the inputs whose changes are followed."""

    files: str
    facts: dict[str, str]
    followed: tuple[str, ...]

    @property
    def note(self) -> dict[str, Any]:
        """For the checkpoint: it equals what is read back from JSON."""
        return {"files": self.files, "facts": dict(self.facts), "followed": [*self.followed]}

    def changes_since(self, note: Mapping[str, Any] | None) -> str:
        """Why rows that the version of `note` made may be others by this one, as a clause. Empty: they are the same, or the table has no note because an earlier version of
        Lakehub made it."""
        # Equal files make equal rows, also where another version of Lakehub normalises their SELECT differently.
        if note is None or note["files"] == self.files:
            return ""
        stored = note["facts"]
        if kinds := [kind for kind in sorted({*stored, *self.facts}) if stored.get(kind) != self.facts.get(kind)]:
            changed = ", ".join(_WORDS.get(kind, kind) for kind in kinds)
            return f"the pipeline has changed since these rows were made ({changed})"
        names = ", ".join(f"`{name}`" for name in newly_followed(note["followed"], self.followed))
        return f"changes of {names} were ignored until now" if names else ""


def version_of(pipeline: PipelineDefinition, files: Mapping[str, str], code: Mapping[str, str]) -> PipelineVersion:
    """`files`: the texts from which `pipeline` was read. `code`: for each of its transformers, by its code, the digest of its files; empty: not known."""
    # Whether an input is followed is compared separately: it matters in one direction only.
    all_followed = replace(pipeline, inputs=tuple(replace(each, is_followed=True) for each in pipeline.inputs))
    changes = (*changes_between(_NO_PIPELINE, all_followed), *code_changes(dict.fromkeys(code, ""), code))
    facts = defaultdict[str, list[tuple[str, str]]](list)
    for change in changes:
        if change.effect is Effect.ALL_ROWS:
            facts[change.what.partition(" ")[0]].append((change.what, change.after))
    return PipelineVersion(
        _digest([dict(files), dict(code)]),
        {kind: _digest(sorted(those)) for kind, those in sorted(facts.items())},
        tuple(sorted(pipeline.followed)),
    )


def _digest(value: Any) -> str:
    return digest_of(value)[:_DIGEST_LENGTH]
