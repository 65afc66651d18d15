"""Where lineage comes from: events in the form of OpenLineage, reduced to what the newest run of each job reads and writes.

To add a source: a class that is made from a URI and has the method of `LineageSource`, one line in LAKEHUB_LINEAGE_SOURCES
(lakehub/settings.py), one row in tests/spark/test_lineage.py, where all sources must say the same of the same events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Protocol

from django.conf import settings

from lakehub.kernel.registry import Registry

WINDOW_DAYS = 30
"""A job that has not run for so long makes nothing any more: its edges are gone."""


class LineageUnavailable(RuntimeError):
    """The events cannot be read; the message says which and what to do."""


@dataclass(frozen=True, order=True)
class TableName:
    """A table as OpenLineage names it: `postgres://host:5432` and `ops.public.flights`, or `file` and `/lake/dc1/flights`."""

    namespace: str
    name: str


@dataclass(frozen=True, order=True)
class TableLink:
    """`downstream` is made from `upstream`."""

    upstream: TableName
    downstream: TableName
    one_to_one: bool = False


@dataclass(frozen=True)
class LineageSnapshot:
    """The newest lineage, whole. `dropped`: tables of which the last word is that they were dropped."""

    links: frozenset[TableLink] = frozenset()
    dropped: frozenset[TableName] = frozenset()

    @property
    def linked(self) -> frozenset[TableName]:
        return frozenset(end for link in self.links for end in (link.upstream, link.downstream))

    @property
    def tables(self) -> frozenset[TableName]:
        return self.dropped | self.linked


class LineageSource(Protocol):
    def read(self, *, now: datetime) -> LineageSnapshot:
        """What the runs of the last WINDOW_DAYS say. Raises LineageUnavailable."""


def lineage_source() -> Callable[[], LineageSource] | None:
    """The one that LAKEHUB_LINEAGE names, made from LAKEHUB_LINEAGE_URI; None: lineage is not read."""
    sources: Registry[Callable[[str], LineageSource]] = Registry("lineage source", settings.LAKEHUB_LINEAGE_SOURCES)
    name = settings.LAKEHUB_LINEAGE
    return partial(sources.get(name), settings.LAKEHUB_LINEAGE_URI) if name else None
