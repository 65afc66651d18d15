"""A captured copy that is behind its source for longer than its tier allows is a finding; it is cleared when it is well below that again."""

from __future__ import annotations

from datetime import datetime, timedelta

from ingestion.lake import findings
from ingestion.models import Capture, Finding
from ingestion.ports import lag_limit
from ingestion.runs.copy_lag import captured_complete_upto
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import EVERYTHING

CLEARED_BELOW = 0.5
"""Of the limit: a copy that is about as far behind as it may be raises one finding, and not one every minute."""


def judge_lags(*, now: datetime) -> int:
    """Of all captured copies that are loaded whole. How many are behind."""
    captures = Capture.objects.filter(feed__dataset__offboarded_at=None, feed__dataset__ingested=True)
    incomplete = {pk: {*copies} for pk, copies in captures.values_list("feed__dataset", "incomplete_copies")}
    open_now = Finding.objects.filter(kind=findings.COPY_BEHIND, cleared_at=None)
    behind, raised = 0, set(open_now.values_list("copy", flat=True))
    copies = DatasetCopy.objects.filter(dataset__in=incomplete, replica=None)
    for copy in copies.select_related("dataset__feed__connection", "data_center").order_by("pk"):
        if copy.pk not in incomplete[copy.dataset_id]:
            behind += _judge(copy, is_raised=copy.pk in raised, now=now)
        elif copy.pk in raised:  # it has a finding of its own
            findings.clear_findings(copy, findings.COPY_BEHIND, now=now)
    return behind


def _judge(copy: DatasetCopy, *, is_raised: bool, now: datetime) -> bool:
    upto = captured_complete_upto(copy)
    if upto is None:
        return is_raised  # it was not loaded yet, or nobody has looked
    lag, limit = now - upto, lag_limit(copy.dataset)
    if lag > limit:
        message = (
            f"Changes since {upto:%Y-%m-%d %H:%M} UTC may not be here: the copy is behind for {_minutes(lag)}, and its tier allows {_minutes(limit)}. "
            "Look whether its tap and the process `follow` run, and what the page Ingestion says of its jobs."
        )
        findings.raise_finding(copy, findings.COPY_BEHIND, EVERYTHING, message, {}, now=now)
    elif is_raised and lag <= limit * CLEARED_BELOW:
        findings.clear_findings(copy, findings.COPY_BEHIND, now=now)
    return lag > limit


def _minutes(span: timedelta) -> str:
    minutes = int(span.total_seconds() // 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
