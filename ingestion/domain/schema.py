"""The few column types that every source and table speak, and how a table's schema may change.

A schema evolves on write only: columns are added (nullable) and types widen; nothing is renamed or dropped in place (DBEvents does the same).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lakehub.kernel.lake_names import names_unfit_for_the_lake, unfit_names_text
from lakehub.kernel.suggest import did_you_mean

SIMPLE_TYPES = ("boolean", "int", "long", "float", "double", "string", "binary", "date", "timestamp")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_WIDENINGS = {("int", "long"), ("float", "double")}


class UnknownType(ValueError):
    """No column type has that name."""


class UnknownColumn(LookupError):
    """A column was named that the schema lacks."""


class UnfitColumnName(ValueError):
    """A column has a name that tables of the lake cannot have."""


@dataclass(frozen=True)
class SchemaColumn:
    """`type` is one of SIMPLE_TYPES or `decimal(precision,scale)`. Timestamps are instants in UTC to the microsecond."""

    name: str
    type: str

    def __post_init__(self) -> None:
        if self.type not in SIMPLE_TYPES and not _DECIMAL.fullmatch(self.type):
            raise UnknownType(
                f"Column `{self.name}` has the unknown type `{self.type}`.{did_you_mean(self.type, [*SIMPLE_TYPES, 'decimal(10,2)'])}"
            )


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
        """Raise UnfitColumnName where a column could be written and not be read, or not even written."""
        if unfit := names_unfit_for_the_lake(self.names):
            raise UnfitColumnName(
                f"{owner} cannot be loaded. {unfit_names_text(unfit)} Rename them at the source, or load a view that does."
            )


@dataclass(frozen=True)
class SchemaEvolution:
    """What a batch means for a table: `target` is the table's schema afterwards, `conflicts` are {column: (stored type, incoming type)}."""

    target: Schema
    added: tuple[str, ...] = ()
    widened: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    conflicts: tuple[tuple[str, str, str], ...] = ()


def evolve_schema(stored: Schema, incoming: Schema, *, fixed: Iterable[str] = ()) -> SchemaEvolution:
    """Stored columns keep their order and new ones follow. `fixed` columns (keys) never change their type.

    A conflict is no error here: the stored type stays, each value has to fit it, and those that don't go to the error table.
    """
    fixed_names = frozenset(fixed)
    arriving, before = incoming.types, stored.types
    changed = {name: arriving[name] for name in before if name in arriving and arriving[name] != before[name]}
    widened = tuple(
        name for name, type_ in changed.items() if name not in fixed_names and is_widening(before[name], type_)
    )
    conflicts = tuple(
        (name, before[name], type_)
        for name, type_ in changed.items()
        if name not in widened and not is_widening(type_, before[name]) and name not in fixed_names
    )
    added = tuple(name for name in arriving if name not in before)
    target = {name: arriving[name] if name in widened else type_ for name, type_ in before.items()} | {
        name: arriving[name] for name in added
    }
    return SchemaEvolution(
        Schema.of(target), added, widened, tuple(name for name in before if name not in arriving), conflicts
    )


def is_widening(narrow: str, wide: str) -> bool:
    """Every value of `narrow` is a value of `wide`, and the table format can change the one into the other."""
    if narrow == wide or (narrow, wide) in _WIDENINGS:
        return True
    small, large = _DECIMAL.fullmatch(narrow), _DECIMAL.fullmatch(wide)
    if small is None or large is None:
        return False
    precision, scale = int(small[1]), int(small[2])
    return int(large[2]) >= scale and int(large[1]) - int(large[2]) >= precision - scale
