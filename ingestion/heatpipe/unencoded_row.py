"""A row that its producer could not encode, as it lies in the topic beside that of the events: why, where it was changed, and its values as JSON."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from ingestion.heatpipe.broken_message import Defect

BYTES_NAME = "base64"
"""Bytes are a structure with this one field."""


@dataclass(frozen=True)
class UnencodedRow:
    """`transaction` and `row`: of the source's log, and the place of the row among those of its table there. `before` None: the row was new; `after`
    None: it is gone."""

    transaction: str
    row: int
    defect: Defect
    column: str
    reason: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), default=_as_json).encode(errors="backslashreplace")

    @classmethod
    def from_json(cls, text: bytes) -> UnencodedRow | None:
        """None: it is none."""
        try:
            facts = json.loads(text)
            return cls(**{**facts, "defect": Defect(facts["defect"]), "row": int(facts["row"])})
        except (ValueError, KeyError, TypeError, RecursionError):
            return None


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return {BYTES_NAME: b64encode(value).decode()}
    return value.isoformat() if isinstance(value, date) else str(value)
