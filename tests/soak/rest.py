"""When is the instance at rest? Everything that was to happen by now has happened, and the lake was looked at since the writer paused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from django.db import DatabaseError, connection
from django.db.models import Q

from incidents.models import Message, MessageState
from ingestion.models import JobKind, JobRun, JobState, TouchedPartition
from lakehub.catalog.models import DatasetCopy
from quality.models import Flip, Unit
from tests.soak.stand.onboarding import ORDERS
from tests.soak.stand.stage import Stage
from tests.soak.stand.waiting import NotInTime


def wait_until_at_rest(stage: Stage) -> None:
    """Nothing is written to the source any more. Raises NotInTime with what is left to do."""
    tellings: list[dict[int, str]] = []
    left: list[str] = []

    def is_at_rest() -> bool:
        try:
            # The first look that is told from here on may be an earlier one, the second is not; times may be of a wrong clock. While no
            # process follows nothing is told.
            if (latest := _latest_tellings()) and latest not in tellings:
                tellings.append(latest)
            left[:] = [] if stage.instance.is_up() else ["the instance is not up"]
            left.extend(f"{count} {name}" for name, count in remaining_work(max(0, len(tellings) - 1)) if count)
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


def _latest_tellings() -> dict[int, str]:
    """The last look that took everything in, as the runs that follow copies have told it."""
    following = JobRun.objects.filter(copy__dataset__name=ORDERS.name, kind=JobKind.FOLLOW, state=JobState.RUNNING)
    progress_by_run = following.values_list("pk", "progress")
    return {pk: progress["looked_at"] for pk, progress in progress_by_run if progress.get("looked_at")}


def remaining_work(tellings: int) -> Iterator[tuple[str, int]]:
    """`tellings`: how often another look was told. How many are left of each kind of thing that one part hands to the next, in the order of the flow."""
    now = datetime.now(UTC)
    yield "looks at the source", max(0, 2 - tellings)
    yield "copies not monitored yet", DatasetCopy.objects.filter(monitored_from=None).count()
    yield "touched partitions", TouchedPartition.objects.filter(claimed_at=None).count()
    is_unknown = Q(latest_outcome__in=("error", "no_data"))
    yield "units due", Unit.objects.filter(Q(due_at__lte=now) | is_unknown, test__retired_at=None).count()
    yield "flips", Flip.objects.filter(claimed_at=None).count()
    yield "messages", Message.objects.filter(state__in=(MessageState.PENDING, MessageState.HELD)).count()
