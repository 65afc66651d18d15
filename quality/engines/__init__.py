"""The engines: where measures are computed. All the measures of one scan are one pass over one table and partition.

To add one: write a file here with a class that fits `Engine`, add its line to ENGINES and its row to
tests/contracts/test_engines.py (the suite asks every engine the same things of the same data), and describe it in docs/engines.md.
An engine knows no Django and no clock.
"""

from __future__ import annotations

from typing import Protocol

from lakehub.kernel.registry import Registry
from quality.engines.scan import Limits, Measured, Scan


class Engine(Protocol):
    """Reads, never writes."""

    def measure(self, scan: Scan, limits: Limits) -> Measured:
        """The answer to every measure of the scan; one that cannot be answered is a Failed among the answers.

        Raises CannotRead where the target itself cannot be read: then nothing could be measured.
        """


ENGINES: Registry[type[Engine]] = Registry(
    "engine",
    {
        "duckdb": "quality.engines.duckdb:DuckDb",
        "spark": "quality.engines.spark:Spark",
        "sqlalchemy": "quality.engines.sqlalchemy:SqlAlchemy",
    },
)
