"""Runs a two-sided measure: opens both endpoints and applies the method. An answer or a Failed, never an exception."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lakehub.kernel.interval import Interval
from quality.cross_source.endpoints import Endpoint, open_endpoint
from quality.cross_source.methods import METHODS
from quality.cross_source.streamed_keys import FileVanished
from quality.domain.language.measures import Measure, Reach
from quality.domain.language.values import Failed, error
from quality.engines.scans.scan import Limits
from quality.engines.scans.targets import CannotRead, HudiCopy

if TYPE_CHECKING:
    from quality.engines.scans.table_binding import TableBinding

log = logging.getLogger(__name__)


_MAX_ATTEMPTS = 3


def run_cross_source(
    measure: Measure, here: TableBinding, there: TableBinding, partition: Interval, limits: Limits, *, engine: str = ""
) -> Mapping[str, Any] | Failed:
    """What the exchange of the measure's kind answers, never an exception. `engine` reads what lies in the lake."""
    try:
        for _ in range(_MAX_ATTEMPTS - 1):
            with suppress(FileVanished):
                return _attempt(measure, here, there, partition, limits, engine)
        return _attempt(measure, here, there, partition, limits, engine)
    except CannotRead as failed:
        return error(str(failed))
    except Exception as failed:
        log.exception("The exchange %s between %s and %s failed", measure.kind, here.target, there.target)
        # Only the log has the message: nobody has looked whether a secret is in it.
        return error(f"the exchange failed ({type(failed).__name__}): see the worker's log")


def _attempt(
    measure: Measure, here: TableBinding, there: TableBinding, partition: Interval, limits: Limits, engine: str
) -> Mapping[str, Any] | Failed:
    endpoint_here, endpoint_there = (
        _open_endpoint(place, measure.columns, partition, limits, engine) for place in (here, there)
    )
    salt = f"{partition.start.isoformat()}/{partition.end.isoformat()}"
    return METHODS.get(measure.kind)(measure, endpoint_here, endpoint_there, salt=salt)


def _open_endpoint(
    place: TableBinding, columns: tuple[str, ...], partition: Interval, limits: Limits, engine: str
) -> Endpoint:
    chosen = engine if engine and isinstance(place.target, HudiCopy) else place.engine
    return open_endpoint(chosen, place.target, place.part(Reach.PARTITION, partition), columns, limits)
