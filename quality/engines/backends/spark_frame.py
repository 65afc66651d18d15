"""The rows of a side that Spark reads, and what is made of them within the time that an exchange has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lakehub.catalog.metadata.tables import HudiCopy
from quality.domain.bloom.keys import UnsupportedKeyType
from quality.engines.backends.spark_deadline import job_deadline
from quality.engines.backends.spark_sql import rows_of_partition
from quality.engines.scans.parts import CannotRead, OnePartition, Part
from quality.engines.scans.remaining_time import RemainingTime
from quality.engines.scans.scan import Limits
from quality.engines.storage.hudi_snapshot import read_snapshot
from quality.spark.bloom import UnknownColumn
from quality.spark.session import quality_session

T = TypeVar("T")


class SparkFrame:
    """`rows` is None where nothing was written there yet."""

    def __init__(self, rows: DataFrame | None, limits: Limits) -> None:
        self.rows = rows
        self._remaining = RemainingTime(limits)

    @classmethod
    def open(cls, table: HudiCopy, part: Part, limits: Limits) -> SparkFrame:
        """Raises CannotRead where there is no such table."""
        if not read_snapshot(table.uri, logs=True).slices:
            return cls(None, limits)
        frame = quality_session().read.format("hudi").load(table.uri)
        if not frame.columns:
            return cls(None, limits)  # commits without a row have no columns
        return cls(rows_of_partition(frame, part) if isinstance(part, OnePartition) else frame, limits)

    def run_limited(self, work: Callable[[DataFrame], T], nothing: T) -> T:
        """What `work` makes of the rows, or `nothing`; its jobs are cancelled when their time is over."""
        if self.rows is None:
            return nothing
        try:
            with job_deadline(self.rows.sparkSession, self._remaining.limits(), "exchange"):
                return work(self.rows)
        except (UnsupportedKeyType, UnknownColumn) as unfit:
            raise CannotRead(str(unfit)) from unfit
        except (PySparkException, Py4JJavaError) as failed:
            late = "cancelled" in str(failed)
            why = "it took longer than its timeout" if late else str(failed).strip().splitlines()[0]
            raise CannotRead(f"the exchange on Spark failed: {why}") from failed
