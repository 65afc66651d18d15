"""A copy that is behind for longer than its tier allows is a finding; it is cleared when it is well below that again."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from ingestion.lake import findings
from ingestion.models import Finding
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import EVERYTHING

CLEARED_BELOW = 0.5
"""Of the limit: a copy that is about as far behind as it may be raises one finding, and not one every minute."""


def raised_for(kind: str) -> set[int]:
    """The copies that have it open."""
    return {*Finding.objects.filter(kind=kind, cleared_at=None).values_list("copy", flat=True)}


def judge_lag(
    copy: DatasetCopy,
    kind: str,
    lag: timedelta | None,
    *,
    limit: timedelta,
    message: str,
    is_raised: bool,
    now: datetime,
) -> bool:
    """Is it behind for longer than `limit`? Without a lag it is not."""
    is_behind = lag is not None and lag > limit
    if is_behind:
        findings.raise_finding(copy, kind, EVERYTHING, message, {}, now=now)
    elif is_raised and (lag is None or lag <= limit * CLEARED_BELOW):
        findings.clear_findings(copy, kind, now=now)
    return is_behind


def clear_others(kind: str, copies: Collection[int], *, now: datetime) -> None:
    """Of copies that are not judged any more, as they are made otherwise since."""
    Finding.objects.filter(kind=kind, copy__in=copies, cleared_at=None).update(cleared_at=now)


def in_words(span: timedelta) -> str:
    minutes = int(span.total_seconds() // 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
