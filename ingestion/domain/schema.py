"""The columns of sources and tables, and how a table's schema may change. Their types: `column_types`.

A schema evolves on write only: columns are added (nullable) and types widen; nothing is renamed or dropped in place (DBEvents does the same).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ingestion.domain.column_types import UnknownType, evolve_type, parse_type, unfit_field_names
from lakehub.kernel.lake_names import names_unfit_for_the_lake, unfit_names_text
from lakehub.kernel.suggest import did_you_mean


class UnknownColumn(LookupError):
    """A column was named that the schema lacks."""


class UnfitColumnName(ValueError):
    """A column has a name that tables of the lake cannot have."""


@dataclass(frozen=True)
class SchemaColumn:
    """`type` is a type's text (`parse_type`). Timestamps are instants in UTC to the microsecond."""

    name: str
    type: str

    def __post_init__(self) -> None:
        try:
            parse_type(self.type)
        except UnknownType as wrong:
            raise UnknownType(f"The type of the column `{self.name}` is unknown. {wrong}") from None


@dataclass(frozen=True)
class Schema:
    """Columns in order, each name once."""

    columns: tuple[SchemaColumn, ...]

    @classmethod
    def of(cls, types: Mapping[str, str]) -> Schema:
        return cls(tuple(SchemaColumn(name, type_) for name, type_ in types.items()))

    def __iter__(self) -> Iterator[SchemaColumn]:
        return iter(self.columns)

    def __contains__(self, name: object) -> bool:
        return any(column.name == name for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def types(self) -> dict[str, str]:
        return {column.name: column.type for column in self.columns}

    def require(self, names: Iterable[str], owner: str) -> None:
        """Raise UnknownColumn for the first of `names` that is missing; `owner` says whose schema this is."""
        for name in names:
            if name not in self:
                raise UnknownColumn(f"{owner} has no column `{name}`.{did_you_mean(name, self.names)}")

    def require_lake_names(self, owner: str) -> None:
        """Raise UnfitColumnName where a column, or a field in one, could be written and not be read, or not even written."""
        fields = (path for column in self for path in unfit_field_names(parse_type(column.type), column.name))
        if unfit := (*names_unfit_for_the_lake(self.names), *fields):
            raise UnfitColumnName(
                f"{owner} cannot be loaded. {unfit_names_text(unfit)} Rename them at the source, or load a view that does."
            )


def require_one_spelling(stored: Schema, arriving: Schema, owner: str) -> None:
    """Raise UnfitColumnName where a column that arrives is spelt otherwise in the table: Spark takes `Amount` and `amount` for one, and could
    not read a table that has both. `owner` says whose columns arrive."""
    spellings = {name.casefold(): name for name in stored.names}
    for name in arriving.names:
        stored_name = spellings.get(name.casefold(), name)
        if name != stored_name:
            raise UnfitColumnName(
                f"{owner} has the column `{name}`, and the table in the lake has it as `{stored_name}`: names there differ by more than their "
                f"case. Nothing was written. Name the column `{stored_name}` again at the source, or load a view that does; to have it as "
                f"`{name}`, drop the copy and let it be loaded anew."
            )


@dataclass(frozen=True)
class SchemaEvolution:
    """What a batch means for a table: `target` is the table's schema afterwards, `conflicts` are {column: (stored type, incoming type)}. `refused`: why
    the table cannot follow a version of the schema at all; empty: it can."""

    target: Schema
    added: tuple[str, ...] = ()
    widened: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    conflicts: tuple[tuple[str, str, str], ...] = ()
    refused: str = ""


def evolve_schema(stored: Schema, incoming: Schema, *, fixed: Iterable[str] = ()) -> SchemaEvolution:
    """Stored columns keep their order and new ones follow. `fixed` columns (keys) never change their type.

    A conflict is no error here: the stored type stays, each value has to fit it, and those that don't go to the error table.
    Within a nested column it is named by its path, `items[].price`.
    """
    fixed_names = frozenset(fixed)
    arriving, target = incoming.types, stored.types
    widened: list[str] = []
    conflicts: list[tuple[str, str, str]] = []
    for name, type_ in stored.types.items():
        if name not in arriving or name in fixed_names or arriving[name] == type_:
            continue
        evolution = evolve_type(parse_type(type_), parse_type(arriving[name]), name)
        target[name] = str(evolution.target)
        conflicts += evolution.conflicts
        if target[name] != type_:
            widened.append(name)
    added = tuple(name for name in arriving if name not in stored)
    target |= {name: arriving[name] for name in added}
    missing = tuple(name for name in stored.names if name not in arriving)
    return SchemaEvolution(Schema.of(target), added, tuple(widened), missing, tuple(conflicts))
