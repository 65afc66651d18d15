"""What a test runs on, for the limits of what is scarce."""

from __future__ import annotations

from collections.abc import Iterator

from lakehub.catalog.models import DatasetCopy
from quality.domain.evaluation import asks
from quality.domain.expression import Expression
from quality.engines.scan import CannotRead, HudiCopy
from quality.places import Place, Places

SCARCE = ("spark", "sqlalchemy")
"""The scarcest first; a unit counts as a user of one engine only."""


def uses(expression: Expression, copy: DatasetCopy) -> str:
    """The scarcest engine that the test needs on this copy, and the connection where it reads a database: `spark`, `sqlalchemy:ops`."""
    found = list(_found(expression, Places(copy)))
    return next((one for engine in SCARCE for one in found if one.partition(":")[0] == engine), next(iter(found), ""))


def _found(expression: Expression, places: Places) -> Iterator[str]:
    for table in dict.fromkeys(ask.table for ask in asks(expression)):
        try:
            yield uses_of(places.of(table), expression.parameters.engine)
        except CannotRead:
            continue  # its result will say so


def uses_of(place: Place, asked_for: str | None = None) -> str:
    """What reading there takes, by the engine that is asked for or by the usual one."""
    engine = asked_for if asked_for and isinstance(place.target, HudiCopy) else place.engine
    return f"{engine}:{place.connection}" if engine == "sqlalchemy" and place.connection else engine
