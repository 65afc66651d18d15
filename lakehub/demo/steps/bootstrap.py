"""Spark loads all there is into both lakes; the baseline tests it, so that the gate knows the past."""

from __future__ import annotations

from django.db.models import Count

from ingestion.models import Commit, JobKind, JobRun, JobState
from lakehub.catalog.models import DatasetCopy
from lakehub.demo.settling import settle
from lakehub.demo.stage import Stage
from lakehub.demo.telling import Untrue
from lakehub.kernel.outcome import Outcome
from quality.models import Result, SkippedCheck, Test, Unit

TITLE = "Bootstrap into Hudi, and a baseline over the history"
BOOTSTRAPPED_WITHIN_S = 600


def play(stage: Stage) -> None:
    stage.processes.wait_until_they_answer()
    copies = DatasetCopy.objects.count()
    stage.wait_until("Spark to load every copy", lambda: _loaded() == copies, within_s=BOOTSTRAPPED_WITHIN_S)
    for commit in Commit.objects.select_related("copy__dataset", "copy__data_center", "run").order_by("completed_at"):
        stage.tell.say(_told(commit))
    for commit in Commit.objects.select_related("copy__dataset"):
        rows = stage.operations.rows(commit.copy.dataset.name)
        if commit.applied != rows or commit.read != sum(_accounted(commit)):
            raise Untrue(f"{commit.copy}: the source has {rows} rows, the commit says {_told(commit)}")
    stage.tell.show("read = applied + superseded + redelivered + errors, for every copy", holds=True)
    stage.wait_until("the baseline to start", lambda: not _unmonitored(), within_s=60)
    settle(stage)
    _tell_of_tests(stage)


def _loaded() -> int:
    bad = JobRun.objects.filter(state=JobState.FAILED).first()
    if bad is not None:
        raise Untrue(f"{bad}: {bad.error}")
    return JobRun.objects.filter(kind=JobKind.BOOTSTRAP, state=JobState.SUCCEEDED).values("copy").distinct().count()


def _unmonitored() -> int:
    return DatasetCopy.objects.filter(monitored_from=None).count()


def _accounted(commit: Commit) -> tuple[int, ...]:
    return tuple(count or 0 for count in (commit.applied, commit.superseded, commit.redelivered, commit.errors))


def _told(commit: Commit) -> str:
    """One line: the sum of a commit, and how long its job took."""
    parts = " + ".join(f"{count:,}" for count in _accounted(commit))
    seconds = commit.run.report.get("phases", {}).get("total") if commit.run else None
    return f"{commit.copy!s:<14} {commit.read or 0:>7,} read = {parts}" + (f"  ({seconds:.1f} s)" if seconds else "")


def _tell_of_tests(stage: Stage) -> None:
    latest = dict(Unit.objects.exclude(latest_outcome="").values_list("latest_outcome").annotate(Count("pk")))
    told = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(latest.items()))
    skipped = SkippedCheck.objects.count()
    stage.tell.say(f"{Test.objects.count()} tests from the metadata ({skipped} kinds skipped, with the reason)")
    stage.tell.say(f"{Result.objects.count():,} results for {Unit.objects.count():,} units; the latest: {told}")
    stage.tell.show("every test could tell", not latest.keys() & {Outcome.ERROR, Outcome.NO_DATA})
    stage.tell.show(
        "the history passes, but for what is wrong with it", latest[Outcome.PASS] > 50 * latest.get(Outcome.FAIL, 0)
    )
