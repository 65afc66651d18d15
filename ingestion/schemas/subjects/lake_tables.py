"""The tables of the lake that follow a subject: which version each has, and what another one would change in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import OuterRef, Subquery

from ingestion.domain.schema import Schema, SchemaEvolution, UnfitColumnName, evolve_schema, require_one_spelling
from ingestion.heatpipe.subject_schema import SubjectSchema
from ingestion.models import Commit, Finding, SchemaSubject
from ingestion.schemas import registry
from ingestion.schemas.subjects.listing import captured_datasets
from ingestion.schemas.subjects.table_columns import is_change_event
from lakehub.catalog.models import Dataset

_INCOMPATIBLE = "schema_incompatible"
"""The kind of finding, as `ingestion.lake.findings` raises it."""


@dataclass(frozen=True)
class LakeTable:
    """Of a copy. `version`: of the subject, that its columns follow; None: it was not loaded yet, or says nothing of that. `problem`: what of a version does not fit it."""

    data_center: str
    version: int | None
    problem: str


@dataclass(frozen=True)
class TypeChange:
    name: str
    before: str
    after: str


@dataclass(frozen=True)
class LakeEffect:
    """Of a version that is not registered, on the tables of a dataset in these data centers. `refused`: why they cannot follow it; empty: they can, but for
    `conflicts`."""

    dataset: Dataset
    data_centers: tuple[str, ...]
    added: tuple[tuple[str, str], ...] = ()
    """Columns with their types: null until the source has them."""
    widened: tuple[TypeChange, ...] = ()
    conflicts: tuple[TypeChange, ...] = field(default=())
    refused: str = ""

    @property
    def is_none(self) -> bool:
        return not (self.added or self.widened or self.conflicts or self.refused)


def lake_tables(dataset: Dataset) -> list[LakeTable]:
    """By data center. Two queries."""
    newest = Commit.objects.filter(copy=OuterRef("pk"), schema_version__isnull=False).order_by("-completed_at")
    versions = dataset.copies.annotate(followed=Subquery(newest.values("schema_version")[:1]))
    copies = versions.select_related("data_center").order_by("data_center__name")
    findings = Finding.objects.filter(copy__dataset=dataset, kind=_INCOMPATIBLE, cleared_at=None)
    problems = dict(findings.values_list("copy", "detail__message"))
    return [LakeTable(copy.data_center.name, copy.followed, problems.get(copy.pk, "")) for copy in copies]


def lake_effect(subject: SchemaSubject, schema: Any) -> LakeEffect | None:
    """None: no dataset is captured under the subject, or it has no copy."""
    dataset = captured_datasets([subject.name]).get(subject.name)
    names = [] if dataset is None else [*dataset.copies.values_list("data_center__name", flat=True)]
    if dataset is None or not names:
        return None
    of_dataset = LakeEffect(dataset, tuple(sorted(names)))
    if not is_change_event(schema):
        return _refused(of_dataset, "It is no schema of change events.")
    stored, owner = _columns_so_far(subject), "The version"
    try:
        proposed = SubjectSchema(subject.name, 0, 0, schema).row_columns
        proposed.require_lake_names(owner)
        require_one_spelling(stored, proposed, owner)
    except (UnfitColumnName, LookupError, TypeError, ValueError) as problem:
        return _refused(of_dataset, str(problem))
    return _effect(of_dataset, stored, evolve_schema(stored, proposed, fixed=dataset.record_key))


def _columns_so_far(subject: SchemaSubject) -> Schema:
    """What the versions have made of the tables. A schema at a time is in memory."""
    columns = Schema(())
    for version in subject.versions.filter(deprecated_at=None).order_by("version").iterator(chunk_size=10):
        schema = registry.schema_of(version)
        if is_change_event(schema):
            columns = evolve_schema(columns, SubjectSchema(subject.name, 0, 0, schema).row_columns).target
    return columns


def _effect(of_dataset: LakeEffect, stored: Schema, evolution: SchemaEvolution) -> LakeEffect:
    types, before = evolution.target.types, stored.types
    return LakeEffect(
        of_dataset.dataset,
        of_dataset.data_centers,
        tuple((name, types[name]) for name in evolution.added),
        _changes((name, before[name], types[name]) for name in evolution.widened),
        _changes(evolution.conflicts),
    )


def _changes(changes: Iterable[tuple[str, str, str]]) -> tuple[TypeChange, ...]:
    return tuple(TypeChange(*change) for change in changes)


def _refused(of_dataset: LakeEffect, why: str) -> LakeEffect:
    return LakeEffect(of_dataset.dataset, of_dataset.data_centers, refused=why)
