"""One side of an exchange: the keys of a part of a table, where they lie. Only filters, samples and misses leave it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from lakehub.kernel.registry import Registry
from quality.cross_source.streamed_keys import ProbeCounts
from quality.domain.bloom.filters import FilterShape
from quality.engines.scans.scan import Limits
from quality.engines.scans.targets import Part, Target


class Endpoint(Protocol):
    """Keys are the bytes of `quality.domain.bloom.keys`; filters are in their portable form. All raise CannotRead."""

    columns: Sequence[str]

    def count(self) -> int:
        """How many rows there are."""

    def build(self, shape: FilterShape, share: float) -> str:
        """The filter of a sample of the keys, chosen by their hash."""

    def probe(self, filter_text: str, share: float) -> ProbeCounts:
        """Which keys of the same sample the filter of the other side has."""

    def build_and_probe(self, shape: FilterShape, filter_text: str, share: float) -> tuple[str, ProbeCounts]:
        """Both, in as few scans as it takes."""

    def sample(self, size: int, salt: str) -> list[bytes]:
        """At most `size` different keys: the first in an order that only the keys and `salt` decide."""

    def present_keys(self, keys: Collection[bytes]) -> set[bytes]:
        """Those of `keys` that are here."""


ENDPOINTS: Registry[Callable[[Target, Part, Sequence[str], Limits], Endpoint]] = Registry(
    "side",
    {
        "duckdb": "quality.cross_source.endpoints.duckdb:endpoint",
        "spark": "quality.cross_source.endpoints.spark:endpoint",
        "sqlalchemy": "quality.cross_source.endpoints.sqlalchemy:endpoint",
    },
)


def open_endpoint(engine: str, target: Target, part: Part, columns: Sequence[str], limits: Limits) -> Endpoint:
    """Raises CannotRead."""
    return ENDPOINTS.get(engine)(target, part, columns, limits)
