"""Runs a two-sided measure: opens both endpoints and applies the method. An answer or a Failed, never an exception."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lakehub.catalog.metadata.tables import StoredTable
from lakehub.kernel.interval import Interval
from quality.cross_source.methods import METHODS, ROW_METHODS
from quality.domain.language.measures import Measure
from quality.domain.language.values import Failed, error
from quality.engines import ENGINES
from quality.engines.scans.endpoint import FileVanished
from quality.engines.scans.parts import CannotRead, Part
from quality.engines.scans.scan import Limits

log = logging.getLogger(__name__)


_MAX_ATTEMPTS = 3


@dataclass(frozen=True)
class EndpointChoice:
    """A part of a table, and the engine that reads it."""

    engine: str
    table: StoredTable
    part: Part


def run_cross_source(
    measure: Measure, here: EndpointChoice, there: EndpointChoice, partition: Interval, limits: Limits
) -> Mapping[str, Any] | Failed:
    """What the exchange of the measure's kind answers, never an exception."""
    try:
        for _ in range(_MAX_ATTEMPTS - 1):
            with suppress(FileVanished):
                return _attempt(measure, here, there, partition, limits)
        return _attempt(measure, here, there, partition, limits)
    except CannotRead as failed:
        return error(str(failed))
    except Exception as failed:
        log.exception("The exchange %s between %s and %s failed", measure.kind, here.table, there.table)
        # Only the log has the message: nobody has looked whether a secret is in it.
        return error(f"the exchange failed ({type(failed).__name__}): see the worker's log")


def _attempt(
    measure: Measure, here: EndpointChoice, there: EndpointChoice, partition: Interval, limits: Limits
) -> Mapping[str, Any] | Failed:
    salt = f"{partition.start.isoformat()}/{partition.end.isoformat()}"
    if measure.kind in ROW_METHODS:
        rows_here, rows_there = (
            ENGINES.get(side.engine)().row_endpoint(side.table, side.part, limits) for side in (here, there)
        )
        return ROW_METHODS.get(measure.kind)(measure, rows_here, rows_there, salt=salt)
    endpoint_here, endpoint_there = (
        ENGINES.get(side.engine)().endpoint(side.table, side.part, measure.columns, limits) for side in (here, there)
    )
    return METHODS.get(measure.kind)(measure, endpoint_here, endpoint_there, salt=salt)
