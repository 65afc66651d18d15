"""A data range as people type it into a form."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo

from lakehub.catalog.models import Dataset
from lakehub.http.instants import parse_instant
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain, partition_at


def parse_data_range(start: str, end: str, dataset: Dataset, *, now: datetime) -> Interval:
    """What was typed: days (in the dataset's zone) or instants with an offset. An empty end: the day of the start.

    Raises Refused by field.
    """
    problems: dict[str, str] = {}
    days = partial(partition_at, grain=Grain.DAY, tz=dataset.zone)
    first = _parse_instant("from", start, dataset.zone, problems) if start else days(now).start
    last = _parse_instant("to", end, dataset.zone, problems) if end else None
    if problems or first is None:
        raise Refused.for_fields(problems)
    try:
        return Interval(first, last or days(first).end)
    except ValueError as problem:
        raise Refused.for_fields({"to": str(problem)}) from None


def _parse_instant(name: str, text: str, zone: ZoneInfo, problems: dict[str, str]) -> datetime | None:
    try:
        return parse_instant(text, name=name, zone=zone)
    except Refused as refused:
        problems |= refused.fields
        return None
