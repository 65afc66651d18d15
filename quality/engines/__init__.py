"""The engines: where measures are computed. All the measures of one scan are one pass over one table and partition.

To add one: write a file here with a class that fits `Engine`, add its line to ENGINES and its row to
tests/contracts/test_engines.py (the suite asks every engine the same things of the same data), and describe it in docs/engines.md.
From outside the tree: an entry point of the group `lakehub.engines`. An engine knows no Django and no clock.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import ClassVar

from lakehub.catalog.metadata.tables import StoredTable
from lakehub.kernel.registry import Registry, UnknownPlugin
from quality.engines.scans.endpoint import Endpoint
from quality.engines.scans.parts import CannotRead, Part
from quality.engines.scans.row_endpoint import RowEndpoint
from quality.engines.scans.scan import Limits, Scan, ScanAnswers

log = logging.getLogger(__name__)


class Engine(ABC):
    """Reads, never writes. It is asked about tables of the forms in `reads` only."""

    reads: ClassVar[tuple[type[StoredTable], ...]]
    fits_requests: ClassVar[bool] = True
    """It answers soon enough for somebody who waits; False: it is started for work in the background only."""
    limited_by_connection: ClassVar[bool] = False
    """How much it reads at once is limited for each connection, besides in all."""

    @abstractmethod
    def measure(self, scan: Scan, limits: Limits) -> ScanAnswers:
        """The answer to every measure of the scan; one that cannot be answered is a Failed among the answers.

        Raises CannotRead where the table itself cannot be read: then nothing could be measured.
        """

    def part_states(self, table: StoredTable, parts: Collection[Part]) -> Mapping[Part, str]:
        """A digest for each part, in one look at the table; without those that are empty, or whose state is not known.

        While it is the same, so are the answers to all measures of the part. Raises CannotRead.
        """
        return {}

    def partition_states(self, table: StoredTable) -> Mapping[str, str] | None:
        """A digest for each partition that changes where its rows do. None: the table does not say. Raises CannotRead."""
        return None

    def endpoint(self, table: StoredTable, part: Part, columns: Sequence[str], limits: Limits) -> Endpoint:
        """The keys of a part, to compare them with those of another table. Raises CannotRead."""
        raise CannotRead(f"{type(self).__name__} compares no keys with those of another table.")

    def row_endpoint(self, table: StoredTable, part: Part, limits: Limits) -> RowEndpoint:
        """The rows of a part, to compare them with those of another table. Raises CannotRead."""
        raise CannotRead(f"{type(self).__name__} compares no rows with those of another table.")


ENGINES: Registry[type[Engine]] = Registry(
    "engine",
    {
        "duckdb": "quality.engines.duckdb:DuckDbEngine",
        "sqlalchemy": "quality.engines.sqlalchemy:SqlAlchemyEngine",
        "spark": "quality.engines.spark:SparkEngine",
    },
    group="lakehub.engines",
)
"""The first that reads a table is its usual one, where the table names none."""


def engine_for(table: StoredTable, asked_for: str | None = None) -> str:
    """The name of the engine that is asked for, where it reads such tables; else of the usual one. Raises CannotRead."""
    if asked_for:
        with suppress(UnknownPlugin):  # its package is gone, or cannot be loaded
            if isinstance(table, ENGINES.get(asked_for).reads):
                return asked_for
    if table.usual_engine:
        return table.usual_engine
    for name, engine in ENGINES.usable():
        if isinstance(table, engine.reads):
            return name
    raise CannotRead(f"No engine reads {table}: {table.unread_remedy}.")


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
