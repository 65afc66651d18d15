"""What can be wrong with a message of somebody else's topic, and with the way there."""

from __future__ import annotations

EMPTY, OVERSIZED, TRUNCATED, TRAILING_BYTES = "empty", "oversized", "truncated", "trailing_bytes"
UNKNOWN_SCHEMA, INVALID_UTF8, CORRUPT, NO_EVENT = "unknown_schema", "invalid_utf8", "corrupt", "no_event"
ROW_KEY, FIELD, TYPE = "row_key", "field", "type"


class BadMessage(ValueError):
    """`defect`: a word for all messages with which the same is wrong. `field`: empty where no single one is to blame."""

    def __init__(self, defect: str, reason: str, field: str = "") -> None:
        super().__init__(reason)
        self.defect, self.field = defect, field


class TopicsError(RuntimeError):
    """A cluster or its registry does not answer, or refuses; the message says which and what to do, and has no password."""


class RegistrySilent(TopicsError):
    """A registry does not answer, or not as it should. `until`: when it is asked again, by the monotonic clock."""

    def __init__(self, why: str, until: float) -> None:
        super().__init__(why)
        self.until = until
