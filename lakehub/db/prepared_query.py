"""Queries of Django's that are put together once: for the few that are asked hundreds of times a second.

Building a queryset and turning it into SQL takes several times as long as the database takes to answer it. `PreparedQuery` does
both once for a kind of database and keeps the text; each use binds the parameters and converts the rows as Django does. PostgreSQL
keeps the plan as well, SQLite hands all rows over in one step (`repeated_statement`).

    _LIVE = PreparedQuery(lambda: Dataset.objects.filter(name=Parameter("name"), offboarded_at=None).values_list("pk", "tier"))
    _LIVE.rows(name="flights")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression, Field, QuerySet
from django.db.models.base import ModelState
from django.db.models.query import ModelIterable, get_related_populators
from django.db.models.sql.compiler import SQLCompiler

from lakehub.db.repeated_statement import rows_in_one, run_repeated


class Parameter(Expression):
    """A place in the query that each use fills; `field` says of which kind it is, if it is no text or number."""

    def __init__(self, name: str, field: Field[Any, Any] | None = None) -> None:
        super().__init__(output_field=field or models.CharField())
        self.name = name

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        return "%s", (self,)


def instant_parameter(name: str) -> Parameter:
    return Parameter(name, models.DateTimeField())


def number_parameter(name: str) -> Parameter:
    return Parameter(name, models.BigIntegerField())


class PreparedQuery:
    """`build` gives a queryset, without parameters of its own where a Parameter is meant."""

    def __init__(self, build: Callable[[], QuerySet[Any, Any]]) -> None:
        self._build = build
        self._statements: dict[str, _Statement] = {}

    def rows(self, **values: Any) -> list[tuple[Any, ...]]:
        """In the order of the `values_list`. Raises KeyError where a parameter is missing."""
        database = connections[DEFAULT_DB_ALIAS]
        return self._statement(database).rows(values, database)

    def objects(self, **values: Any) -> list[Any]:
        """The model's instances, with those that `select_related` names. Raises KeyError where a parameter is missing."""
        database = connections[DEFAULT_DB_ALIAS]
        statement = self._statement(database)
        return [statement.object_of(row) for row in statement.rows(values, database)]

    def _statement(self, database: BaseDatabaseWrapper) -> _Statement:
        statement = self._statements.get(database.vendor)
        if statement is None:
            statement = self._statements[database.vendor] = _Statement(self._build(), database)
        return statement


class _Statement:
    def __init__(self, queryset: QuerySet[Any, Any], database: BaseDatabaseWrapper) -> None:
        compiler = queryset.query.get_compiler(connection=database)
        sql, parameters = compiler.as_sql()
        self._parameters = {_parameter_name(place, parameter): parameter for place, parameter in enumerate(parameters)}
        # By name: each is bound once, and no driver has to look for the places anew.
        self._sql = sql.replace("%%", "%%%%") % tuple(
            f"%({_parameter_name(place, parameter)})s" for place, parameter in enumerate(parameters)
        )
        columns = _selected(compiler)
        self._converters = _converters(compiler, columns)
        self._shape = _row_shape(compiler) if queryset._iterable_class is ModelIterable else None
        self._sql, self._read_rows = rows_in_one(self._sql, [column.output_field for column in columns], database)

    def rows(self, values: Mapping[str, Any], database: BaseDatabaseWrapper) -> list[tuple[Any, ...]]:
        bound = {name: _bound_value(parameter, values, database) for name, parameter in self._parameters.items()}
        db_rows = self._read_rows(run_repeated(self._sql, bound, database))
        return [self._converted(row) for row in db_rows] if self._converters else [tuple(row) for row in db_rows]

    def object_of(self, row: tuple[Any, ...]) -> Any:
        assert self._shape is not None, "A query of `values_list` has no objects: use `rows`."
        instance = self._shape.model.from_db(DEFAULT_DB_ALIAS, self._shape.names, row[self._shape.cells])
        for related in self._shape.related:
            related.populate(row, instance)
        return instance

    def _converted(self, row: Sequence[Any]) -> tuple[Any, ...]:
        cells = list(row)
        for place, convert in self._converters:
            value = cells[place]
            if value is not None:
                cells[place] = convert(value)
        return tuple(cells)


M = TypeVar("M", bound=models.Model)


def stored_object(model: type[M], **values: Any) -> M:
    """A row of the database with some of its fields; the others are read when they are asked for. As `Model.from_db`, in a tenth of its
    time: no signal is sent."""
    instance = model.__new__(model)
    instance._state = ModelState()
    instance._state.db, instance._state.adding = DEFAULT_DB_ALIAS, False
    instance.__dict__.update(values)
    return instance


@dataclass(frozen=True)
class _RowShape:
    """How a row becomes an object, as in Django's ModelIterable: `related` sets the objects that it refers to."""

    model: type[models.Model]
    names: list[str]
    cells: slice
    related: list[Any]


def _row_shape(compiler: SQLCompiler) -> _RowShape:
    info, select = compiler.klass_info, compiler.select
    assert info is not None
    assert select is not None
    cells = slice(info["select_fields"][0], info["select_fields"][-1] + 1)
    names = [column.target.attname for column, _, _ in select[cells]]
    related = get_related_populators(info, select, DEFAULT_DB_ALIAS)  # type: ignore[call-arg]  # the stub is of another Django
    return _RowShape(info["model"], names, cells, related)


def _parameter_name(place: int, parameter: Any) -> str:
    return parameter.name if isinstance(parameter, Parameter) else f"constant{place}"


def _bound_value(parameter: Any, values: Mapping[str, Any], database: BaseDatabaseWrapper) -> Any:
    if not isinstance(parameter, Parameter):
        return parameter
    value = values[parameter.name]
    # Numbers and texts are the same for every database.
    return value if type(value) in (int, str) else parameter.output_field.get_db_prep_value(value, database)


_Convert = Callable[[Any], Any]


def _selected(compiler: SQLCompiler) -> list[Any]:
    """The columns of a query that was compiled; of a union those of its first part."""
    if compiler.select:
        return [column for column, _, _ in compiler.select]
    first = compiler.query.combined_queries[0].get_compiler(connection=compiler.connection)
    first.as_sql()
    return [column for column, _, _ in first.select]


def _converters(compiler: SQLCompiler, selected: list[Any]) -> list[tuple[int, _Convert]]:
    """(place, what turns the database's value into Python's). NULL is None for all of them."""
    is_sqlite = compiler.connection.vendor == "sqlite"
    converters_by_place = compiler.get_converters(selected).items()
    return [
        (
            place,
            _as_utc if is_sqlite and _is_instant(expression) else partial(_apply_converters, converters, expression),
        )
        for place, (converters, expression) in converters_by_place
    ]


def _apply_converters(converters: Sequence[Callable[[Any, Any, Any], Any]], expression: Any, value: Any) -> Any:
    for convert in converters:
        value = convert(value, expression, connection)
    return value


def _is_instant(expression: Any) -> bool:
    return isinstance(expression.output_field, models.DateTimeField)


@lru_cache(maxsize=8192)
def _as_utc(value: datetime | str) -> datetime:
    """As Django writes them into SQLite, which has no times: in UTC, without saying so. The same few come again and again."""
    at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return at.replace(tzinfo=UTC)
