"""A side that Spark reads: filters are built and probed inside the JVM, where the rows are."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lakehub.catalog.metadata.tables import HudiCopy
from quality.domain.bloom.filters import FilterShape, SparkBloomFilter
from quality.engines.backends.spark_frame import SparkFrame
from quality.engines.scans.endpoint import ProbeCounts
from quality.engines.scans.parts import Part
from quality.engines.scans.scan import Limits
from quality.spark.bloom import (
    ProbedKeys,
    build_and_probe,
    build_filter,
    first_keys,
    present_keys,
    probe_filter,
)

_NO_KEYS = ProbedKeys(0, 0, ())


def open_endpoint(table: HudiCopy, part: Part, columns: Sequence[str], limits: Limits) -> SparkEndpoint:
    """Raises CannotRead where there is no such table."""
    return SparkEndpoint(SparkFrame.open(table, part, limits), columns)


class SparkEndpoint:
    def __init__(self, frame: SparkFrame, columns: Sequence[str]) -> None:
        self.columns = columns
        self._frame = frame

    def count(self) -> int:
        return self._frame.run_limited(lambda rows: rows.count(), 0)

    def build(self, shape: FilterShape, share: float) -> str:
        return self._frame.run_limited(
            lambda rows: build_filter(rows, self.columns, shape, share), SparkBloomFilter(shape).encode()
        )

    def probe(self, filter_text: str, share: float) -> ProbeCounts:
        probed_keys = self._frame.run_limited(
            lambda rows: probe_filter(rows, self.columns, filter_text, share), _NO_KEYS
        )
        return _probe_counts(probed_keys)

    def build_and_probe(self, shape: FilterShape, filter_text: str, share: float) -> tuple[str, ProbeCounts]:
        built_here, probed_keys = self._frame.run_limited(
            lambda rows: build_and_probe(rows, self.columns, shape, filter_text, share),
            (SparkBloomFilter(shape).encode(), _NO_KEYS),
        )
        return built_here, _probe_counts(probed_keys)

    def sample(self, size: int, salt: str) -> list[bytes]:
        nothing = list[str]()
        return [
            key.encode()
            for key in self._frame.run_limited(lambda rows: first_keys(rows, self.columns, size, salt), nothing)
        ]

    def present_keys(self, keys: Collection[bytes]) -> set[bytes]:
        key_texts, nothing = [key.decode() for key in keys], list[str]()
        return {
            key.encode()
            for key in self._frame.run_limited(lambda rows: present_keys(rows, self.columns, key_texts), nothing)
        }


def _probe_counts(probed_keys: ProbedKeys) -> ProbeCounts:
    return ProbeCounts(probed_keys.keys, probed_keys.matching, tuple(key.encode() for key in probed_keys.missing))
