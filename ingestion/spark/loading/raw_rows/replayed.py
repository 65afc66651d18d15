"""A rejected row on its way back: its raw JSON with the values that take the place of its own."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ingestion.domain.column_types import is_nested
from ingestion.heatpipe.unencoded_row import BYTES_NAME
from ingestion.sources import Chunk
from ingestion.spark.loading.casting import UNWRITABLE


@dataclass(frozen=True)
class ReplayedRow:
    """`column` and `reason` are those for which it was rejected, `fixed` the values that replace its own, as JSON. `table_at`: the newest
    completion of the table when it was rejected. `problem`: why it cannot be tried; empty where it can."""

    error_key: str
    column: str | None
    reason: str | None
    raw: str
    source: str | None
    table_at: str
    fixed: str | None
    values: Mapping[str, Any]
    problem: str = ""

    def error(self, column: str | None, reason: str | None) -> dict[str, str | None]:
        """As a row of the error table."""
        known = {"error_key": self.error_key, "raw": self.raw, "source": self.source, "fixed": self.fixed}
        return known | {"column": column, "reason": reason}


class _CannotReplay(ValueError):
    """A raw row that is not to be tried."""


def replayed_row(
    error: Mapping[str, Any],
    fixed: str,
    types: Mapping[str, str],
    *,
    max_raw: int,
    row_of: Callable[[str], str] | None = None,
) -> ReplayedRow:
    """`error`: a row of `error_table.open_rows`; `fixed`: a JSON object by column; `types`: of the table's columns. `row_of`: from the raw text to that of
    its row; None: they are one."""
    fixes, problem, values = json.loads(fixed), "", {}
    raw = error["raw"] or ""
    try:
        if len(raw) > max_raw:
            raise _CannotReplay(f"The raw row has more than {max_raw:,} characters. Correct it in the source.")
        text = raw if row_of is None else row_of(raw)
        values = _typed({**_raw_values(text, bool(fixes)), **fixes}, types)
    except _CannotReplay as refused:
        problem = str(refused)
    given = {name: error[name] for name in ("error_key", "column", "reason", "source", "table_at")}
    return ReplayedRow(**given, raw=raw, fixed=fixed if fixes else None, values=values, problem=problem)


def chunk_of(rows: Sequence[ReplayedRow]) -> Chunk:
    """Of rows with the same columns."""
    names = rows[0].values if rows else ()
    return Chunk({name: [row.values[name] for row in rows] for name in names})


def _raw_values(raw: str, is_fixed: bool) -> dict[str, Any]:
    """None where the text is no row, and all values were given."""
    try:
        values = json.loads(raw)
    except UNWRITABLE:
        values = None
    if isinstance(values, dict):
        return values
    if not is_fixed:
        raise _CannotReplay("The raw text is not a row: replay it with the values of all columns.")
    return {}


def _typed(values: Mapping[str, Any], types: Mapping[str, str]) -> dict[str, Any]:
    """With what JSON has no form for. A null in a column that the table does not have says that the column is to be left out."""
    typed = {
        name: _typed_value(name, value, types.get(name, ""))
        for name, value in values.items()
        if name in types or value is not None
    }
    if not typed:
        raise _CannotReplay("The row has no values: replay it with the values of all columns.")
    return typed


def _typed_value(name: str, value: Any, type_: str) -> Any:
    if value is None:
        return None
    if type_ == "binary":
        return _bytes(name, value)
    if type_.startswith("map<") and isinstance(value, list):
        return _map(value)
    is_bytes = isinstance(value, dict) and set(value) == {BYTES_NAME}
    if is_bytes and isinstance(value[BYTES_NAME], list) and len(value[BYTES_NAME]) == 1:
        return {BYTES_NAME: value[BYTES_NAME][0]}
    # Where the table has no bytes they do not fit, now as before; the JSON that stands for them would.
    return _bytes(name, value) if is_bytes and type_ and not is_nested(type_) else value


def _bytes(name: str, value: Any) -> bytes:
    try:
        if isinstance(value, dict) and set(value) == {BYTES_NAME}:
            return b64decode(value[BYTES_NAME], validate=True)
    except (ValueError, TypeError):
        pass
    raise _CannotReplay(f'`{name}` holds bytes: replay it with the value {{"{BYTES_NAME}": "..."}}.')


def _map(value: list[Any]) -> Any:
    """Arrow hands over the entries of a map as pairs."""
    pairs = all(isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str) for entry in value)
    return dict(value) if pairs else value
