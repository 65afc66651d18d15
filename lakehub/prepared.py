"""Queries of Django's that are put together once: for the few that are asked hundreds of times a second.

Building a queryset and turning it into SQL takes several times as long as the database takes to answer it. `Prepared` does
both once for a kind of database and keeps the text; each use binds the parameters and converts the rows as Django does.

    _LIVE = Prepared(lambda: Dataset.objects.filter(name=Parameter("name"), offboarded_at=None).values_list("pk", "tier"))
    _LIVE.rows(name="flights")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression, Field, QuerySet
from django.db.models.query import ModelIterable, get_related_populators
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
    """`build` gives a queryset, without parameters of its own where a Parameter is meant."""

    def __init__(self, build: Callable[[], QuerySet[Any, Any]]) -> None:
        self._build = build
        self._made: dict[str, _Statement] = {}

    def rows(self, **values: Any) -> list[tuple[Any, ...]]:
        """In the order of the `values_list`. Raises KeyError where a parameter is missing."""
        database = connections[DEFAULT_DB_ALIAS]
        return self._statement(database).rows(values, database)

    def objects(self, **values: Any) -> list[Any]:
        """The model's instances, with those that `select_related` names. Raises KeyError where a parameter is missing."""
        database = connections[DEFAULT_DB_ALIAS]
        made = self._statement(database)
        return [made.object_of(row) for row in made.rows(values, database)]

    def _statement(self, database: BaseDatabaseWrapper) -> _Statement:
        made = self._made.get(database.vendor)
        if made is None:
            made = self._made[database.vendor] = _Statement(self._build(), database)
        return made


class _Statement:
    def __init__(self, queryset: QuerySet[Any, Any], database: BaseDatabaseWrapper) -> None:
        compiler = queryset.query.get_compiler(connection=database)
        sql, parameters = compiler.as_sql()
        self._parameters = {_name(place, one): one for place, one in enumerate(parameters)}
        # By name: each is bound once, and no driver has to look for the places anew.
        self._sql = sql.replace("%%", "%%%%") % tuple(f"%({_name(*one)})s" for one in enumerate(parameters))
        self._converters = _converters(compiler)
        self._shape = _shape(compiler) if queryset._iterable_class is ModelIterable else None

    def rows(self, values: Mapping[str, Any], database: BaseDatabaseWrapper) -> list[tuple[Any, ...]]:
        bound = {name: _bound(one, values, database) for name, one in self._parameters.items()}
        with database.cursor() as cursor:
            cursor.execute(self._sql, bound)
            found = cursor.fetchall()
        return [self._converted(row) for row in found] if self._converters else found

    def object_of(self, row: tuple[Any, ...]) -> Any:
        assert self._shape is not None, "A query of `values_list` has no objects: use `rows`."
        made = self._shape.model.from_db(DEFAULT_DB_ALIAS, self._shape.names, row[self._shape.cells])
        for one in self._shape.related:
            one.populate(row, made)
        return made

    def _converted(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        cells = list(row)
        for place, convert in self._converters:
            value = cells[place]
            if value is not None:
                cells[place] = convert(value)
        return tuple(cells)


@dataclass(frozen=True)
class _Shape:
    """How a row becomes an object, as in Django's ModelIterable: `related` sets the objects that it refers to."""

    model: type[models.Model]
    names: list[str]
    cells: slice
    related: list[Any]


def _shape(compiler: SQLCompiler) -> _Shape:
    info, select = compiler.klass_info, compiler.select
    assert info is not None
    assert select is not None
    cells = slice(info["select_fields"][0], info["select_fields"][-1] + 1)
    names = [column.target.attname for column, _, _ in select[cells]]
    related = get_related_populators(info, select, DEFAULT_DB_ALIAS)  # type: ignore[call-arg]  # the stub is of another Django
    return _Shape(info["model"], names, cells, related)


def _name(place: int, parameter: Any) -> str:
    return parameter.name if isinstance(parameter, Parameter) else f"constant{place}"


def _bound(parameter: Any, values: Mapping[str, Any], database: BaseDatabaseWrapper) -> Any:
    if isinstance(parameter, Parameter):
        return parameter.output_field.get_db_prep_value(values[parameter.name], database)
    return parameter


_Convert = Callable[[Any], Any]


def _converters(compiler: SQLCompiler) -> list[tuple[int, _Convert]]:
    """(place, what turns the database's value into Python's). NULL is None for all of them."""
    selected = [column for column, _, _ in compiler.select] if compiler.select else []
    if not selected:  # of a union: those of its first part
        first = compiler.query.combined_queries[0].get_compiler(connection=compiler.connection)
        first.as_sql()
        selected = [column for column, _, _ in first.select]
    is_sqlite = compiler.connection.vendor == "sqlite"
    found = compiler.get_converters(selected).items()
    return [
        (place, _utc if is_sqlite and _is_instant(one) else partial(_by_all, converters, one))
        for place, (converters, one) in found
    ]


def _by_all(converters: Sequence[Callable[[Any, Any, Any], Any]], expression: Any, value: Any) -> Any:
    for convert in converters:
        value = convert(value, expression, connection)
    return value


def _is_instant(expression: Any) -> bool:
    return isinstance(expression.output_field, models.DateTimeField)


@lru_cache(maxsize=8192)
def _utc(value: datetime | str) -> datetime:
    """As Django writes them into SQLite, which has no times: in UTC, without saying so. The same few come again and again."""
    at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return at.replace(tzinfo=UTC)
