"""What a test runs on, for the limits of what is scarce."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

from django.conf import settings

from lakehub.catalog.metadata.tables import StoredTable
from lakehub.catalog.models import DatasetCopy
from quality.domain.evaluation.evaluate import asks_of_expression
from quality.domain.language import Expression
from quality.engines import ENGINES, engine_for
from quality.engines.scans.parts import CannotRead
from quality.measuring.table_bindings import TableBinding, TableBindings


def resource_of(expression: Expression, copy: DatasetCopy) -> str:
    """The scarcest engine that the test needs on this copy, and the connection where it reads a database: `spark`, `sqlalchemy:ops`."""
    return scarcest(resources_of(expression, copy))


def resources_of(expression: Expression, copy: DatasetCopy) -> list[str]:
    """All of them; without what cannot be read, whose result will say so."""
    return list(_resources(expression, TableBindings(copy)))


def scarcest(resources: Iterable[str]) -> str:
    return min(resources, key=_scarcity, default="")


def refuse_background_engines(resources: Iterable[str]) -> None:
    """Raises CannotRead for an engine that is not started while somebody waits."""
    for resource in resources:
        engine = resource.partition(":")[0]
        if not ENGINES.get(engine).fits_requests:
            raise CannotRead(f"No request starts {engine}: try it by `manage.py backtest`, or on another engine")


def _scarcity(resource: str) -> tuple[float, bool]:
    """A unit counts as a user of one engine only: of the one that fewest may use at once, of equals of a connection's."""
    engine, _, connection = resource.partition(":")
    limits: dict[str, int] = settings.LAKEHUB_ENGINE_LIMITS
    return limits.get(engine, inf), not connection


def _resources(expression: Expression, places: TableBindings) -> Iterator[str]:
    for table in dict.fromkeys(ask.table for ask in asks_of_expression(expression)):
        try:
            yield resource_of_table(places.binding_of(table), expression.parameters.engine)
        except CannotRead:
            continue  # its result will say so


def resource_of_table(place: TableBinding, asked_for: str | None = None) -> str:
    """What reading there takes, by the engine that is asked for or by the usual one. Raises CannotRead where none reads it."""
    return resource_of_connection(place.connection, place.target, asked_for)


def resource_of_connection(connection: str, table: StoredTable, asked_for: str | None = None) -> str:
    """The same of a table of the connection of that name; empty: it lies in the lake. Raises CannotRead where no engine reads it."""
    engine = engine_for(table, asked_for)
    return f"{engine}:{connection}" if connection and ENGINES.get(engine).limited_by_connection else engine
