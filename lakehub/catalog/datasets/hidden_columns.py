"""Columns of a captured table that nobody is to see in the lake: left out, hashed or masked. What may be named, and what is stored of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakehub.catalog.metadata import ColumnType, TableMetadata
from lakehub.catalog.models import Feed
from lakehub.catalog.validation import Problems
from lakehub.kernel.suggest import did_you_mean

LEFT_OUT, HASHED, MASKED = HIDING_FIELDS = ("columns_left_out", "columns_hashed", "columns_masked")
HIDING_WORDS = {LEFT_OUT: "left out", HASHED: "hashed", MASKED: "masked"}
MAX_HIDDEN = 1_000
"""Columns in one list."""
MAX_COLUMN_NAME = 64
"""Characters; servers allow no more."""
_TEXTS = frozenset({ColumnType.STRING, ColumnType.TIME, ColumnType.JSON})
"""What a text is in the lake, as a hash is."""

HiddenNames = Mapping[str, Sequence[str]]
"""By field of HIDING_FIELDS."""


@dataclass(frozen=True)
class UsedColumns:
    """Those that must be as they are, by what they are used for, such as a part of the record key."""

    by_use: Mapping[str, Sequence[str]]

    def use_of(self, name: str) -> str:
        return next((use for use, names in self.by_use.items() if name in names), "")


def used_columns(
    *,
    record_key: Sequence[str],
    primary_key: Sequence[str],
    partition: Sequence[str],
    others: Mapping[str, str],
    table: TableMetadata | None = None,
) -> UsedColumns:
    """`others`: by use one column, or none. `table`: whose own key its rows are read by."""
    return UsedColumns(
        {
            "a part of the record key": record_key,
            "a part of the primary key": [*primary_key, *(() if table is None else table.primary_key)],
            "a column of the partition": partition,
            **{use: [name] for use, name in others.items() if name},
        }
    )


def hidden_names(feed: Feed | None) -> dict[str, list[str]]:
    return {name: list(getattr(feed, name)) if feed is not None else [] for name in HIDING_FIELDS}


def check_hidden_columns(
    problems: Problems,
    hidden: HiddenNames,
    used: UsedColumns,
    table: TableMetadata | None,
    *,
    name: str,
    captured: bool,
) -> None:
    """Of the dataset `name`. `table`: None: it is not read, as its columns stay."""
    ways: dict[str, str] = {}
    for field, columns in hidden.items():
        if columns and not captured:
            problems.add(
                field,
                f"`{name}` is not a table that is captured from a connection with the plug-in `mysql`, so its column {_shown(columns[0])} cannot be {HIDING_WORDS[field]}. Bring it into the lake from a connection "
                "with the plug-in `mysql`, or load a view without the column.",
            )
            continue
        for column in columns:
            _check_column(problems, field, column, used, table)
            if column in ways:
                twice = f" and {HIDING_WORDS[field]}" if ways[column] != field else " twice"
                problems.add(field, f"{_shown(column)} is {HIDING_WORDS[ways[column]]}{twice}: name it once.")
            ways.setdefault(column, field)


def _check_column(problems: Problems, field: str, column: str, used: UsedColumns, table: TableMetadata | None) -> None:
    if table is not None and column not in table.names:
        problems.add(
            field, f"There is no column {_shown(column)} to be {HIDING_WORDS[field]}.{_near(problems, column, table)}"
        )
    elif use := used.use_of(column):
        problems.add(
            field,
            f"{_shown(column)} is {use} and cannot be {HIDING_WORDS[field]}: name another column for that, or capture a table that has none of what nobody "
            "is to see in it.",
        )


def _near(problems: Problems, column: str, table: TableMetadata) -> str:
    """Names differ by their case, too."""
    spelt = next((name for name in table.names if name.casefold() == column.casefold()), "")
    if spelt:
        return f" Did you mean `{spelt}`?"
    return did_you_mean(column[:MAX_COLUMN_NAME], table.names) if problems.hints.take() else ""


def check_generated(problems: Problems, hidden: HiddenNames, generated: Mapping[str, Sequence[str]]) -> None:
    """`generated`: by column that the server makes from others, from which. Its values say what those are."""
    ways = {column: field for field, columns in hidden.items() for column in columns}
    for column, origins in generated.items():
        origin = next((name for name in origins if name in ways), None)
        if origin is not None and column not in ways:
            field = ways[origin]
            problems.add(
                field,
                f"{_shown(column)} is generated from {_shown(origin)}, which is {HIDING_WORDS[field]}, and would show it. Name it in one of the lists, too.",
            )


def check_types_stay(problems: Problems, before: HiddenNames, after: HiddenNames, table: TableMetadata) -> None:
    """A column of the lake keeps its type: what is a number there cannot become the text that a hash is, nor a hash a number."""
    types = {column.name: column.type for column in table.columns}
    for column in sorted({*before[HASHED]} ^ {*after[HASHED]}):
        type_ = types.get(column)
        if type_ is not None and type_ not in _TEXTS:
            was, becomes = (type_, "a text") if column in after[HASHED] else ("a text", type_)
            problems.add(
                HASHED,
                f"{_shown(column)} is {was} in the lake, and would be {becomes}. Mask it or leave it out, or onboard the table under another name.",
            )


def columns_in_lake(columns: Sequence[Mapping[str, Any]], hidden: HiddenNames) -> list[dict[str, Any]]:
    """As a dataset stores its columns, without those that are left out; hashes are texts."""
    return [
        {**column, "type": ColumnType.STRING.value} if column["name"] in hidden[HASHED] else dict(column)
        for column in columns
        if column["name"] not in hidden[LEFT_OUT]
    ]


def stored_columns(table: TableMetadata, hidden: HiddenNames) -> list[dict[str, Any]]:
    """Of a table, as they come into the lake."""
    columns = [{"name": c.name, "type": c.type.value, "nullable": c.nullable} for c in table.columns]
    return columns_in_lake(columns, hidden)


def _shown(column: str) -> str:
    return f"`{column[:MAX_COLUMN_NAME]}`"
