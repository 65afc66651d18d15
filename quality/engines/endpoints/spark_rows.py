"""A side of an exact comparison that Spark reads: rows are hashed and added up inside the JVM, by MD5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from lakehub.catalog.metadata.tables import HudiCopy
from lakehub.kernel.lake_names import OWN_PREFIXES
from quality.domain.difference.agreement import Agreement, ColumnForm
from quality.domain.difference.kept_sums import MAX_KEPT_BITS, KeptSums, WithinCells
from quality.domain.difference.reconcile import WantedRows, depth_for
from quality.domain.difference.records import Row
from quality.domain.difference.sums import CellSums
from quality.engines.backends.spark_frame import SparkFrame
from quality.engines.scans.parts import Part
from quality.engines.scans.row_endpoint import MAX_ROWS_OF_KEY, MAX_TEXT
from quality.engines.scans.scan import Limits
from quality.spark.bloom import has_text
from quality.spark.row_sums import cell_sums, fetch_rows


def open_row_endpoint(table: HudiCopy, part: Part, limits: Limits) -> SparkRows:
    """Raises CannotRead where there is no such table."""
    return SparkRows(SparkFrame.open(table, part, limits))


class SparkRows:
    native_hash = ""

    def __init__(self, frame: SparkFrame) -> None:
        self.frame = frame

    def columns(self) -> Mapping[str, ColumnForm] | None:
        if self.frame.rows is None:
            return None
        fields = (field for field in self.frame.rows.schema.fields if not field.name.startswith(OWN_PREFIXES))
        return {field.name: ColumnForm(field.dataType.simpleString(), has_text(field.dataType)) for field in fields}

    def count(self) -> int:
        return self.frame.run_limited(lambda rows: rows.count(), 0)

    def side(self, agreement: Agreement, rows: int) -> SparkSide:
        return SparkSide(self, agreement, depth_for(rows, MAX_KEPT_BITS))


class SparkSide(KeptSums):
    def __init__(self, table: SparkRows, agreement: Agreement, depth: int) -> None:
        super().__init__(self._scan_sums, depth)
        self._table = table
        self._agreement = agreement

    def _scan_sums(self, depth: int, within: WithinCells | None) -> CellSums:
        key, names = self._agreement.key, self._agreement.names
        return self._table.frame.run_limited(
            lambda rows: cell_sums(rows, key, names, depth, within), CellSums.none(depth)
        )

    def rows(self, wanted: WantedRows) -> Sequence[Row]:
        key, names, nothing = self._agreement.key, self._agreement.names, list[Row]()
        fetch = partial(fetch_rows, wanted=wanted, longest=MAX_TEXT, most_of_key=MAX_ROWS_OF_KEY)
        return self._table.frame.run_limited(lambda rows: list(fetch(rows, key, names)), nothing)
