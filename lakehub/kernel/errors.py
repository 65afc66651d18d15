"""What a use case raises for its caller to show: refused input, nothing by that name, somebody was faster, too much to do."""

from __future__ import annotations

from typing import Self


class Refused(ValueError):
    """The input cannot be used; nothing was changed. `fields` says why for each field, so that all are mended at once."""

    def __init__(self, message: str, fields: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.fields = fields or {}

    @classmethod
    def for_fields(cls, fields: dict[str, str]) -> Self:
        return cls(" ".join(fields.values()), fields)


class NotFound(LookupError):
    """There is nothing by that name."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class Conflict(RuntimeError):
    """Somebody was faster; nothing was changed. Says who and what they did."""


class Busy(RuntimeError):
    """There is too much to do just now; nothing was done. To be asked again in `retry_after_s` seconds."""

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
