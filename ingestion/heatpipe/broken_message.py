"""What can be wrong with a message, told apart so that all of one cause can be mended together."""

from __future__ import annotations

from enum import StrEnum


class Defect(StrEnum):
    """Of a message, from its outside to its inside."""

    EMPTY = "empty"
    OVERSIZED = "oversized"
    MAGIC_BYTE = "magic_byte"
    UNKNOWN_SCHEMA = "unknown_schema"
    OTHER_SUBJECT = "other_subject"
    TRUNCATED = "truncated"
    TRAILING_BYTES = "trailing_bytes"
    INVALID_UTF8 = "invalid_utf8"
    CORRUPT = "corrupt"
    NO_EVENT = "no_event"
    ROW_KEY = "row_key"
    REFERENCE_KEY = "reference_key"
    FIELD = "field"
    TYPE = "type"

    @property
    def label(self) -> str:
        """For people."""
        return f"broken message ({self.value.replace('_', ' ')})"


class _Misfit(ValueError):
    """`field` is empty where no single one is to blame."""

    def __init__(self, defect: Defect, reason: str, field: str = "") -> None:
        super().__init__(reason)
        self.defect, self.field = defect, field

    @property
    def labelled(self) -> str:
        """The reason behind what all of one defect have in common."""
        return f"{self.defect.label}: {self}"


class BrokenMessage(_Misfit):
    """A message that is no event of the dataset."""


class UnfitEvent(_Misfit):
    """An event that its schema has no place for; nothing was encoded."""
