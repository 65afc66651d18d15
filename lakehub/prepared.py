"""Queries of Django's that are put together once: for the few that are asked hundreds of times a second.

Building a queryset and turning it into SQL takes several times as long as the database takes to answer it. `Prepared` does
both once for a kind of database and keeps the text; each use binds the parameters and converts the rows as Django does.

    _LIVE = Prepared(lambda: Dataset.objects.filter(name=Parameter("name"), offboarded_at=None).values_list("pk", "tier"))
    _LIVE.rows(name="flights")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from django.db import connection, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression, Field, QuerySet
from django.db.models.sql.compiler import SQLCompiler


class Parameter(Expression):
    """A place in the query that each use fills; `field` says of which kind it is, if it is no text or number."""

    def __init__(self, name: str, field: Field[Any, Any] | None = None) -> None:
        super().__init__(output_field=field or models.CharField())
        self.name = name

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        return "%s", (self,)


def instant(name: str) -> Parameter:
    return Parameter(name, models.DateTimeField())


def number(name: str) -> Parameter:
    return Parameter(name, models.BigIntegerField())


class Prepared:
    """`build` gives a queryset of `values_list`, without parameters of its own where a Parameter is meant."""

    def __init__(self, build: Callable[[], QuerySet[Any, Any]]) -> None:
        self._build = build
        self._made: dict[str, _Statement] = {}

    def rows(self, **values: Any) -> list[tuple[Any, ...]]:
        """In the order of the `values_list`. Raises KeyError where a parameter is missing."""
        made = self._made.get(connection.vendor)
        if made is None:
            made = self._made[connection.vendor] = _Statement(self._build())
        return made.rows(values)


class _Statement:
    def __init__(self, queryset: QuerySet[Any, Any]) -> None:
        compiler = queryset.query.get_compiler(connection=connection)
        self._sql, self._parameters = compiler.as_sql()
        self._converters = _converters(compiler)

    def rows(self, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        bound = [_bound(one, values) if isinstance(one, Parameter) else one for one in self._parameters]
        with connection.cursor() as cursor:
            cursor.execute(self._sql, bound)
            found = cursor.fetchall()
        return [self._converted(row) for row in found] if self._converters else found

    def _converted(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        cells = list(row)
        for place, converters, expression in self._converters:
            value = cells[place]
            if value is not None:
                for convert in converters:
                    value = convert(value, expression, connection)
                cells[place] = value
        return tuple(cells)


def _converters(compiler: SQLCompiler) -> list[tuple[int, list[Any], Any]]:
    """(place, what turns the database's value into Python's, the expression). NULL is None for all of them."""
    selected = [column for column, _, _ in compiler.select] if compiler.select else []
    if not selected:  # of a union: those of its first part
        first = compiler.query.combined_queries[0].get_compiler(connection=compiler.connection)
        first.as_sql()
        selected = [column for column, _, _ in first.select]
    found = compiler.get_converters(selected)
    if compiler.connection.vendor == "sqlite":
        quick = {place: ([_utc], one) for place, (_, one) in found.items() if _is_instant(one)}
        found = {**found, **quick}
    return [(place, converters, expression) for place, (converters, expression) in found.items()]


def _is_instant(expression: Any) -> bool:
    return isinstance(expression.output_field, models.DateTimeField)


def _utc(value: datetime | str, *_: Any) -> datetime:
    """As Django writes them into SQLite, which has no times: in UTC, without saying so. Its own way back takes ten times as long."""
    at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return at.replace(tzinfo=UTC)


def _bound(parameter: Parameter, values: Mapping[str, Any]) -> Any:
    return parameter.output_field.get_db_prep_value(values[parameter.name], connection)
