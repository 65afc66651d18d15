"""Ranges as people and programs write them in an address: a date is one of the dataset's zone."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from lakehub.catalog.models import Dataset
from lakehub.http.instants import parse_instant
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import Interval


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
