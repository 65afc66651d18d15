"""The engines: where measures are computed. All the measures of one scan are one pass over one table and partition.

To add one: write a file here with a class that fits `Engine`, add its line to ENGINES and its row to
tests/contracts/test_engines.py (the suite asks every engine the same things of the same data), and describe it in docs/engines.md.
An engine knows no Django and no clock.
"""

from __future__ import annotations

import logging
from typing import Protocol

from lakehub.kernel.registry import Registry
from quality.engines.scans.scan import Limits, Scan, ScanAnswers
from quality.engines.scans.targets import CannotRead

log = logging.getLogger(__name__)


class Engine(Protocol):
    """Reads, never writes."""

    def measure(self, scan: Scan, limits: Limits) -> ScanAnswers:
        """The answer to every measure of the scan; one that cannot be answered is a Failed among the answers.

        Raises CannotRead where the target itself cannot be read: then nothing could be measured.
        """


ENGINES: Registry[type[Engine]] = Registry(
    "engine",
    {
        "duckdb": "quality.engines.duckdb:DuckDbEngine",
        "spark": "quality.engines.spark:SparkEngine",
        "sqlalchemy": "quality.engines.sqlalchemy:SqlAlchemyEngine",
    },
)


def run_scan(engine: str, scan: Scan, limits: Limits) -> ScanAnswers:
    """What the engine of this name answers. Raises CannotRead for whatever it raises: the tests say so as an ERROR.

    An engine's libraries raise more than it can name. Whatever else came out would leave its tests without a result.
    """
    try:
        return ENGINES.get(engine)().measure(scan, limits)
    except CannotRead:
        raise
    except Exception as failed:
        log.exception("The engine %s failed at %s", engine, scan.target)
        # Only the log has the message: nobody has looked whether a secret is in it.
        raise CannotRead(f"The engine {engine} failed ({type(failed).__name__}): see the worker's log.") from failed
