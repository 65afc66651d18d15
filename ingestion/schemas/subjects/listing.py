"""The list of subjects: filters with their counts, and for a page of them the newest version and the dataset whose changes it describes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, OuterRef, QuerySet, Subquery

from ingestion.models import Capture, SchemaSubject, SchemaVersion
from ingestion.schemas.subjects.table_columns import column_count
from lakehub.catalog.models import Dataset


@dataclass(frozen=True)
class SubjectFilters:
    """Empty: all. `q`: in the name. `team_keys`: of the teams that count; None: of all."""

    q: str = ""
    teams: frozenset[str] = frozenset()
    rules: frozenset[str] = frozenset()
    team_keys: frozenset[int] | None = None

    @property
    def any(self) -> bool:
        return self != SubjectFilters()


@dataclass(frozen=True)
class NewestVersion:
    schema_id: int
    version: int
    columns: int
    registered_at: datetime
    registered_by: str
    deprecated_why: str


@dataclass(frozen=True)
class SubjectRow:
    """`dataset`: the one whose changes are captured under this subject."""

    subject: SchemaSubject
    newest: NewestVersion | None
    dataset: Dataset | None


def subjects_matching(filters: SubjectFilters) -> QuerySet[SchemaSubject]:
    """By name. `newest_key` is the key of the newest version."""
    newest = SchemaVersion.objects.filter(subject=OuterRef("pk")).order_by("-version").values("pk")[:1]
    subjects = SchemaSubject.objects.select_related("team").annotate(newest_key=Subquery(newest)).order_by("name")
    if filters.q:
        subjects = subjects.filter(name__icontains=filters.q)
    if filters.teams:
        subjects = subjects.filter(team__name__in=filters.teams)
    if filters.rules:
        subjects = subjects.filter(compatibility__in=filters.rules)
    return subjects if filters.team_keys is None else subjects.filter(team__in=filters.team_keys)


def subject_rows(subjects: Sequence[SchemaSubject]) -> list[SubjectRow]:
    """Of `subjects_matching`. Two queries."""
    newest = _newest_versions([key for each in subjects if (key := getattr(each, "newest_key", None))])
    datasets = captured_datasets([each.name for each in subjects])
    return [
        SubjectRow(each, newest.get(getattr(each, "newest_key", None) or 0), datasets.get(each.name))
        for each in subjects
    ]


def captured_datasets(names: Sequence[str]) -> dict[str, Dataset]:
    """By subject the dataset whose changes are captured under it. One query."""
    captures = Capture.objects.filter(topic__in=names, feed__dataset__offboarded_at=None)
    return {capture.topic: capture.feed.dataset for capture in captures.select_related("feed__dataset")}


def count_by_team() -> dict[str, int]:
    return dict(SchemaSubject.objects.order_by("team__name").values_list("team__name").annotate(subjects=Count("pk")))


def count_by_rule() -> dict[str, int]:
    return dict(
        SchemaSubject.objects.order_by("compatibility").values_list("compatibility").annotate(subjects=Count("pk"))
    )


def _newest_versions(keys: Sequence[int]) -> dict[int, NewestVersion]:
    """A schema at a time is in memory: they may be large."""
    versions = SchemaVersion.objects.filter(pk__in=keys).iterator(chunk_size=10)
    return {
        each.pk: NewestVersion(
            each.pk,
            each.version,
            column_count(json.loads(each.text)),
            each.registered_at,
            each.registered_by,
            each.deprecated_why,
        )
        for each in versions
    }
