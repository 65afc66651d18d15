"""What a tap knows of columns with another name: what statements have said, until rows show the columns, and what is known from then on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ingestion.capture.binlog.column_changes import ColumnChange
from ingestion.capture.tap.position import reference_key
from ingestion.domain.column_types import evolve_type, parse_type
from ingestion.domain.merging.column_renames import ColumnRename, composed
from ingestion.domain.schema import Schema


@dataclass(frozen=True)
class RenameNotes:
    """`sequence`: of the last transaction that has changed columns. `pending`: by new name the old one, both in small letters, as statements spell
    them as they like. `renames`: with the
    transaction up to which rows had the old names, the oldest first. Plain values, which become JSON."""

    sequence: int = 0
    pending: Mapping[str, str] = field(default_factory=dict)
    renames: Sequence[Sequence[Any]] = ()

    def noted(self, sequence: int, changes: Sequence[ColumnChange]) -> RenameNotes:
        """A statement counts once, however often it is read."""
        if sequence <= self.sequence:
            return self
        pairs = [(change.old.casefold(), change.new.casefold()) for change in changes]
        return replace(self, sequence=sequence, pending=composed(self.pending, pairs))

    def seen(self, stored: Schema, columns: Schema) -> dict[str, str]:
        """Of those that wait, the ones whose columns are there now and hold what the old ones held, by new name. `stored`: the columns before."""
        spelt, new_spelt = ({name.casefold(): name for name in each.names} for each in (stored, columns))
        origins = {new_spelt.get(new, ""): spelt.get(old, "") for new, old in self.pending.items()}
        return {
            new: old for new, old in origins.items() if new and old and _holds(columns.types[new], stored.types[old])
        }

    def kept(self, columns: Schema, origins: Mapping[str, str]) -> RenameNotes:
        """`origins` are known from now on. Of what waits, columns that are there and hold something else are forgotten."""
        there = {name.casefold() for name in columns.names}
        pending = {new: old for new, old in self.pending.items() if new not in there}
        renames = [*self.renames, [self.sequence, dict(origins)]] if origins else self.renames
        return replace(self, pending=pending, renames=renames)

    def column_renames(self) -> tuple[ColumnRename, ...]:
        return tuple(ColumnRename(reference_key(sequence, 0), origins) for sequence, origins in self.renames)


def _holds(type_: str, other: str) -> bool:
    """All values of the other, as they are."""
    evolution = evolve_type(parse_type(other), parse_type(type_), "")
    return not evolution.conflicts and str(evolution.target) == type_
