"""Which columns two sides compare, and how each is hashed: as the engine that both have hashes it, else by a text that is the same everywhere."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lakehub.kernel.suggest import did_you_mean


class CannotCompare(ValueError):
    """Two tables have no rows that could be compared; says why."""


@dataclass(frozen=True)
class ColumnForm:
    """How one engine holds a column. `kind` is its own word for the type, the same for all integers, and so on.

    `has_text`: its values are written alike by every engine (`quality.domain.bloom.keys`).
    """

    kind: str
    has_text: bool


@dataclass(frozen=True)
class HashedColumn:
    """`by_text`: its canonical text is hashed, not its value."""

    name: str
    by_text: bool


@dataclass(frozen=True)
class Agreement:
    """What both sides hash: `columns` are the compared ones, the key first. `native`: by the hash of their common engine, else by MD5.

    `left_out` are the others, each with the reason.
    """

    key: tuple[str, ...]
    columns: tuple[HashedColumn, ...]
    native: bool
    left_out: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def agree(
    key: Sequence[str],
    here: Mapping[str, ColumnForm],
    there: Mapping[str, ColumnForm],
    *,
    native: bool,
    excluded: Collection[str] = (),
) -> Agreement:
    """Raises CannotCompare where a column of the key is not on both sides, or cannot be compared."""
    for name in key:
        _check_key_column(name, here, there)
    left_out: dict[str, str] = {}
    columns: list[HashedColumn] = []
    for name in (*key, *(column for column in (*here, *there) if column not in key)):
        if name in left_out or any(column.name == name for column in columns):
            continue
        reason = "" if name in key else _why_not(name, here, there, native, excluded)
        if reason:
            left_out[name] = reason
        else:
            same_kind = native and here[name].kind == there[name].kind
            columns.append(HashedColumn(name, by_text=not same_kind))
    return Agreement(tuple(key), tuple(columns), native, left_out)


def _check_key_column(name: str, here: Mapping[str, ColumnForm], there: Mapping[str, ColumnForm]) -> None:
    for side, columns in (("here", here), ("on the other side", there)):
        if name not in columns:
            raise CannotCompare(f"There is no column `{name}` {side}.{did_you_mean(name, columns)}")
        if not columns[name].has_text:
            raise CannotCompare(
                f"`{name}` cannot be part of a key: it is {columns[name].kind} {side}. Choose columns of text, whole numbers, decimals, dates or timestamps."
            )


def _why_not(
    name: str,
    here: Mapping[str, ColumnForm],
    there: Mapping[str, ColumnForm],
    native: bool,
    excluded: Collection[str],
) -> str:
    if name in excluded:
        return "not compared, as the test says"
    if name not in here or name not in there:
        return "only here" if name in here else "only on the other side"
    mine, theirs = here[name], there[name]
    if (mine.has_text and theirs.has_text) or (native and mine.kind == theirs.kind):
        return ""
    unwritable = mine if not mine.has_text else theirs
    return f"{unwritable.kind}, which engines write differently"
