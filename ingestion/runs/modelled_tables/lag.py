"""A pipeline that leaves changes of its inputs waiting for longer than its tier allows is a finding; it is cleared when it is well below that again."""

from __future__ import annotations

from datetime import datetime, timedelta

from ingestion.lake import findings
from ingestion.models import Finding
from ingestion.ports import lag_limit
from ingestion.runs.modelled_tables.progress import CopyProgress, progress_of
from lakehub.catalog.models import DatasetCopy, FeedKind
from lakehub.kernel.interval import EVERYTHING

CLEARED_BELOW = 0.5
"""Of the limit: a pipeline that is about as far behind as it may be raises one finding, and not one every minute."""


def judge_lags(*, now: datetime) -> int:
    """Of all copies that pipelines make. How many are behind."""
    live = DatasetCopy.objects.filter(dataset__ingested=True, dataset__offboarded_at=None)
    made = live.filter(dataset__feed__kind=FeedKind.PIPELINE, replica=None).select_related(
        "dataset__feed", "data_center"
    )
    open_now = Finding.objects.filter(kind=findings.PIPELINE_BEHIND, cleared_at=None)
    raised = set(open_now.values_list("copy", flat=True))
    return sum(_judge(each, is_raised=each.copy.pk in raised, now=now) for each in progress_of([*made], now=now))


def _judge(progress: CopyProgress, *, is_raised: bool, now: datetime) -> bool:
    copy, lag = progress.copy, progress.lag(now=now)
    limit = lag_limit(copy.dataset)
    is_behind = lag is not None and lag > limit
    if is_behind and lag is not None:
        message = (
            f"Changes of {_waiting_inputs(progress)} since {progress.waits_since:%Y-%m-%d %H:%M} UTC are not here yet: the pipeline is behind for "
            f"{_minutes(lag)}, and its tier allows {_minutes(limit)}. Look on the page Pipeline whether its runs fail, wait, or take longer than its interval."
        )
        findings.raise_finding(copy, findings.PIPELINE_BEHIND, EVERYTHING, message, {}, now=now)
    elif is_raised and (lag is None or lag <= limit * CLEARED_BELOW):
        findings.clear_findings(copy, findings.PIPELINE_BEHIND, now=now)
    return is_behind


def _waiting_inputs(progress: CopyProgress) -> str:
    waiting = [each.input.dataset for each in progress.inputs if each.input.is_followed and each.pending]
    return ", ".join(f"`{name}`" for name in waiting)


def _minutes(span: timedelta) -> str:
    minutes = int(span.total_seconds() // 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
