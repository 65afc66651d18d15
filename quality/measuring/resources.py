"""What a test runs on, for the limits of what is scarce."""

from __future__ import annotations

from collections.abc import Iterator

from lakehub.catalog.models import DatasetCopy
from quality.domain.evaluation.evaluate import asks_of_expression
from quality.domain.language import Expression
from quality.engines.scans.table_binding import TableBinding
from quality.engines.scans.targets import CannotRead, HudiCopy
from quality.measuring.table_bindings import TableBindings

LIMITED_ENGINES = ("spark", "sqlalchemy")
"""The scarcest first; a unit counts as a user of one engine only."""


def resource_of(expression: Expression, copy: DatasetCopy) -> str:
    """The scarcest engine that the test needs on this copy, and the connection where it reads a database: `spark`, `sqlalchemy:ops`."""
    resources = list(_resources(expression, TableBindings(copy)))
    return next(
        (resource for engine in LIMITED_ENGINES for resource in resources if resource.partition(":")[0] == engine),
        next(iter(resources), ""),
    )


def _resources(expression: Expression, places: TableBindings) -> Iterator[str]:
    for table in dict.fromkeys(ask.table for ask in asks_of_expression(expression)):
        try:
            yield resource_of_table(places.binding_of(table), expression.parameters.engine)
        except CannotRead:
            continue  # its result will say so


def resource_of_table(place: TableBinding, asked_for: str | None = None) -> str:
    """What reading there takes, by the engine that is asked for or by the usual one."""
    engine = asked_for if asked_for and isinstance(place.target, HudiCopy) else place.engine
    return f"{engine}:{place.connection}" if engine == "sqlalchemy" and place.connection else engine
