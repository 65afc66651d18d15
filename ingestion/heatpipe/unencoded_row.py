"""A row that its producer could not encode, as it lies in the topic beside that of the events: why, where it was changed, and its values as JSON."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Any

from ingestion.heatpipe.broken_message import Defect

BYTES_NAME = "base64"
"""Bytes are a structure with this one field."""
MAX_BYTES = 4 * 2**20
"""Of a row as JSON: values that make it longer are cut."""
_MAX_CUT = 1_000
"""Characters of such a value."""
_TRANSACTION = re.compile(r"\d+-\d+-\d+", re.ASCII)


@dataclass(frozen=True)
class UnencodedRow:
    """`transaction` and `row`: of the source's log, and the place of the row among those of its table there. `before` None: the row was new; `after`
    None: it is gone. `is_cut`: long values are not there whole."""

    transaction: str
    row: int
    defect: Defect
    column: str
    reason: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    is_cut: bool = False
    is_nulled: bool = False
    """It was encoded all the same, with null in place of what did not fit: this is a note of what it was."""

    def to_json(self) -> bytes:
        text = json.dumps(asdict(self), default=_as_json).encode(errors="backslashreplace")
        if len(text) <= MAX_BYTES or self.is_cut:
            return text
        before, after = (None if row is None else _cut(row) for row in (self.before, self.after))
        return replace(self, before=before, after=after, reason=self.reason[:_MAX_CUT], is_cut=True).to_json()

    @classmethod
    def from_json(cls, text: bytes) -> UnencodedRow | None:
        """None: it is none."""
        try:
            facts = json.loads(text)
            row = cls(**{**facts, "defect": Defect(facts["defect"])})
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return row if row._is_sound else None

    @property
    def _is_sound(self) -> bool:
        rows = (self.before, self.after)
        texts = (self.transaction, self.column, self.reason)
        return (
            all(isinstance(text, str) for text in texts)
            and _TRANSACTION.fullmatch(self.transaction) is not None
            and type(self.row) is int
            and self.row >= 0
            and all(row is None or isinstance(row, dict) for row in rows)
            and rows != (None, None)
        )


def _cut(row: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: value if isinstance(value, int | float | None) else str(value) for name, value in row.items()}
    return {name: value[:_MAX_CUT] if isinstance(value, str) else value for name, value in shown.items()}


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return {BYTES_NAME: b64encode(value).decode()}
    return value.isoformat() if isinstance(value, date) else str(value)
