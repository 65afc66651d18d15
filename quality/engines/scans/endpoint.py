"""One side of an exchange: the keys of a part of a table, where they lie. Only filters, samples and misses leave it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from quality.domain.bloom.filters import FilterShape
from quality.engines.scans.parts import CannotRead

MAX_NAMED_KEYS = 100
"""So many missing records are named."""


class FileVanished(CannotRead):
    """A writer's cleaning took a file away between listing and reading it: look again."""


@dataclass(frozen=True)
class ProbeCounts:
    """Of `keys` that were looked for, `matching` were found; `missing` are the first others, each once."""

    keys: int
    matching: int
    missing: tuple[bytes, ...] = ()


class Endpoint(Protocol):
    """Keys are the bytes of `quality.domain.bloom.keys`; filters are in their portable form. All raise CannotRead.

    A row in whose key a null is has no key: it is among the rows that are counted, and nowhere else.
    """

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
