"""What is asked of an engine and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

from quality.domain.expression.measures import Answer, Measure, of_no_rows
from quality.domain.expression.nodes import Name
from quality.domain.expression.values import Failed


class CannotRead(Exception):
    """The target cannot be read: it is not a table, is not there, or does not answer. Says which, and the remedy."""


@dataclass(frozen=True)
class HudiCopy:
    """A Hudi table; `uri` such as file:///lake/dc1/flights."""

    uri: str


@dataclass(frozen=True)
class SqlTable:
    """A table of a database; `url` is SQLAlchemy's and may hold a password, so it is not shown."""

    url: str = field(repr=False)
    table: str = ""


@dataclass(frozen=True)
class Files:
    """Files of one format below a glob: csv, jsonl, parquet or avro."""

    glob: str
    format: str


Target: TypeAlias = HudiCopy | SqlTable | Files


@dataclass(frozen=True)
class Whole:
    """All rows."""


@dataclass(frozen=True)
class One:
    """The rows whose partition column has this value."""

    column: str
    value: str


@dataclass(frozen=True)
class Each:
    """All rows, answered by the value of the partition column."""

    column: str


Part: TypeAlias = Whole | One | Each


@dataclass(frozen=True)
class Scan:
    """One pass: `measures` of `part` of `target`. `tables` are those that the measures look into.

    With `by`, each measure is answered by the values of that column; the part is One or Whole then. Of more than `most`
    values the largest are answered and one more, which shows that there are more.
    """

    target: Target
    measures: tuple[Measure, ...]
    part: Part = Whole()
    tables: Mapping[Name, Target] = field(default_factory=dict)
    by: str = ""
    most: int = 100


@dataclass(frozen=True)
class Limits:
    """What one scan may take."""

    timeout: timedelta = timedelta(minutes=2)
    memory: str = "1GB"
    """Enough to count the different keys of some million rows without spilling, which takes half as long again."""
    threads: int = 2
    rows: int = 100_000
    """So many groups, partitions or bins are taken from an engine; more are refused."""


@dataclass(frozen=True)
class Measured:
    """`instant` is the commit that was read, where the target has commits; `scans` how often the data was gone through;
    `groups` how many values the column `by` has, beyond those that are answered."""

    answers: Mapping[Measure, Answer | Failed]
    instant: str = ""
    scans: int = 1
    groups: int = 0


def of_nothing(measures: Sequence[Measure], *, each: bool) -> dict[Measure, Answer | Failed]:
    """What a table without a row answers: counts are 0, the rest is not known. `each`: by partition or by a column."""
    return {measure: {} if each else of_no_rows(measure) for measure in measures}
