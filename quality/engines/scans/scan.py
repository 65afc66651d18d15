"""What is asked of an engine and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from lakehub.catalog.metadata.tables import StoredTable
from quality.domain.language.measures import Answer, Measure, answer_without_rows
from quality.domain.language.tree.nodes import Name
from quality.domain.language.values import Failed
from quality.engines.scans.parts import Part, WholeTable


@dataclass(frozen=True)
class Scan:
    """One pass: `measures` of `part` of `target`. `other_tables` are those that the measures look into.

    With `group_by`, each measure is answered by the values of that column; the part is OnePartition or WholeTable then. Of more than `max_groups`
    values the largest are answered and one more, which shows that there are more.
    """

    target: StoredTable
    measures: tuple[Measure, ...]
    part: Part = field(default_factory=WholeTable)
    other_tables: Mapping[Name, StoredTable] = field(default_factory=dict)
    group_by: str = ""
    max_groups: int = 100


@dataclass(frozen=True)
class Limits:
    """What one scan may take."""

    timeout: timedelta = timedelta(minutes=2)
    memory: str = "1GB"
    """Enough to count the different keys of some million rows without spilling, which takes half as long again."""
    threads: int = 2
    max_grouped_keys: int = 10_000_000
    """Keys of tables with up to so many rows are grouped by the engine; of larger ones those that repeat are found by a filter."""
    max_rows: int = 100_000
    """So many groups, partitions or bins are taken from an engine; more are refused."""


@dataclass(frozen=True)
class ScanAnswers:
    """`instant` is the commit that was read, where the target has commits; `scan_count` how often the data was gone through;
    `group_count` how many values the column `group_by` has, beyond those that are answered."""

    answers: Mapping[Measure, Answer | Failed]
    instant: str = ""
    scan_count: int = 1
    group_count: int = 0


def answers_without_rows(measures: Sequence[Measure], *, grouped: bool) -> dict[Measure, Answer | Failed]:
    """What a table without a row answers: counts are 0, the rest is not known. `grouped`: by partition or by a column."""
    return {measure: {} if grouped else answer_without_rows(measure) for measure in measures}
