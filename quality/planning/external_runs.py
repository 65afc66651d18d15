"""A run of a pipeline has finished: the tests of what it wrote are due at once, whatever their turn was."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from django.db import transaction
from django.db.models import F

from lakehub.accounts.audit import audit_log
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.catalog.request_times import parse_range
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.partitions import Grain, partitions_within
from lakehub.processes.task_wakeup import wake_task
from quality.models import ExternalRun, Lane, Unit
from quality.planning import touched_partitions
from quality.state.waivers import request_rerun

MAX_PARTITIONS = 1_000
"""Of one run. More than that is a flood, which is told in pieces."""


@dataclass(frozen=True)
class ExternalRunReport:
    """What is said of a run: `over` is what it wrote, `link` shows it, `via` is how it was told."""

    run_id: str
    over: Interval
    link: str = ""
    via: str = ""


def record_external_run(
    copy: DatasetCopy, report: ExternalRunReport, *, actor: str, now: datetime
) -> tuple[ExternalRun, bool]:
    """The run, and whether it is news: one that was told before changes nothing. Raises Refused, Conflict."""
    _check_range(copy.dataset, report.over)
    facts = {"start": report.over.start, "end": report.over.end, "link": report.link, "via": report.via}
    with transaction.atomic():
        run, is_new = ExternalRun.objects.get_or_create(
            copy=copy, run_id=report.run_id, defaults={**facts, "reported_by": actor, "reported_at": now}
        )
        if not is_new:
            return _same_run(run, report), False
        run.units_made_due = make_readers_due(copy, report.over, now=now)
        run.save(update_fields=["units_made_due"])
        audit_facts = {"run": report.run_id, "start": report.over.start.isoformat(), "end": report.over.end.isoformat()}
        audit_log.record(
            actor, "pipeline finished", f"copy:{copy}", now=now, **audit_facts, link=report.link, via=report.via
        )
        wake_task("quality.tasks.run_due")
    return run, True


def make_readers_due(copy: DatasetCopy, over: Interval, *, now: datetime) -> int:
    """The tests that read this range of the copy are due at once, recent partitions in the lane of what is due, history
    behind it. A partition that is still going on is tested when it is over. The number of units.
    """
    again = touched_partitions.retest(copy.pk, [(over.start, over.end)], now=now, pause=timedelta(), recent=Lane.DUE)
    return again + _make_first_runs_due(copy, over, now) + _make_whole_table_tests_due(copy, now)


def written_range(start: str, end: str, dataset: Dataset) -> Interval:
    """What a run says that it wrote; of a table without partitions everything. Raises Refused."""
    if dataset.partition_grain is Grain.NONE and not start and not end:
        return EVERYTHING
    return parse_range(start, end, dataset)


def _make_first_runs_due(copy: DatasetCopy, over: Interval, now: datetime) -> int:
    """Partitions that are over and whose first run waits for the SLA: they are said to be whole."""
    live = Unit.objects.filter(copy=copy, test__planned=True, test__retired_at=None, test__version__cadence=None)
    whole = live.filter(start__lt=over.end, end__gt=over.start, end__lte=now)
    return whole.filter(latest_at=None, leased_by="", due_at__gt=now).update(due_at=now, lane=Lane.DUE)


def _make_whole_table_tests_due(copy: DatasetCopy, now: datetime) -> int:
    """Tests on a cadence read the whole table, so this range too. What takes so long that not even its failure is looked at again
    within its cadence waits for that."""
    live = Unit.objects.filter(copy=copy, test__retired_at=None, test__version__cadence__isnull=False)
    quick = live.filter(test__version__rerun_base__lt=F("test__version__cadence"))
    return request_rerun(list(quick.values_list("pk", flat=True)), now=now, lane=Lane.DUE)


def _same_run(run: ExternalRun, report: ExternalRunReport) -> ExternalRun:
    if (run.start, run.end) != (report.over.start, report.over.end):
        raise Conflict(
            f"Run `{run.run_id}` of {run.copy} was told at {run.reported_at:%Y-%m-%d %H:%M} UTC with the range "
            f"[{run.start.isoformat()}, {run.end.isoformat()}); nothing was changed. Another run needs another run id."
        )
    return run


def _check_range(dataset: Dataset, over: Interval) -> None:
    if dataset.partition_grain is Grain.NONE:
        return
    if over.is_everything:
        raise Refused.for_fields({"from": f"`{dataset.name}` has partitions: say which range the run wrote."})
    partitions = islice(partitions_within(over, dataset.partition_grain, dataset.zone), MAX_PARTITIONS + 1)
    if sum(1 for _ in partitions) > MAX_PARTITIONS:
        raise Refused.for_fields(
            {"to": f"More than {MAX_PARTITIONS:,} partitions of `{dataset.name}` in one run: tell them in pieces."}
        )
