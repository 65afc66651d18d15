"""What has to be kept of a row so that later and late changes merge correctly, and its compact form.

The state is bounded: at most one version for each column, one tombstone, and one position for each data center that forced a change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ingestion.domain.merging.events import LogPosition, Version


class ColumnState(NamedTuple):
    """A column's value, and the version that a change must exceed to replace it."""

    value: Any
    version: Version


@dataclass(frozen=True)
class RowState:
    """A row of a table, deleted ones included; its row key is the key under which it is stored.

    `columns`: only those that some event gave. A column with an older version than the tombstone is not kept.
    `tombstone`: the version of the latest delete, also kept after newer columns have brought the row back.
    `forced`: for each data center the position of the last `force_update`, so that a repetition is not applied again.
    """

    columns: Mapping[str, ColumnState] = field(default_factory=dict)
    tombstone: Version | None = None
    forced: Mapping[str, LogPosition] = field(default_factory=dict)

    @property
    def is_deleted(self) -> bool:
        return not self.columns

    @property
    def values(self) -> dict[str, Any]:
        return {name: column.value for name, column in self.columns.items()}


class ChangelogColumns(NamedTuple):
    """A version, and the columns that have it, sorted by name: one entry of the changelog columns of DBEvents."""

    version: Version
    names: tuple[str, ...]


def changelog_columns(row: RowState) -> tuple[ChangelogColumns, ...]:
    """The versions of a row's columns, newest first, each once: a single entry for a row that one event wrote as a whole."""
    names_by_version = defaultdict(list)
    for name, column in row.columns.items():
        names_by_version[column.version].append(name)
    newest_first = sorted(names_by_version, reverse=True)
    return tuple(ChangelogColumns(version, tuple(sorted(names_by_version[version]))) for version in newest_first)


def columns_from_changelog(changelog: Iterable[ChangelogColumns], values: Mapping[str, Any]) -> dict[str, ColumnState]:
    """The columns of a row again, from its changelog columns and the values that the table holds.

    A column of the table that is in no entry was never given, and its null is not a value.
    """
    return {name: ColumnState(values[name], entry.version) for entry in changelog for name in entry.names}
