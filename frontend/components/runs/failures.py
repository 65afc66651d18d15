"""Why a run failed, in a sentence of ours; what the job said itself stays on the dataset's page."""

from __future__ import annotations

from ingestion.models import JobKind, JobRun

_SUBJECTS = {
    JobKind.BOOTSTRAP: "The first load into",
    JobKind.INCREMENTAL: "The load of changes into",
    JobKind.BACKFILL: "The repair in",
    JobKind.DELETE: "The deletion of rows in",
    JobKind.REPLAY: "The replay of rejected rows in",
    JobKind.CLUSTER: "Putting small files together in",
    JobKind.SET_POSITION: "Setting the position of",
    JobKind.FOLLOW: "Following the source into",
    JobKind.REPLICATE: "The replication into",
    JobKind.DROP: "The removal of the copy in",
    JobKind.VERIFY_INDEX: "The look at the index in",
    JobKind.REBUILD_INDEX: "The rebuild of the index in",
    JobKind.DROP_INDEX: "The removal of the former index in",
}
_REASONS = (
    ("no space left", "the disk is full"),
    ("outofmemory", "Spark ran out of memory"),
    ("java heap space", "Spark ran out of memory"),
    ("password authentication failed", "the source refuses its name or password"),
    ("access denied", "the source refuses its name or password"),
    ("connection refused", "nothing answers at the source’s address"),
    ("resolve host", "there is no host of the source’s name"),
    ("timed out", "the source did not answer in time"),
    ("has no table", "the source has no such table"),
    ("no file below", "no file of the source matches"),
    ("unknowncolumn", "the source lacks a column that the dataset needs"),
    ("unbalancedcounts", "rows were not accounted for, so nothing was written"),
    ("deadline", "it took longer than it may"),
    ("tablefenced", "another writer held the table"),
    ("sourceerror", "the source cannot be read"),
    ("permission denied", "a file or folder may not be read or written"),
    ("ended without a word", "its worker ended before it"),
    ("no report", "its process ended early"),
    ("could not be launched", "Spark could not be started"),
    ("cannot be read", "the table cannot be read"),
)
"""What an error holds (in small letters) -> what that means. The first that fits counts."""


def failure_sentence(run: JobRun) -> str:
    """`The first load into dc1 failed 5 times: nothing answers at the source’s address.`"""
    error = run.error.lower()
    reason = next((words for sign, words in _REASONS if sign in error), "the job could not do what was asked")
    times = f"{run.attempt} times" if run.attempt > 1 else "once"
    return f"{_SUBJECTS[JobKind(run.kind)]} {run.copy.data_center.name} failed {times}: {reason}."
