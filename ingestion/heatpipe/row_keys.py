"""The key of a message: the values of a row's key columns as a JSON list of texts. It is the same in every process, and equal keys are equal texts."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import Any

from ingestion.domain.merging.events import RowKey

_EXACT = Context(prec=200)
"""More digits than a key has: with fewer, keys would be rounded to one."""


def row_key_text(row_key: RowKey) -> str:
    return json.dumps([_text(value) for value in row_key], ensure_ascii=False, separators=(",", ":"))


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case bytes():
            return b64encode(value).decode()
        case Decimal():
            # 1.50 and 1.5 are one key, and 0 and -0.
            return f"{_EXACT.add(value, 0).normalize(_EXACT):f}" if value.is_finite() else str(value)
        case datetime():
            return value.astimezone(UTC).isoformat() if value.tzinfo else value.isoformat()
        case date():
            return value.isoformat()
    return str(value)
