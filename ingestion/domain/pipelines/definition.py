"""A pipeline as its three files say it: the target table, its inputs, and the SELECT that makes the one from the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from ingestion.domain.resources.job_resources import JobResources
from ingestion.domain.schema import Schema

DEFAULT_EVERY = timedelta(minutes=15)
UPSERT, INSERT_OVERWRITE = OPERATIONS = ["upsert", "insert_overwrite"]


@dataclass(frozen=True)
class PipelineInput:
    """A dataset that the pipeline reads, by the `name` that the SELECT calls it. `is_followed`: its changes are brought into the target; else they are
    seen by rows that are recomputed for another reason. `line`: of the file that names it."""

    name: str
    dataset: str
    is_followed: bool = True
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Audit:
    """A test of the rows that a job has made, before they are committed. `line`: of the file that says it."""

    name: str
    test: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Transformer:
    """What gets the rows of the SELECT as a DataFrame and returns others: a function of a Python file in the operator's folder, as `fares.py:round_fares`, or a class of
    a jar there, as `fares.jar:com.example.RoundFares`, which gets `properties`, and needs `jars` besides. `line`: of the file that names it."""

    name: str
    line: int = field(default=0, compare=False)
    properties: tuple[tuple[str, str], ...] = ()
    jars: tuple[str, ...] = ()

    @property
    def code(self) -> str:
        """What its digest is of."""
        return " + ".join((self.name, *self.jars))

    @property
    def is_jvm(self) -> bool:
        return ".jar:" in self.name


@dataclass(frozen=True)
class PipelineDefinition:
    """`name` is that of the target dataset as well. `source`: the name of the input that `<SRC>` stands for.

    `precombine`: of rows with one record key the one with the greatest value in this column stays; empty: the SELECT makes each key once.
    `operation`: what a run writes, the rows that changes reach, or the partitions that have such rows as a whole.
    `on_commit`: it runs as soon as an input has a commit, and looks by itself `every` so often as well.
    `transform`: the SELECT, with the source's name in place of `<SRC>`. `transformers`: in this order, after it.
    `resources`: of the session in which jobs make its rows; None: the one that all share. `lines`: of the file, by field; `resource_lines`: the same of those below `resources`.
    """

    name: str
    team: str
    tier: int
    record_key: tuple[str, ...]
    source: str
    inputs: tuple[PipelineInput, ...]
    columns: Schema
    transform: str
    precombine: str = ""
    partition: str = ""
    grain: str = "none"
    partition_tz: str = "UTC"
    operation: str = UPSERT
    every: timedelta = DEFAULT_EVERY
    on_commit: bool = False
    description: str = ""
    audits: tuple[Audit, ...] = ()
    transformers: tuple[Transformer, ...] = ()
    resources: JobResources | None = None
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    resource_lines: Mapping[str, int] = field(default_factory=dict, compare=False)

    @property
    def followed(self) -> frozenset[str]:
        """Names of the inputs whose changes are."""
        return frozenset(each.name for each in self.inputs if each.is_followed)

    @property
    def ignored(self) -> frozenset[str]:
        """Names of the inputs whose changes are not followed."""
        return frozenset(each.name for each in self.inputs if not each.is_followed)
