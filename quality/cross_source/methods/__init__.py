"""The exchanges: measures that need two places, one after the other. What travels between them is small: a Bloom filter,
or the keys of a sample.

To add one: write a file here with a function that fits `CrossSourceMethod`, add its line to METHODS and describe it in
docs/bloom.md. An exchange knows no database of ours and no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from lakehub.kernel.registry import Registry
from quality.domain.language.measures import Measure
from quality.domain.language.values import Failed
from quality.engines.scans.endpoint import Endpoint


class CrossSourceMethod(Protocol):
    def __call__(self, measure: Measure, here: Endpoint, there: Endpoint, *, salt: str) -> Mapping[str, Any] | Failed:
        """`keys` of the other side that were looked for, how many are `matching` here, the `missing` ones by name (each once,
        at most 100) and a `report`; NO_DATA where a side has no rows. Raises CannotRead.

        `salt` is the same whenever the same partition is looked at."""


METHODS: Registry[CrossSourceMethod] = Registry(
    "exchange",
    {
        "matching": "quality.cross_source.methods.bloom_match:matching",
        "sampled": "quality.cross_source.methods.key_sample:sampled",
    },
)
