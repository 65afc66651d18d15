"""Spark loads all there is into both lakes; the baseline tests it, so that the gate knows the past."""

from __future__ import annotations

from django.db.models import Count

from ingestion.models import Commit, JobKind, JobRun, JobState
from lakehub.catalog.models import DatasetCopy
from lakehub.demo.play.narrator import ClaimFailed
from lakehub.demo.play.settle import play_until_settled
from lakehub.demo.play.story_context import StoryContext
from lakehub.kernel.outcome import Outcome
from quality.models import QualityTest, Result, SkippedCheck, Unit

TITLE = "Bootstrap into Hudi, and a baseline over the history"
BOOTSTRAP_TIMEOUT_S = 600


def play(stage: StoryContext) -> None:
    stage.processes.wait_until_healthy()
    copies = DatasetCopy.objects.count()
    stage.wait_until("Spark to load every copy", lambda: _loaded_copies() == copies, within_s=BOOTSTRAP_TIMEOUT_S)
    # The copies that were loaded first are followed by now, and have more commits.
    loads = Commit.objects.filter(run__kind=JobKind.BOOTSTRAP)
    for commit in loads.select_related("copy__dataset", "copy__data_center", "run").order_by("completed_at"):
        stage.narrator.say(_commit_line(commit))
        rows = stage.operations.rows(commit.copy.dataset.name)
        if commit.applied != rows or commit.read != sum(_accounted_counts(commit)):
            raise ClaimFailed(f"{commit.copy}: the source has {rows} rows, the commit says {_commit_line(commit)}")
    stage.narrator.check("read = applied + superseded + redelivered + errors, for every copy", holds=True)
    stage.wait_until("the baseline to start", lambda: not _unmonitored_copies(), within_s=60)
    play_until_settled(stage)
    _show_tests(stage)


def _loaded_copies() -> int:
    bad = JobRun.objects.filter(state=JobState.FAILED).first()
    if bad is not None:
        raise ClaimFailed(f"{bad}: {bad.error}")
    return JobRun.objects.filter(kind=JobKind.BOOTSTRAP, state=JobState.SUCCEEDED).values("copy").distinct().count()


def _unmonitored_copies() -> int:
    return DatasetCopy.objects.filter(monitored_from=None).count()


def _accounted_counts(commit: Commit) -> tuple[int, ...]:
    return tuple(count or 0 for count in (commit.applied, commit.superseded, commit.redelivered, commit.errors))


def _commit_line(commit: Commit) -> str:
    """One line: the sum of a commit, and how long its job took."""
    parts = " + ".join(f"{count:,}" for count in _accounted_counts(commit))
    seconds = commit.run.report.get("phases", {}).get("total") if commit.run else None
    return f"{commit.copy!s:<14} {commit.read or 0:>7,} read = {parts}" + (f"  ({seconds:.1f} s)" if seconds else "")


def _show_tests(stage: StoryContext) -> None:
    latest = dict(Unit.objects.exclude(latest_outcome="").values_list("latest_outcome").annotate(Count("pk")))
    outcomes_text = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(latest.items()))
    skipped = SkippedCheck.objects.count()
    stage.narrator.say(
        f"{QualityTest.objects.count()} tests from the metadata ({skipped} kinds skipped, with the reason)"
    )
    stage.narrator.say(
        f"{Result.objects.count():,} results for {Unit.objects.count():,} units; the latest: {outcomes_text}"
    )
    stage.narrator.check("every test could tell", not latest.keys() & {Outcome.ERROR, Outcome.NO_DATA})
    stage.narrator.check(
        "the history passes, but for what is wrong with it", latest[Outcome.PASS] > 50 * latest.get(Outcome.FAIL, 0)
    )
