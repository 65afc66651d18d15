"""Does an index say where the keys of a table lie? Its entries are compared with the rows of the base files, which nothing changes.

Both sides are joined by key in Spark, which spills to disk what does not fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from math import ceil
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingestion.spark.file_groups.record_locations import stored_file_id

MAX_EXAMPLES = 10
"""Of each problem."""
ENTRY_COLUMNS = ("key", "partition", "file_id")
_HASH_BUCKETS = 1_000_000


class IndexProblem(StrEnum):
    """What may be wrong with a key."""

    DOUBLED = "doubled"
    """The table has it more than once."""
    MISSING = "missing"
    """The table has it, and the index does not: it would be inserted once more."""
    MISPLACED = "misplaced"
    """The index has it in another place than the table."""
    WITHOUT_ROW = "without_row"
    """The index has it, and the table does not. Harmless: it is looked for in a file that does not hold it."""


REPAIRABLE = (IndexProblem.MISSING, IndexProblem.MISPLACED, IndexProblem.WITHOUT_ROW)
"""Those of the index, and not of the table."""
Repair = Callable[[DataFrame], None]
"""Of a frame with a row for each key that is wrong: `key`, and where the table has it: `partition`, `file_id` and `instant`, null where it does not."""


@dataclass(frozen=True)
class KeySample:
    """Which keys are compared: a share of them by their hash, the same on both sides; another `seed` has others."""

    share: float = 1.0
    seed: str = ""

    def of(self, frame: DataFrame, key: Column) -> DataFrame:
        if self.share >= 1:
            return frame
        return frame.where(F.pmod(F.xxhash64(key, F.lit(self.seed)), F.lit(_HASH_BUCKETS)) < self._buckets)

    @property
    def _buckets(self) -> int:
        return ceil(self.share * _HASH_BUCKETS)


ALL_KEYS = KeySample()


@dataclass(frozen=True)
class IndexCheck:
    """`rows` of the table and `entries` of the index (None: it keeps none) that were compared, which are the `share` of all. `problems`: how many keys have each;
    `examples`: some of them."""

    index: str
    rows: int
    entries: int | None
    problems: dict[str, int]
    examples: dict[str, list[str]]
    share: float = 1.0

    @property
    def repairable(self) -> dict[str, int]:
        """How many keys have each problem that the index can be rid of by itself."""
        return {problem: self.problems[problem] for problem in REPAIRABLE if self.problems[problem]}

    def output(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


def check_entries(
    index: str,
    rows: DataFrame,
    entries: DataFrame | None,
    sample: KeySample = ALL_KEYS,
    repair: Repair | None = None,
) -> IndexCheck:
    """`rows`: of the table, with Hudi's own columns; `entries`: ENTRY_COLUMNS, None where the index keeps nothing. A few Spark jobs.

    `repair` is called where an entry is wrong or missing; keys that the table has twice are left to a person.
    """
    compared = _compare(rows, entries, sample).persist(StorageLevel.DISK_ONLY)
    try:
        counts = compared.groupBy("problem").agg(
            F.count("*").alias("keys"), F.sum("times").alias("rows"), F.count("entry").alias("entries")
        )
        groups = counts.collect()
        problems = {group.problem: group["keys"] for group in groups if group.problem is not None}
        check = IndexCheck(
            index,
            rows=sum(group["rows"] or 0 for group in groups),
            entries=None if entries is None else sum(group["entries"] for group in groups),
            problems={str(problem): problems.get(problem, 0) for problem in IndexProblem},
            examples={problem: _examples(compared, problem) for problem in sorted(problems)},
            share=sample.share,
        )
        if repair is not None and check.repairable:
            wrong = compared.where(F.col("problem").isin(*REPAIRABLE))
            repair(wrong.select("key", "place.partition", "place.file_id", "instant"))
        return check
    finally:
        compared.unpersist()


def _compare(rows: DataFrame, entries: DataFrame | None, sample: KeySample) -> DataFrame:
    """Each key of either side with its problem, null for none."""
    place = F.struct(F.col("_hoodie_partition_path").alias("partition"), stored_file_id().alias("file_id"))
    key = F.col("_hoodie_record_key")
    stored = (
        sample.of(rows, key)
        .groupBy(key.alias("key"))
        .agg(
            F.count("*").alias("times"),
            F.min(place).alias("place"),
            F.max(place).alias("other"),
            F.max("_hoodie_commit_time").alias("instant"),
        )
    )
    if entries is None:
        nothing = F.lit(None).cast(stored.schema["place"].dataType)
        return stored.withColumn("entry", nothing).withColumn(
            "problem", F.when(F.col("times") > 1, IndexProblem.DOUBLED)
        )
    known = sample.of(entries, F.col("key")).select("key", F.struct("partition", "file_id").alias("entry"))
    return stored.join(known, "key", "full_outer").withColumn("problem", _problem())


def _problem() -> Column:
    return (
        F.when(F.col("times").isNull(), IndexProblem.WITHOUT_ROW)
        .when(F.col("times") > 1, IndexProblem.DOUBLED)
        .when(F.col("entry").isNull(), IndexProblem.MISSING)
        .when(~F.col("entry").eqNullSafe(F.col("place")), IndexProblem.MISPLACED)
    )


def _examples(compared: DataFrame, problem: str) -> list[str]:
    """In words: the key, and where it lies."""
    rows = compared.where(F.col("problem") == problem).orderBy("key").limit(MAX_EXAMPLES).collect()
    return [_example(problem, row) for row in rows]


def _example(problem: str, row: Any) -> str:
    if problem == IndexProblem.WITHOUT_ROW:
        return f"{row.key}: the index has it in {_place_text(row.entry)}"
    if problem == IndexProblem.DOUBLED:
        return f"{row.key}: {row.times} times, in {_place_text(row.place)} and {_place_text(row.other)}"
    if problem == IndexProblem.MISSING:
        return f"{row.key}: the table has it in {_place_text(row.place)}"
    return f"{row.key}: the table has it in {_place_text(row.place)}, the index in {_place_text(row.entry)}"


def _place_text(place: Any) -> str:
    return "/".join(filter(None, (place.partition, place.file_id)))
