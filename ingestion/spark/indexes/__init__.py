"""Indexes: which rows of a batch the table holds already. What an index finds tells update from insert, and where each row lives.

To add one: a module here with a class that has the methods of `Index`; a line in INDEXES. tests/spark/test_indexes.py runs against each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

from ingestion.spark.contract.spec import TableSpec
from lakehub.kernel.registry import Registry

if TYPE_CHECKING:  # the names are asked for where no Spark is
    from pyspark.sql import DataFrame, SparkSession

    from ingestion.spark.file_groups import BaseFile
    from ingestion.spark.file_groups.batch_keys import BatchKeys


Permit = Callable[[], AbstractContextManager[object]]
"""Within it nobody else writes the table. The default is for callers that hold it."""


class Index(Protocol):
    def write_options(self, table: TableSpec) -> dict[str, str]:
        """Write options that every commit of such a table needs, the first one too."""

    def prepare(self, spark: SparkSession, table: TableSpec) -> None:
        """Before a job reads its source, and without the permit: whatever can be done without it. Raises IndexUnavailable."""

    def prepare_look_up(self, spark: SparkSession, table: TableSpec, permit: Permit) -> None:
        """Before a job that has keys to look up takes the permit: what takes long is done without it. `permit`: held for no longer than is needed.

        Raises IndexUnavailable."""

    def stored_rows(self, spark: SparkSession, table: TableSpec, batch: BatchKeys) -> DataFrame:
        """The rows of the table that may have the keys of the batch, with Hudi's own columns; those of the whole table at worst."""

    def is_up_to_date(self, table: TableSpec) -> bool:
        """False: the next commit has work to do that is Spark's, such as building the index."""

    def base_files(
        self, spark: SparkSession, table: TableSpec, keys: Sequence[str], partitions: Collection[str]
    ) -> Sequence[BaseFile] | None:
        """The newest base files of the file groups that may hold the keys of a small batch, for which no Spark job is run.

        `keys`: as Hudi writes them; of none nothing is asked; `partitions`: the paths of the partitions to which the batch's rows belong.
        None: Spark has to read the table, or the index is not up to date.
        """

    def settle(self, spark: SparkSession, table: TableSpec, rows: int) -> None:
        """After a load of so many rows, within the table's fence: whatever keeps later look-ups from growing with the table."""

    def entries(self, spark: SparkSession, table: TableSpec, scratch: str) -> DataFrame | None:
        """What the index says of each key that it knows: `key`, `partition` (its path) and `file_id`. None: it keeps nothing.

        Changes nothing. `scratch`: the URI of a folder that every executor reaches, for as long as the frame is used.
        """

    def limitation(self, table: TableSpec) -> str | None:
        """Why Spark has to look the keys of this table up in the table itself, and what to do; empty: it has not. None: this process has not asked yet."""

    def rebuild(self, spark: SparkSession, table: TableSpec, permit: Permit = nullcontext) -> None:
        """What the index keeps is made anew from the base files, whatever state it is in. `permit`: to write the table, held for no longer than is needed."""

    def correct(self, spark: SparkSession, table: TableSpec, new_keys: Collection[str] | DataFrame) -> int:
        """Within the table's permit, after the stored rows were read that it named: `new_keys` (a frame's column `key`) have none among them.

        Of how many of these the table has a row all the same. The index knows better by now: the batch is to be judged again.
        """

    def repair(self, spark: SparkSession, table: TableSpec, wrong: DataFrame) -> None:
        """Within the table's permit: puts these keys right, as `index_check.Repair` has them. Raises NotRepairable."""


class NotRepairable(ValueError):
    """The index is only made anew as a whole."""


class WholeIndex:
    """What an index has in common with others whose single entries are not put right."""

    def prepare_look_up(self, spark: SparkSession, table: TableSpec, permit: Permit) -> None:
        """It is there, or is made by a commit."""

    def correct(self, spark: SparkSession, table: TableSpec, new_keys: Collection[str] | DataFrame) -> int:
        return 0

    def repair(self, spark: SparkSession, table: TableSpec, wrong: DataFrame) -> None:
        raise NotRepairable(
            f"The index `{table.index}` of `{table.name}` is not put right key by key. Rebuild it where it is wrong."
        )


INDEXES: Registry[type[Index]] = Registry(
    "index",
    {
        "simple": "ingestion.spark.indexes.simple:SimpleIndex",
        "record_index": "ingestion.spark.indexes.record_index:RecordIndex",
        "memory": "ingestion.spark.indexes.memory:MemoryIndex",
        "hbase": "ingestion.spark.indexes.hbase:HBaseIndex",
    },
)


def index_names() -> tuple[str, ...]:
    return tuple(INDEXES)
