"""The exchanges: measures that need two places, one after the other. What travels between them is small: a Bloom filter,
or the keys of a sample.

To add one: write a file here with a function that fits `Exchange`, add its line to EXCHANGES and describe it in
docs/engines.md. An exchange knows no database of ours and no clock.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from lakehub.kernel.interval import Interval
from lakehub.kernel.registry import Registry
from quality.domain.expression.measures import Measure, Reach
from quality.domain.expression.values import Failed, error
from quality.engines.scan import CannotRead, HudiCopy, Limits
from quality.exchanges.sides import Side, Vanished, side_of

if TYPE_CHECKING:
    from quality.places import Place

log = logging.getLogger(__name__)

_TRIES = 3


class Exchange(Protocol):
    def __call__(self, measure: Measure, here: Side, there: Side, *, salt: str) -> Mapping[str, Any] | Failed:
        """`keys` of the other side that were looked for, how many are `matching` here, the `missing` ones by name (each once,
        at most 100) and a `report`; NO_DATA where a side has no rows. Raises CannotRead.

        `salt` is the same whenever the same partition is looked at."""


EXCHANGES: Registry[Exchange] = Registry(
    "exchange",
    {"matching": "quality.exchanges.bloom:matching", "sampled": "quality.exchanges.sampling:sampled"},
)


def exchange(
    measure: Measure, here: Place, there: Place, partition: Interval, limits: Limits, *, engine: str = ""
) -> Mapping[str, Any] | Failed:
    """What the exchange of the measure's kind answers, never an exception. `engine` reads what lies in the lake."""
    try:
        for _ in range(_TRIES - 1):
            with suppress(Vanished):
                return _tried(measure, here, there, partition, limits, engine)
        return _tried(measure, here, there, partition, limits, engine)
    except CannotRead as failed:
        return error(str(failed))
    except Exception as failed:
        log.exception("The exchange %s between %s and %s failed", measure.kind, here.target, there.target)
        # Only the log has the message: nobody has looked whether a secret is in it.
        return error(f"the exchange failed ({type(failed).__name__}): see the worker's log")


def _tried(
    measure: Measure, here: Place, there: Place, partition: Interval, limits: Limits, engine: str
) -> Mapping[str, Any] | Failed:
    ours, theirs = (_side(place, measure.columns, partition, limits, engine) for place in (here, there))
    salt = f"{partition.start.isoformat()}/{partition.end.isoformat()}"
    return EXCHANGES.get(measure.kind)(measure, ours, theirs, salt=salt)


def _side(place: Place, columns: tuple[str, ...], partition: Interval, limits: Limits, engine: str) -> Side:
    chosen = engine if engine and isinstance(place.target, HudiCopy) else place.engine
    return side_of(chosen, place.target, place.part(Reach.PARTITION, partition), columns, limits)
