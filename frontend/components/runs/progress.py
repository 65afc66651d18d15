"""How far a run is, in words and as a share, by what its job told last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.text import Truncator

from frontend.ui import words
from ingestion.domain.following import FollowSums
from ingestion.domain.remaining import amount, phase_amounts, phase_time_left
from ingestion.models import JobKind, JobRun, JobState

STALE_AFTER = timedelta(seconds=30)
"""Jobs tell every two seconds: after so long the page says how old the number is."""
_MAX_WHY = 300
_WORDS = {
    "start": "Starting",
    "fence": "Waiting for other writers of the table",
    "read": "Reading",
    "errors": "Setting aside rows that do not fit",
    "index": "Bringing the index up to date",
    "judge": "Checking rows",
    "compute": "Computing rows",
    "audit": "Judging audits",
    "plan": "Choosing what to merge",
    "merge": "Merging small files",
    "aggregate": "Adding up the events",
    "verify": "Comparing the index with the table",
    "write": "Writing",
    "report": "Recording the commit",
    "drop": "Removing the copy",
    "replicate": "Copying files from the other data center",
}


@dataclass(frozen=True)
class RunProgress:
    sentence: str
    share: float | None
    """Of the phase; None where it is not known."""


def run_progress(run: JobRun, *, now: datetime) -> RunProgress:
    """`Reading 1,200,000 of 3,000,000 rows, about 2 min left to read.` for a run that runs; else what it waits for."""
    if run.state == JobState.WAITING:
        return RunProgress("Waiting for an input that the gate blocks.", None)
    if run.state == JobState.PAUSED:
        return RunProgress("Paused: it goes on where it was when ingestion is resumed.", None)
    if run.state == JobState.QUEUED:
        return RunProgress(_queued_sentence(run, now), None)
    if run.kind == JobKind.FOLLOW:
        return RunProgress(_following_sentence(FollowSums.from_json(run.progress), now), None)
    progress: dict[str, object] = run.progress
    if not progress or run.progress_at is None:
        return RunProgress("Starting: Spark takes some seconds.", None)
    done, total = phase_amounts(progress)
    left = phase_time_left(progress)
    sentence = (
        f"{_WORDS.get(str(progress.get('phase')), 'Working')}{_amount_text(progress)}{_left_text(progress, left)}."
    )
    if now - run.progress_at > STALE_AFTER:
        sentence += f" Last update {words.relative(run.progress_at, now=now)}."
    return RunProgress(sentence, min(1.0, done / total) if total else None)


def _queued_sentence(run: JobRun, now: datetime) -> str:
    """One that was put off, or has failed, says why it is there again."""
    if not run.error or run.due_at <= now:
        return "Queued: it starts as soon as a worker is free."
    why = Truncator(run.error).chars(_MAX_WHY).removesuffix(".")
    return f"Queued again, next try {words.relative(run.due_at, now=now)}: {why}."


def _following_sentence(sums: FollowSums, now: datetime) -> str:
    """`Last look 20 s ago, last commit 3 min ago; 1,200 looks, 12 batches, 340 rows applied.`"""
    if sums.looked_at is None:
        return "It has not looked at the source yet."
    looked = f"Last look {words.relative(sums.looked_at, now=now)}"
    committed = f", last commit {words.relative(sums.committed_at, now=now)}" if sums.committed_at else ""
    done = [words.count(sums.looks, "look"), words.count(sums.batches, "batch", "batches")]
    named = {"applied": sums.applied, "superseded": sums.superseded, "redelivered": sums.redelivered}
    rows = [f"{words.count(rows, 'row')} {name}" for name, rows in {**named, "rejected": sums.errors}.items() if rows]
    return f"{looked}{committed}; {', '.join([*done, *rows])}."


def _amount_text(progress: dict[str, object]) -> str:
    rows, total = amount(progress, "rows_read"), amount(progress, "rows_total")
    if progress.get("phase") == "read":
        if total >= rows and total:
            return f" {rows:,} of {total:,} rows"
        return f", {rows:,} rows so far"
    parts = f", {amount(progress, 'tasks_done'):,} of {amount(progress, 'tasks_total'):,} parts"
    counted = f" {words.count(rows, 'row')}" if progress.get("phase") == "write" and rows else ""
    return counted + (parts if amount(progress, "tasks_total") else "")


def _left_text(progress: dict[str, object], left: timedelta | None) -> str:
    if left is None:
        return ""
    verb = "read" if progress.get("phase") == "read" else "do this step"
    return f", about {words.duration(left)} left to {verb}"
