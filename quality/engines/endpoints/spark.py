"""A side that Spark reads: filters are built and probed inside the JVM, where the rows are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TypeVar
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lakehub.catalog.metadata.tables import HudiCopy
from quality.domain.bloom.filters import FilterShape, SparkBloomFilter
from quality.domain.bloom.keys import UnsupportedKeyType
from quality.engines.backends.spark_sql import rows_of_partition
from quality.engines.scans.deadline import deadline
from quality.engines.scans.endpoint import ProbeCounts
from quality.engines.scans.parts import CannotRead, OnePartition, Part
from quality.engines.scans.remaining_time import RemainingTime
from quality.engines.scans.scan import Limits
from quality.engines.storage.hudi_snapshot import read_snapshot
from quality.spark.bloom import (
    ProbedKeys,
    UnknownColumn,
    build_and_probe,
    build_filter,
    first_keys,
    present_keys,
    probe_filter,
)
from quality.spark.session import quality_session

T = TypeVar("T")
_NO_KEYS = ProbedKeys(0, 0, ())


def open_endpoint(table: HudiCopy, part: Part, columns: Sequence[str], limits: Limits) -> SparkEndpoint:
    """Raises CannotRead where there is no such table."""
    if not read_snapshot(table.uri, logs=True).slices:
        return SparkEndpoint(None, columns, limits)
    frame = quality_session().read.format("hudi").load(table.uri)
    rows = rows_of_partition(frame, part) if isinstance(part, OnePartition) else frame
    return SparkEndpoint(rows, columns, limits)


class SparkEndpoint:
    """The rows of one side as a frame; None: nothing was written there yet."""

    def __init__(self, rows: DataFrame | None, columns: Sequence[str], limits: Limits) -> None:
        self.columns = columns
        self._rows = rows
        self._remaining = RemainingTime(limits)

    def count(self) -> int:
        return self._run_limited(lambda rows: rows.count(), 0)

    def build(self, shape: FilterShape, share: float) -> str:
        return self._run_limited(
            lambda rows: build_filter(rows, self.columns, shape, share), SparkBloomFilter(shape).encode()
        )

    def probe(self, filter_text: str, share: float) -> ProbeCounts:
        probed_keys = self._run_limited(lambda rows: probe_filter(rows, self.columns, filter_text, share), _NO_KEYS)
        return _probe_counts(probed_keys)

    def build_and_probe(self, shape: FilterShape, filter_text: str, share: float) -> tuple[str, ProbeCounts]:
        built_here, probed_keys = self._run_limited(
            lambda rows: build_and_probe(rows, self.columns, shape, filter_text, share),
            (SparkBloomFilter(shape).encode(), _NO_KEYS),
        )
        return built_here, _probe_counts(probed_keys)

    def sample(self, size: int, salt: str) -> list[bytes]:
        nothing = list[str]()
        return [
            key.encode() for key in self._run_limited(lambda rows: first_keys(rows, self.columns, size, salt), nothing)
        ]

    def present_keys(self, keys: Collection[bytes]) -> set[bytes]:
        key_texts, nothing = [key.decode() for key in keys], list[str]()
        return {
            key.encode() for key in self._run_limited(lambda rows: present_keys(rows, self.columns, key_texts), nothing)
        }

    def _run_limited(self, work: Callable[[DataFrame], T], nothing: T) -> T:
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


def _probe_counts(probed_keys: ProbedKeys) -> ProbeCounts:
    return ProbeCounts(probed_keys.keys, probed_keys.matching, tuple(key.encode() for key in probed_keys.missing))
