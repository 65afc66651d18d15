"""What came into a table while a job was reading its source, and what becomes of the rows that the job has read by then.

A job reads without keeping others out and then waits for its turn to write. What is decided here makes the end as if the jobs had run one
after the other, with the reading of each before the commits that came meanwhile, or after them where that may be a loss.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

LOADING_KINDS = ("bootstrap",)
MOVING_KINDS = ("incremental", "backfill", "replay")
"""Kinds of job that delete a row only where they write it to another partition; of all others a delete says that the row is gone."""
REPLACING_OPERATIONS = ("insert_overwrite", "insert_overwrite_table", "delete_partition")
"""The table format's words, in small letters: what lay in the partitions that these touch is gone."""


@dataclass(frozen=True)
class TableCommit:
    """A completed commit. `requested` and `completed` are instants, which compare as text; `kind`: of our job, empty for other writers.

    `deleted_from`: the partitions in which it deleted rows.
    """

    requested: str
    completed: str
    kind: str = ""
    operation: str = "upsert"
    deleted_from: frozenset[str] = frozenset()


@dataclass(frozen=True)
class WrittenSince:
    """Which stored rows were written after a reading began, by the instant of the commit that they carry.

    `began`: the newest completion when the reading began. `overlapping`: commits that had been requested by then and were completed later.
    It holds for commits that are archived meanwhile as well.
    """

    began: str
    overlapping: frozenset[str] = field(default_factory=frozenset)

    def includes(self, requested: str) -> bool:
        return requested > self.began or requested in self.overlapping


def written_since(began: str, commits: Iterable[TableCommit]) -> WrittenSince:
    """`commits`: at least those of the active timeline that were completed since."""
    return WrittenSince(
        began, frozenset(each.requested for each in commits if each.requested <= began < each.completed)
    )


def why_read_again(
    began: str, commits: Iterable[TableCommit], partitions: Collection[str] | None, *, oldest: str
) -> str:
    """Why what was read may bring back a row that is gone, in words; empty where it cannot.

    Of a row that is no longer in the table nothing says when it went, so the source is asked again. `partitions`: those that
    were read, None for any. `commits`: at least those that were completed since; `oldest`: the first completion of the active timeline.
    """
    since = [each for each in commits if each.completed > began]
    if began and not "" < oldest <= began:
        return "the commit that was the newest when reading began is archived, so nobody knows what was deleted since"
    for each in since:
        if each.operation.lower() in REPLACING_OPERATIONS or each.kind in LOADING_KINDS:
            return f"the commit {each.requested} has replaced rows since"
        touched = each.deleted_from if partitions is None else each.deleted_from.intersection(partitions)
        if each.kind not in MOVING_KINDS and touched:
            return f"the commit {each.requested} has deleted rows since"
    return ""
