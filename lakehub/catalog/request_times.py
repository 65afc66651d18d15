"""Instants as people and programs write them in a request: ISO 8601 with an offset, or a date in the dataset's zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import BEGINNING, FOREVER, Interval

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}$")
_LOST_PLUS = re.compile(r"(\d) (\d{2}:?\d{2})$")
"""A `+` that was not percent-encoded arrives as a space."""


def parse_instant(text: str, *, name: str, zone: ZoneInfo) -> datetime:
    """No earlier than BEGINNING and no later than FOREVER, which mean the same. Raises Refused, which names the parameter `name`."""
    try:
        instant = datetime.fromisoformat(_LOST_PLUS.sub(r"\1+\2", text.strip()))
        if _DATE.match(text.strip()):
            instant = instant.replace(tzinfo=zone)
        if instant.tzinfo is not None:
            return min(max(instant.astimezone(UTC), BEGINNING), FOREVER)
    except (ValueError, OverflowError):  # UTC does not reach beyond the years 1 to 9999
        raise _refused(name, f"`{text}` is no time. Write 2026-11-16, or 2026-11-16T05:00:00Z.") from None
    raise _refused(name, f"`{text}` has no offset, so it could be any zone's. Write {text.strip()}Z for UTC.")


def parse_range(start: str, end: str, dataset: Dataset | None) -> Interval:
    """`[from, to)`; dates are those of the dataset's partitions (of UTC without one). Raises Refused for each parameter."""
    zone = dataset.zone if dataset else ZoneInfo("UTC")
    problems: dict[str, str] = {}
    ends: list[datetime] = []
    for name, text in (("from", start), ("to", end)):
        try:
            if not text:
                raise _refused(name, f"Say `{name}`: a date such as 2026-11-16, or a time with its offset.")
            ends.append(parse_instant(text, name=name, zone=zone))
        except Refused as error:
            problems |= error.fields
    if problems:
        raise Refused.for_fields(problems)
    try:
        return Interval(*ends)
    except ValueError as error:
        raise _refused("to", str(error)) from None


def _refused(name: str, why: str) -> Refused:
    return Refused.for_fields({name: why})
