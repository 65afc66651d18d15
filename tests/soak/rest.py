"""When is the instance at rest? Everything that was to happen by now has happened, and the lake was looked at since the writer paused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from django.db import DatabaseError, connection
from django.db.models import Max, Q

from incidents.models import Message, MessageState
from ingestion.models import JobKind, JobRun, JobState, TouchedPartition
from lakehub.catalog.models import DatasetCopy
from quality.models import Flip, Unit
from tests.soak.stand.onboarding import ORDERS
from tests.soak.stand.stage import NotInTime, Stage


def wait_until_at_rest(stage: Stage) -> None:
    """Nothing is written to the source any more. Raises NotInTime with what is left to do."""
    newest_run: int | None = None
    left: list[str] = []

    def is_at_rest() -> bool:
        nonlocal newest_run
        try:
            if newest_run is None:
                # Runs that are asked for from here on read all that was written; their times may be of a clock that was wrong.
                newest_run = JobRun.objects.aggregate(newest=Max("pk"))["newest"] or 0
            left[:] = [] if stage.instance.is_up() else ["the instance is not up"]
            left.extend(f"{count} {name}" for name, count in remaining_work(newest_run) if count)
        except DatabaseError as problem:
            left[:] = [f"the database does not answer: {problem}"]
        finally:
            # What is killed in the next round is not ours to hold open.
            connection.close()
        return not left

    try:
        stage.wait_until(is_at_rest, "at rest")
    except NotInTime as late:
        raise NotInTime(f"{late}; left: {', '.join(left)}") from None


def remaining_work(newest_run: int) -> Iterator[tuple[str, int]]:
    """How many are left of each kind of thing that one part hands to the next, in the order of the flow."""
    now = datetime.now(UTC)
    looked = JobRun.objects.filter(
        copy__dataset__name=ORDERS.name, kind=JobKind.INCREMENTAL, state=JobState.SUCCEEDED, pk__gt=newest_run
    )
    yield "looks at the source", 0 if looked.exists() else 1
    yield "copies not monitored yet", DatasetCopy.objects.filter(monitored_from=None).count()
    yield "touched partitions", TouchedPartition.objects.filter(claimed_at=None).count()
    is_unknown = Q(latest_outcome__in=("error", "no_data"))
    yield "units due", Unit.objects.filter(Q(due_at__lte=now) | is_unknown, test__retired_at=None).count()
    yield "flips", Flip.objects.filter(claimed_at=None).count()
    yield "messages", Message.objects.filter(state__in=(MessageState.PENDING, MessageState.HELD)).count()
