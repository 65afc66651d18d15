"""A run of a pipeline has finished: the tests of what it wrote are due at once, whatever their turn was."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from django.db import transaction

from lakehub.accounts import audit
from lakehub.catalog.instants import wanted_range
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.calendar import Grain, partitions_within
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.interval import BEGINNING, EVERYTHING, FOREVER, Interval
from lakehub.waking import wake
from quality import retests
from quality.models import FinishedRun, Lane, Unit
from quality.waivers import ask_rerun

MOST_PARTITIONS = 1_000
"""Of one run. More than that is a flood, which is told in pieces."""


@dataclass(frozen=True)
class Told:
    """What is said of a run: `over` is what it wrote, `link` shows it, `via` is how it was told."""

    run_id: str
    over: Interval
    link: str = ""
    via: str = ""


def take_in(copy: DatasetCopy, told: Told, *, actor: str, now: datetime) -> tuple[FinishedRun, bool]:
    """The run, and whether it is news: one that was told before changes nothing. Raises Refused, Conflict."""
    _check(copy.dataset, told.over)
    facts = {"start": told.over.start, "end": told.over.end, "link": told.link, "via": told.via}
    with transaction.atomic():
        run, is_new = FinishedRun.objects.get_or_create(
            copy=copy, run_id=told.run_id, defaults={**facts, "told_by": actor, "told_at": now}
        )
        if not is_new:
            return _same(run, told), False
        run.made_due = make_due(copy, told.over, now=now)
        run.save(update_fields=["made_due"])
        said = {"run": told.run_id, "start": told.over.start.isoformat(), "end": told.over.end.isoformat()}
        audit.record(actor, "pipeline finished", f"copy:{copy}", now=now, **said, link=told.link, via=told.via)
        wake("quality.tasks.run_due")
    return run, True


def make_due(copy: DatasetCopy, over: Interval, *, now: datetime) -> int:
    """The tests that read this range of the copy are due at once, recent partitions in the lane of what is due, history
    behind it. A partition that is still going on is tested when it is over. The number of units.
    """
    again = retests.retest(copy.pk, [(over.start, over.end)], now=now, pause=timedelta(), recent=Lane.DUE)
    return again + _run_first(copy, over, now) + _look_at_whole(copy, now)


def written_range(start: str, end: str, dataset: Dataset) -> Interval:
    """What a run says that it wrote; of a table without partitions everything. Raises Refused."""
    if dataset.partition_grain is Grain.NONE and not start and not end:
        return EVERYTHING
    return wanted_range(start, end, dataset)


def _run_first(copy: DatasetCopy, over: Interval, now: datetime) -> int:
    """Partitions that are over and whose first run waits for the SLA: they are said to be whole."""
    live = Unit.objects.filter(copy=copy, test__retired_at=None, test__version__cadence=None)
    whole = live.filter(start__lt=over.end, end__gt=over.start, end__lte=now).exclude(test__check_name="finding")
    return whole.filter(latest_at=None, leased_by="", due_at__gt=now).update(due_at=now, lane=Lane.DUE)


def _look_at_whole(copy: DatasetCopy, now: datetime) -> int:
    """Tests on a cadence read the whole table, so this range too."""
    live = Unit.objects.filter(copy=copy, test__retired_at=None, test__version__cadence__isnull=False)
    return ask_rerun(list(live.values_list("pk", flat=True)), now=now, lane=Lane.DUE)


def _same(run: FinishedRun, told: Told) -> FinishedRun:
    if (run.start, run.end) != (told.over.start, told.over.end):
        raise Conflict(
            f"Run `{run.run_id}` of {run.copy} was told at {run.told_at:%Y-%m-%d %H:%M} UTC with the range "
            f"[{run.start.isoformat()}, {run.end.isoformat()}); nothing was changed. Another run needs another run id."
        )
    return run


def _check(dataset: Dataset, over: Interval) -> None:
    if dataset.partition_grain is Grain.NONE:
        return
    if over.start < BEGINNING or over.end > FOREVER:
        raise Refused.because({"from": f"A range lies between {BEGINNING:%Y} and {FOREVER:%Y}."})
    if over.is_everything:
        raise Refused.because({"from": f"`{dataset.name}` has partitions: say which range the run wrote."})
    partitions = islice(partitions_within(over, dataset.partition_grain, dataset.zone), MOST_PARTITIONS + 1)
    if sum(1 for _ in partitions) > MOST_PARTITIONS:
        raise Refused.because(
            {"to": f"More than {MOST_PARTITIONS:,} partitions of `{dataset.name}` in one run: tell them in pieces."}
        )
