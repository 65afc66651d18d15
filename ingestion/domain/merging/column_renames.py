"""Columns that have got another name: what was written before under the old one is read under the new one, whenever it comes.

So neither the order of events nor when the stored rows are made to fit decides what a row has. The old column stays, with what it has.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ingestion.domain.merging.events import ChangeEvent


@dataclass(frozen=True)
class ColumnRename:
    """Made at once. `before`: of a change from before its reference key is less. `origins`: by new name the one that the column had."""

    before: bytes
    origins: Mapping[str, str]

    @property
    def mark(self) -> str:
        """Grows with `before`."""
        return self.before.hex()


def renames_to_text(renames: Iterable[ColumnRename]) -> str:
    return json.dumps([[each.mark, dict(each.origins)] for each in renames])


def renames_of_text(text: str) -> tuple[ColumnRename, ...]:
    return tuple(ColumnRename(bytes.fromhex(mark), origins) for mark, origins in json.loads(text))


def renamed_event(event: ChangeEvent, renames: Sequence[ColumnRename]) -> ChangeEvent:
    """As it reads after all of them."""
    values: dict[str, Any] | None = None
    for rename in renames:
        if isinstance(event.reference_key, bytes) and event.reference_key < rename.before:
            now = event.values if values is None else values
            moved = {new: now[old] for new, old in rename.origins.items() if old in now}
            values = {**now, **moved} if moved else values
    return event if values is None else replace(event, values=values)


def renamed_columns(columns: Collection[str], renames: Iterable[ColumnRename]) -> tuple[str, ...]:
    """Those that a row of these columns has after all of them."""
    names = dict.fromkeys(columns)
    for rename in renames:
        names |= dict.fromkeys([new for new, old in rename.origins.items() if old in names])
    return tuple(names)


def composed(origins: Mapping[str, str], changes: Iterable[tuple[str, str]]) -> dict[str, str]:
    """`origins` of columns with another name than before, after further changes, made at once: (old name, new name), each empty where there is none."""
    pairs = [*changes]
    touched = {name for pair in pairs for name in pair if name}
    kept = {new: old for new, old in origins.items() if new not in touched}
    moved = {new: origins.get(old, old) for old, new in pairs if old and new}
    return {new: old for new, old in {**kept, **moved}.items() if new != old}
