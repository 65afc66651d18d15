"""A captured copy that is behind its source for longer than its tier allows is a finding."""

from __future__ import annotations

from datetime import datetime

from ingestion.lake import findings
from ingestion.lake.lag_findings import clear_others, in_words, judge_lag, raised_for
from ingestion.models import Capture
from ingestion.ports import lag_limit
from ingestion.runs.copy_lag import captured_complete_upto
from lakehub.catalog.models import DatasetCopy


def judge_lags(*, now: datetime) -> int:
    """Of all captured copies that are loaded whole. How many are behind."""
    captures = Capture.objects.filter(feed__dataset__offboarded_at=None, feed__dataset__ingested=True)
    incomplete = {pk: {*copies} for pk, copies in captures.values_list("feed__dataset", "incomplete_copies")}
    behind, raised = 0, raised_for(findings.COPY_BEHIND)
    live = DatasetCopy.objects.filter(dataset__in=incomplete, replica=None)
    copies = [*live.select_related("dataset__feed__connection", "data_center").order_by("pk")]
    clear_others(findings.COPY_BEHIND, raised.difference(copy.pk for copy in copies), now=now)
    for copy in copies:
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
    message = (
        f"Changes since {upto:%Y-%m-%d %H:%M} UTC may not be here: the copy is behind for {in_words(lag)}, and its tier allows {in_words(limit)}. "
        "Look whether its tap and the process `follow` run, and what the page Ingestion says of its jobs."
    )
    return judge_lag(copy, findings.COPY_BEHIND, lag, limit=limit, message=message, is_raised=is_raised, now=now)
