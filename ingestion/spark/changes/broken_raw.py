"""A message that could not be decoded, as the error table keeps it: as much as people need to see. The log has the rest, as long as it keeps messages."""

from __future__ import annotations

import json
from base64 import b64encode

from ingestion.heatpipe.broken_message import Defect

_MAX_KEPT = 256 * 1024
_DEFECT, _MESSAGE, _BYTES = "defect", "message", "bytes"


def broken_raw(defect: Defect, message: bytes) -> str:
    """JSON: `message` in Base64, and how many bytes it had."""
    return json.dumps({_DEFECT: defect, _MESSAGE: b64encode(message[:_MAX_KEPT]).decode(), _BYTES: len(message)})


def is_broken_raw(raw: str) -> bool:
    """There is no row in it."""
    try:
        facts = json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return isinstance(facts, dict) and facts.keys() == {_DEFECT, _MESSAGE, _BYTES}
