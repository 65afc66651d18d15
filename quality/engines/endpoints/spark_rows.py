"""A side of an exact comparison that Spark reads: rows are hashed and added up inside the JVM, by MD5."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakehub.catalog.metadata.tables import HudiCopy
from quality.domain.bloom.keys import UnsupportedKeyType
from quality.domain.difference.agreement import Agreement, ColumnForm
from quality.domain.difference.kept_sums import MAX_KEPT_BITS, KeptSums, WithinCells
from quality.domain.difference.reconcile import WantedRows, depth_for
from quality.domain.difference.records import Row
from quality.domain.difference.sums import CellSums
from quality.engines.scans.deadline import deadline
from quality.engines.scans.parts import CannotRead, OnePartition, Part
from quality.engines.scans.remaining_time import RemainingTime
from quality.engines.scans.row_endpoint import MAX_ROWS_OF_KEY, MAX_TEXT, META_PREFIX
from quality.engines.scans.scan import Limits
from quality.engines.storage.hudi_snapshot import read_snapshot
from quality.spark.bloom import UnknownColumn, has_text
from quality.spark.row_sums import cell_sums, fetch_rows
from quality.spark.session import quality_session

T = TypeVar("T")


def open_row_endpoint(table: HudiCopy, part: Part, limits: Limits) -> SparkRows:
    """Raises CannotRead where there is no such table."""
    if not read_snapshot(table.uri, logs=True).slices:
        return SparkRows(None, limits)
    frame = quality_session().read.format("hudi").load(table.uri)
    if not frame.columns:
        return SparkRows(None, limits)  # commits without a row have no columns
    return SparkRows(
        frame.where(F.col(f"`{part.column}`") == part.value) if isinstance(part, OnePartition) else frame, limits
    )


class SparkRows:
    """The rows as a frame; None: nothing was written there yet."""

    native_hash = ""

    def __init__(self, rows: DataFrame | None, limits: Limits) -> None:
        self._rows = rows
        self._remaining = RemainingTime(limits)

    def columns(self) -> Mapping[str, ColumnForm] | None:
        if self._rows is None:
            return None
        fields = (field for field in self._rows.schema.fields if not field.name.startswith(META_PREFIX))
        return {field.name: ColumnForm(field.dataType.simpleString(), has_text(field.dataType)) for field in fields}

    def count(self) -> int:
        return self.run_limited(lambda rows: rows.count(), 0)

    def side(self, agreement: Agreement, rows: int) -> SparkSide:
        return SparkSide(self, agreement, depth_for(rows, MAX_KEPT_BITS))

    def run_limited(self, work: Callable[[DataFrame], T], nothing: T) -> T:
        """What `work` makes of the rows; its jobs are cancelled when their time is over."""
        if self._rows is None:
            return nothing
        context, group = self._rows.sparkSession.sparkContext, uuid4().hex
        context.setJobGroup(group, "lakehub exchange", interruptOnCancel=True)
        try:
            with deadline(self._remaining.limits().timeout, partial(context.cancelJobGroup, group)):
                return work(self._rows)
        except (UnsupportedKeyType, UnknownColumn) as unfit:
            raise CannotRead(str(unfit)) from unfit
        except (PySparkException, Py4JJavaError) as failed:
            late = "cancelled" in str(failed)
            why = "it took longer than its timeout" if late else str(failed).strip().splitlines()[0]
            raise CannotRead(f"the exchange on Spark failed: {why}") from failed


class SparkSide(KeptSums):
    def __init__(self, table: SparkRows, agreement: Agreement, depth: int) -> None:
        super().__init__(self._scan_sums, depth)
        self._table = table
        self._agreement = agreement

    def _scan_sums(self, depth: int, within: WithinCells | None) -> CellSums:
        key, names = self._agreement.key, self._agreement.names
        return self._table.run_limited(lambda rows: cell_sums(rows, key, names, depth, within), CellSums.none(depth))

    def rows(self, wanted: WantedRows) -> Sequence[Row]:
        key, names, nothing = self._agreement.key, self._agreement.names, list[Row]()
        fetch = partial(fetch_rows, wanted=wanted, longest=MAX_TEXT, most_of_key=MAX_ROWS_OF_KEY)
        return self._table.run_limited(lambda rows: list(fetch(rows, key, names)), nothing)
