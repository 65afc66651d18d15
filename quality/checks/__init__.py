"""The checks: which tests a dataset gets from its metadata.

To add one: write a file here with an object that fits `Check`, add its line to CHECKS, its row to
tests/contracts/test_checks.py and its section to docs/checks.md. From outside the tree: an entry point of the group
`lakehub.checks`. Checks do not know each other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Protocol

from lakehub.kernel.registry import Registry
from quality.domain.generation.definitions import DatasetFacts, Definition, FailedCheck, InapplicableCheck

log = logging.getLogger(__name__)


class Check(Protocol):
    category: str
    keys: tuple[str, ...]
    """What the keys of its tests are, or begin with: `name`, also for `name@data_center`, and `kind:` for what people name."""

    def definitions(self, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        """The tests that the dataset gets, or why it gets none."""


CHECKS: Registry[Check] = Registry(
    "check",
    {
        "freshness": "quality.checks.freshness:FRESHNESS",
        "volume": "quality.checks.volume:VOLUME",
        "completeness": "quality.checks.completeness:COMPLETENESS",
        "sampling": "quality.checks.sampling:SAMPLING",
        "duplicates": "quality.checks.duplicates:DUPLICATES",
        "null_keys": "quality.checks.null_keys:NULL_KEYS",
        "repeated_keys": "quality.checks.repeated_keys:REPEATED_KEYS",
        "row_count_cross_dc": "quality.checks.row_count_cross_dc:ROW_COUNT_CROSS_DC",
        "bloom_cross_dc": "quality.checks.bloom_cross_dc:BLOOM_CROSS_DC",
        "difference": "quality.checks.difference:DIFFERENCE",
        "column": "quality.checks.column:COLUMN",
        "dimension": "quality.checks.dimension:DIMENSION",
        "metric": "quality.checks.metric:METRIC",
        "anomaly": "quality.checks.anomaly:ANOMALY",
        "custom": "quality.checks.custom:CUSTOM",
        "finding": "quality.checks.finding:FINDING",
    },
    group="lakehub.checks",
)


def is_reserved_key(key: str) -> bool:
    """The keys of generated tests, those that there may be one day too: no test that a person writes is called so."""
    name = key.partition("@")[0]
    reserved_keys = [reserved_key for _, check in CHECKS.usable() for reserved_key in check.keys]
    return name in {*CHECKS, *reserved_keys} or key.startswith(
        tuple(reserved_key for reserved_key in reserved_keys if reserved_key.endswith(":"))
    )


def all_definitions(dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck | FailedCheck]:
    """What all the checks make of a dataset. One that fails stops no other."""
    for name in CHECKS:
        try:
            yield from list(CHECKS.get(name).definitions(dataset))
        except Exception as problem:
            log.exception("The check %s failed for %s", name, dataset.name)
            yield FailedCheck(name, f"the check failed ({type(problem).__name__}): see the log")
