"""Tables of any database that SQLAlchemy speaks to; used for the upstream side of a test. Read-only and bounded by the database itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import NoSuchModuleError, NoSuchTableError, SQLAlchemyError
from sqlalchemy.types import NullType

from lakehub.kernel import addresses
from lakehub.kernel.suggest import did_you_mean
from quality.domain.expression.measures import Answer, Measure, Scalar
from quality.domain.expression.values import Failed, error
from quality.engines.scan import CannotRead, Each, Limits, Measured, One, Scan, SqlTable
from quality.engines.select import cannot_look_up, unknown_columns

_AGGREGATES: dict[str, Callable[[Sequence[sa.Column[Any]]], sa.ColumnElement[Any]]] = {
    "rows": lambda columns: sa.func.count(),
    "nulls": lambda columns: sa.func.count() - sa.func.count(columns[0]),
    "filled": lambda columns: sa.func.count(columns[0]),
    "sum": lambda columns: sa.func.sum(columns[0]),
    "minimum": lambda columns: sa.func.min(columns[0]),
    "maximum": lambda columns: sa.func.max(columns[0]),
}
"""What fits in one SELECT; `distinct` and `unmatched` are statements of their own, which every database understands."""

_BOUNDS: dict[str, Callable[[int], tuple[str, ...]]] = {
    "postgresql": lambda ms: ("SET TRANSACTION READ ONLY", f"SET LOCAL statement_timeout = {ms}"),
    "mysql": lambda ms: (f"SET SESSION max_execution_time = {ms}",),
    "mariadb": lambda ms: (f"SET SESSION max_statement_time = {ms / 1000}",),
    "sqlite": lambda ms: ("PRAGMA query_only = ON",),
}


class SqlAlchemy:
    def measure(self, scan: Scan, limits: Limits) -> Measured:
        if not isinstance(scan.target, SqlTable):
            raise CannotRead("This engine reads tables of databases; for a Hudi table or files choose engine=duckdb.")
        shown = _shown(scan.target)
        try:
            with _engine(scan.target.url).connect() as connection:
                _bind(connection, limits)
                return _Reading(connection, scan, _table(connection, scan.target.table, shown)).measured()
        except (NoSuchModuleError, ImportError) as missing:
            raise CannotRead(
                f"{shown} cannot be read: this kind of database has no driver here: {missing}."
            ) from missing
        except SQLAlchemyError as failed:
            raise CannotRead(f"{shown} cannot be read: {_cause(failed)}") from failed


def _shown(target: SqlTable) -> str:
    return f"{target.table} of {addresses.shown(target.url)}"


def _cause(failed: SQLAlchemyError) -> str:
    return str(getattr(failed, "orig", None) or failed).splitlines()[0]


@lru_cache(maxsize=16)
def _engine(url: str) -> sa.Engine:
    return sa.create_engine(url, poolclass=sa.NullPool)


def _bind(connection: sa.Connection, limits: Limits) -> None:
    milliseconds = int(limits.timeout.total_seconds() * 1000)
    bounds = _BOUNDS.get(connection.dialect.name)
    for statement in bounds(milliseconds) if bounds else ():
        connection.execute(sa.text(statement))
    if connection.dialect.name == "sqlite":
        _stop_after(connection, limits.timeout.total_seconds())


def _stop_after(connection: sa.Connection, seconds: float) -> None:
    """SQLite has no timeout of its own: it asks us every so many steps whether to go on."""
    ends_at = time.monotonic() + seconds
    raw: Any = connection.connection.driver_connection
    raw.set_progress_handler(lambda: int(time.monotonic() > ends_at), 100_000)


def _table(connection: sa.Connection, name: str, shown: str) -> sa.Table:
    schema, _, table = name.rpartition(".")
    try:
        return sa.Table(table, sa.MetaData(), schema=schema or None, autoload_with=connection, resolve_fks=False)
    except NoSuchTableError:
        known = sa.inspect(connection).get_table_names(schema=schema or None)
        raise CannotRead(f"There is no table {shown}.{did_you_mean(table, known)}") from None


class _Reading:
    """One statement for the measures that share a SELECT, one for each of the others."""

    def __init__(self, connection: sa.Connection, scan: Scan, table: sa.Table) -> None:
        self._connection = connection
        self._scan = scan
        self._table = table
        self._scans = 0

    def measured(self) -> Measured:
        known = [column.name for column in self._table.columns]
        part = self._scan.part
        if isinstance(part, One | Each) and part.column not in known:
            raise CannotRead(
                f"{self._table.name} has no partition column `{part.column}`.{did_you_mean(part.column, known)}"
            )
        answers: dict[Measure, Answer | Failed] = {**unknown_columns(self._scan.measures, known)}
        answers |= {one: why for one in self._scan.measures if one not in answers and (why := self._no_sum(one))}
        rest = [measure for measure in self._scan.measures if measure not in answers]
        shared = [measure for measure in rest if measure.kind in _AGGREGATES]
        if shared:
            answers |= self._select(
                shared,
                self._filtered(sa.select(*self._partition(), *map(self._aggregate, shared)).select_from(self._table)),
            )
        for measure in rest:
            if measure.kind not in _AGGREGATES:
                answers |= self._alone(measure)
        return Measured(answers, scans=self._scans)

    def _no_sum(self, measure: Measure) -> Failed | None:
        """SQLite adds up texts as zeros; the other engines add up numbers only."""
        if measure.kind != "sum" or isinstance(
            kind := self._columns(measure)[0].type, sa.Integer | sa.Numeric | sa.Float | NullType
        ):
            return None
        return error(f"`{measure.columns[0]}` is {kind}, not a number")

    def _alone(self, measure: Measure) -> Mapping[Measure, Answer | Failed]:
        if measure.kind == "distinct":
            keys = self._filtered(sa.select(*self._partition(), *self._columns(measure)).distinct()).subquery()
            group = list(keys.columns)[: len(self._partition())]
            return self._select([measure], sa.select(*group, sa.func.count()).select_from(keys).group_by(*group))
        if measure.kind == "unmatched":
            return self._unmatched(measure)
        return {measure: error(f"a table of a database has no {measure.kind}")}

    def _unmatched(self, measure: Measure) -> Mapping[Measure, Answer | Failed]:
        assert measure.other is not None
        other = self._scan.tables[measure.other]
        if (
            not isinstance(other, SqlTable)
            or not isinstance(self._scan.target, SqlTable)
            or other.url != self._scan.target.url
        ):
            return {measure: error("both tables must be in one database, or both in the lake")}
        table = _table(self._connection, other.table, _shown(other)).alias("looked")
        why = cannot_look_up(measure, [column.name for column in table.columns])
        if why:
            return {measure: why}
        pairs = list(zip(self._columns(measure), (table.columns[name] for name in measure.other_columns), strict=True))
        there = sa.exists().where(*(ours == theirs for ours, theirs in pairs))
        missing = (
            sa.select(*self._partition(), sa.func.count())
            .select_from(self._table)
            .where(*(ours.is_not(None) for ours, _ in pairs), ~there)
        )
        return self._select([measure], self._filtered(missing))

    def _columns(self, measure: Measure) -> list[sa.Column[Any]]:
        return [self._table.columns[name] for name in measure.columns]

    def _aggregate(self, measure: Measure) -> sa.ColumnElement[Any]:
        return _AGGREGATES[measure.kind](self._columns(measure))

    def _partition(self) -> list[sa.Column[Any]]:
        return [self._table.columns[self._scan.part.column]] if isinstance(self._scan.part, Each) else []

    def _filtered(self, statement: sa.Select[Any]) -> sa.Select[Any]:
        part = self._scan.part
        if isinstance(part, One):
            column = self._table.columns[part.column]
            return statement.where(column == _typed(column, part.value))
        return statement.group_by(*self._partition()) if not statement._distinct else statement

    def _select(self, measures: Sequence[Measure], statement: sa.Select[Any]) -> dict[Measure, Answer | Failed]:
        rows = self._connection.execute(statement).all()
        self._scans += 1
        if not isinstance(self._scan.part, Each):
            return dict(zip(measures, rows[0], strict=True))
        return {measure: {_name(row[0]): row[place] for row in rows} for place, measure in enumerate(measures, start=1)}


def _typed(column: sa.Column[Any], value: str) -> Any:
    """The name of a partition as the column's own type, so that an index on it is used."""
    try:
        if isinstance(column.type, sa.DateTime):
            return datetime.fromisoformat(value)
        return date.fromisoformat(value) if isinstance(column.type, sa.Date) else value
    except ValueError:
        raise CannotRead(
            f"{value!r} cannot be a value of the partition column `{column.name}`: {column.type}."
        ) from None


def _name(value: Scalar) -> str | None:
    return None if value is None else value.isoformat() if isinstance(value, date) else str(value)
