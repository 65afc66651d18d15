"""A pipeline that leaves changes of its inputs waiting for longer than its tier allows is a finding."""

from __future__ import annotations

from datetime import datetime, timedelta

from ingestion.lake.findings import PIPELINE_BEHIND
from ingestion.lake.lag_findings import clear_others, in_words, judge_lag, raised_for
from ingestion.ports import lag_limit
from ingestion.runs.modelled_tables.progress import CopyProgress, progress_of
from lakehub.catalog.models import DatasetCopy, FeedKind


def judge_lags(*, now: datetime) -> int:
    """Of all copies that pipelines make. How many are behind."""
    live = DatasetCopy.objects.filter(dataset__ingested=True, dataset__offboarded_at=None)
    made = [
        *live.filter(dataset__feed__kind=FeedKind.PIPELINE, replica=None).select_related("dataset__feed", "data_center")
    ]
    raised = raised_for(PIPELINE_BEHIND)
    clear_others(PIPELINE_BEHIND, raised.difference(copy.pk for copy in made), now=now)
    return sum(_judge(each, is_raised=each.copy.pk in raised, now=now) for each in progress_of(made, now=now))


def _judge(progress: CopyProgress, *, is_raised: bool, now: datetime) -> bool:
    copy, lag = progress.copy, progress.lag(now=now)
    limit = lag_limit(copy.dataset)
    message = _message(progress, lag, limit) if lag else ""
    return judge_lag(copy, PIPELINE_BEHIND, lag, limit=limit, message=message, is_raised=is_raised, now=now)


def _message(progress: CopyProgress, lag: timedelta, limit: timedelta) -> str:
    return (
        f"Changes of {_waiting_inputs(progress)} since {progress.waits_since:%Y-%m-%d %H:%M} UTC are not here yet: the pipeline is behind for "
        f"{in_words(lag)}, and its tier allows {in_words(limit)}. Look on the page Pipeline whether its runs fail, wait, or take longer than its interval."
    )


def _waiting_inputs(progress: CopyProgress) -> str:
    waiting = [each.input.dataset for each in progress.inputs if each.input.is_followed and each.pending]
    return ", ".join(f"`{name}`" for name in waiting)
