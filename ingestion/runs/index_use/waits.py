"""Jobs that wait until their index cluster answers: they are put off, and hold nothing meanwhile."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from django.db.models import Q, QuerySet

from ingestion.models import JobKind, JobRun, JobState
from ingestion.runs.index_use.allowances import WAITS_FOR_CLUSTER
from ingestion.runs.source_use.source_limits import Crowded
from ingestion.spark.contract.report import JobReport

SHORTEST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(minutes=5)
JITTER_SHARE = 0.1
"""So many of the jobs of a cluster that is back do not come at once."""
_WAITS_FOR_ANSWER = f"{WAITS_FOR_CLUSTER}: "
"""So begins why a job waits that HBase did not answer."""
_REMEDY = "See that HBase and its Thrift server run, and that `manage.py index_clusters list` names where they are."


def for_answer(report: JobReport, *, waits: timedelta, jitter: float) -> Crowded:
    """Of a job that HBase has not answered. It is tried again after as long as it has waited so far: each pause is twice the one before."""
    pause = max(SHORTEST_PAUSE, min(waits, LONGEST_PAUSE)) * (1 + JITTER_SHARE * jitter)
    words = " ".join((report.error or "HBase does not answer").split()).rstrip(".")
    return Crowded(f"{_WAITS_FOR_ANSWER}{words}", waits, pause, _REMEDY)


def waiting_for_cluster(copies: Collection[int]) -> QuerySet[JobRun]:
    """Runs that wait for room in it, or for its answer: the one that has waited longest first. Those that follow a copy wait while they are somebody's."""
    return waiting_runs().filter(copy__in=copies).order_by("pk")


def waiting_runs() -> QuerySet[JobRun]:
    """Of all copies."""
    return _waiting(WAITS_FOR_CLUSTER)


def jobs_waiting_for_answer() -> int:
    return _waiting(_WAITS_FOR_ANSWER).count()


def _waiting(why: str) -> QuerySet[JobRun]:
    """One that is being tried again does not wait: it has kept its words from before."""
    waits = Q(state=JobState.QUEUED) | Q(state=JobState.RUNNING, kind=JobKind.FOLLOW)
    return JobRun.objects.filter(waits, error__startswith=why)
