"""Sends the lineage of runs that have ended, in the order in which they ended, beside the runs themselves.

A run owes it until it has arrived, so a receiver that is down loses nothing that is younger than MAX_AGE. One that took an event and did not say so gets it
again; by its run's id it is the same. What a receiver refuses for good is given up with a warning, as those behind it wait for it.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from ingestion.domain.pipelines.lineage.openlineage import Json, run_events
from ingestion.models import JobRun, LineageReceiver
from ingestion.runs.leases import lease_end
from ingestion.runs.sent_lineage.owing import MAX_AGE
from ingestion.runs.sent_lineage.run_facts import facts_of
from lakehub import __version__
from lakehub.http.outgoing.client import DeliveryError, checked_url, post, status_if_accepted
from lakehub.kernel.backoff import Backoff

logger = logging.getLogger(__name__)
MAX_RUNS = 50
"""That are sent with one call."""
BUDGET_S = 30.0
"""After so long no other run is begun; the last post takes ten seconds at most."""
MAX_BYTES = 1_000_000
"""Of one event: a larger one goes without its column lineage."""
REFUSED_FOR_GOOD = ("400", "413", "422")
"""The event itself is not taken. Any other answer may be another one when the operator has mended the address, the key or the receiver."""
PRODUCER = f"urn:lakehub:{__version__}"
_LEASE = timedelta(minutes=5)
_RECEIVER = 1
_BACKOFF = Backoff(base=timedelta(minutes=1), cap=timedelta(minutes=30))


def owing_runs() -> QuerySet[JobRun]:
    """That have ended, the first first."""
    return JobRun.objects.filter(owes_lineage=True, ended_at__isnull=False).order_by("ended_at", "pk")


def send_owed_lineage(*, now: datetime, monotonic: Callable[[], float] = time.monotonic) -> int:
    """Of how many runs it has arrived. Nothing is done where no receiver is set, another process sends, or the receiver is left alone for a while."""
    if not settings.LAKEHUB_OPENLINEAGE_URL:
        return 0
    _give_up_old(now)
    if not owing_runs().exists() or not _claim():
        return 0
    sent, began = 0, monotonic()
    try:
        related = owing_runs().select_related("copy__dataset", "copy__data_center")
        for run in related[:MAX_RUNS]:
            if monotonic() - began > BUDGET_S:
                break
            sent += _send(run, now=now)
            owing_runs().filter(pk=run.pk).update(owes_lineage=False)
    except DeliveryError as problem:
        _note_failure(problem)
    finally:
        LineageReceiver.objects.filter(pk=_RECEIVER).update(leased_until=None)
    if sent:
        LineageReceiver.objects.filter(pk=_RECEIVER).update(last_sent_at=Now())
    return sent


def _give_up_old(now: datetime) -> None:
    old = owing_runs().filter(ended_at__lt=now - MAX_AGE).order_by()
    if count := old.update(owes_lineage=False):
        logger.warning("The lineage of %s runs was not sent within %s days, and is given up", count, MAX_AGE.days)


def _claim() -> bool:
    LineageReceiver.objects.get_or_create(pk=_RECEIVER)
    free = Q(leased_until=None) | Q(leased_until__lt=Now())
    due = Q(next_try_at=None) | Q(next_try_at__lte=Now())
    return bool(LineageReceiver.objects.filter(free, due, pk=_RECEIVER).update(leased_until=lease_end(_LEASE)))


def _send(run: JobRun, *, now: datetime) -> bool:
    """Whether it has arrived: False for what has nothing to tell, or is refused for good. Raises DeliveryError where it is to be tried again."""
    try:
        facts = facts_of(run)
        events = () if facts is None else run_events(facts, producer=PRODUCER)
    except Exception:  # one that cannot be told must not hold up those behind it
        logger.exception("The lineage of run %s of %s cannot be made, and is given up", run.pk, run.copy)
        return False
    for event in events:
        try:
            _post(event, now=now)
        except DeliveryError as problem:
            if problem.status not in REFUSED_FOR_GOOD:
                raise
            logger.warning("The lineage of run %s of %s is refused, and given up: %s", run.pk, run.copy, problem)
            return False
        LineageReceiver.objects.filter(pk=_RECEIVER).exclude(failures=0, last_error="").update(
            failures=0, next_try_at=None, last_error=""
        )
    return bool(events)


def _post(event: Json, *, now: datetime) -> None:
    body = json.dumps(event).encode()
    if len(body) > MAX_BYTES:
        for output in event["outputs"]:
            output["facets"].pop("columnLineage", None)
        body = json.dumps(event).encode()
    key = settings.LAKEHUB_OPENLINEAGE_KEY
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    url = checked_url(settings.LAKEHUB_OPENLINEAGE_URL, "receiver of lineage")
    answer = post(url, body, headers, now=now, is_operators=True)
    status_if_accepted(answer, url.hostname or "")


def _note_failure(problem: DeliveryError) -> None:
    receiver = LineageReceiver.objects.get(pk=_RECEIVER)
    delay = max(_BACKOFF.delay(receiver.failures, 0.0), problem.retry_after or timedelta())
    LineageReceiver.objects.filter(pk=_RECEIVER).update(
        failures=F("failures") + 1, next_try_at=lease_end(delay), last_error=str(problem)
    )
    logger.warning("Lineage cannot be sent, and is tried again in %s s: %s", round(delay.total_seconds()), problem)
