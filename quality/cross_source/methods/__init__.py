"""The exchanges: measures that need two places, one after the other. What travels between them is small: a Bloom filter,
the keys of a sample, or sums over the rows.

To add one: write a file here with a function that fits `CrossSourceMethod` (it compares keys) or `RowMethod` (whole rows), add its
line to METHODS or ROW_METHODS and describe it in docs/bloom.md. An exchange knows no database of ours and no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from lakehub.kernel.registry import Registry
from quality.domain.language.measures import Measure
from quality.domain.language.values import Failed
from quality.engines.scans.endpoint import Endpoint
from quality.engines.scans.row_endpoint import RowEndpoint


class CrossSourceMethod(Protocol):
    def __call__(self, measure: Measure, here: Endpoint, there: Endpoint, *, salt: str) -> Mapping[str, Any] | Failed:
        """`keys` of the other side that were looked for, how many are `matching` here, the `missing` ones by name (each once,
        at most 100) and a `report`, with `keys_here` where the keys here were counted. NO_DATA where there is nothing to look for.
        Raises CannotRead.

        `salt` is the same whenever the same partition is looked at."""


class RowMethod(Protocol):
    def __call__(
        self, measure: Measure, here: RowEndpoint, there: RowEndpoint, *, salt: str
    ) -> Mapping[str, Any] | Failed:
        """`keys` that were compared, how many are `differing`, the `differences` by name and a `report`; NO_DATA where
        neither side has rows. Raises CannotRead."""


METHODS: Registry[CrossSourceMethod] = Registry(
    "exchange",
    {
        "matching": "quality.cross_source.methods.bloom_match:matching",
        "sampled": "quality.cross_source.methods.key_sample:sampled",
    },
)

ROW_METHODS: Registry[RowMethod] = Registry(
    "exchange of rows", {"difference": "quality.cross_source.methods.row_difference:difference"}
)

TWO_SIDED_KINDS = frozenset((*METHODS, *ROW_METHODS))
"""The kinds of measures that need two places."""
