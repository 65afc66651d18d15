"""Do the names of an expression stand for something: tables, columns, data centers, partitions before the tested one?"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeAlias

from lakehub.kernel.calendar import Grain
from lakehub.kernel.suggest import did_you_mean
from quality.domain.expression.amounts import duration_text
from quality.domain.expression.errors import ExpressionError, Where
from quality.domain.expression.measures import Ask, Reach
from quality.domain.expression.nodes import Call, Expression, Name
from quality.domain.expression.parameters import LONGEST_TIMEOUT, SHORTEST_TIMEOUT, SHORTEST_WAIT
from quality.domain.expression.scope import THIS, UPSTREAM, Scope

Asked: TypeAlias = tuple[Call, Ask]

MOST_GROUPS = 1_000
_ALONE = frozenset({"committed", "delay", "findings", "query", "matching", "sampled"})
"""Measures that are not answered by the values of a column."""
_DAY = timedelta(days=1)


def check_parameters(expression: Expression, asked: Sequence[Asked], scope: Scope | None) -> None:
    """Raises ExpressionError where the parameters do not fit each other or what is asked."""
    given = expression.parameters
    whole = given.partition == "whole" or given.cadence is not None
    for call, ask in asked:
        if ask.table.shift and whole:
            raise ExpressionError(
                "A test of the whole table has no earlier partition: leave out `cadence` and `partition=whole`.",
                where=ask.table.where,
            )
        if ask.table.shift and ask.reach is not Reach.PARTITION:
            raise ExpressionError(
                f"`{call.function}` looks at all partitions here: it has no shift.", where=ask.table.where
            )
    _check_durations(expression)
    _check_groups(expression, asked, scope)
    if scope is not None and given.dc is not None and given.dc not in scope.data_centers:
        hint = did_you_mean(given.dc, scope.data_centers)
        raise ExpressionError(f"There is no data center `{given.dc}`.{hint}", where=expression.where("dc"))


def _check_durations(expression: Expression) -> None:
    given = expression.parameters
    if given.timeout is not None and not SHORTEST_TIMEOUT <= given.timeout <= LONGEST_TIMEOUT:
        raise ExpressionError(
            f"`timeout` is {duration_text(SHORTEST_TIMEOUT)} to {duration_text(LONGEST_TIMEOUT)}, "
            f"not {duration_text(given.timeout)}.",
            where=expression.where("timeout"),
        )
    if given.cadence is not None and given.cadence < SHORTEST_WAIT:
        raise ExpressionError(
            f"`cadence` is {duration_text(SHORTEST_WAIT)} at least, not {duration_text(given.cadence)}.",
            where=expression.where("cadence"),
        )


def _check_groups(expression: Expression, asked: Sequence[Asked], scope: Scope | None) -> None:
    given = expression.parameters
    if given.by is None:
        for name in ("least", "most"):
            if getattr(given, name) is not None:
                raise ExpressionError(
                    f"`{name}` is about the groups of `by`: name a column, as in by=origin.",
                    where=expression.where(name),
                )
        return
    if given.most is not None and not 1 <= given.most <= MOST_GROUPS:
        raise ExpressionError(
            f"`most` is 1 to {MOST_GROUPS:,} groups, not {given.most:,}.", where=expression.where("most")
        )
    for call, ask in asked:
        if ask.measure.kind in _ALONE or ask.reach is Reach.EACH_PARTITION:
            raise ExpressionError(f"`{call.function}` cannot be asked by the values of a column.", where=call.where)
    if scope is not None:
        for table in sorted({THIS, *(ask.table.dataset for _, ask in asked if is_grouped(ask))}):
            _check_group_column(table, given.by, scope, expression.where("by"))


def is_grouped(ask: Ask) -> bool:
    """Of a dimension test `this` and `upstream` are cut by its column; other tables are looked at as they are."""
    return ask.table.dataset in (THIS, UPSTREAM)


def _check_group_column(table: str, column: str, scope: Scope, where: Where) -> None:
    known = scope.tables.get(table)
    if known is not None and column not in known:
        raise ExpressionError(f"{_shown(table)} has no column `{column}`.{did_you_mean(column, known)}", where=where)


def _shown(table: str) -> str:
    return "This dataset" if table == THIS else f"`{table}`"


def check_names(asked: Sequence[Asked], scope: Scope) -> None:
    """Raises ExpressionError at the first name that stands for nothing."""
    for call, ask in asked:
        _check_table(ask.table, scope)
        _check_shift(ask.table, scope)
        if ask.measure.kind != "findings":
            _check_columns(ask.table, ask.measure.columns, call, scope)
        for other in ask.measure.others:
            _check_table(other if other.where.end else Name(other.dataset, where=call.args[-1].where), scope)
        if ask.measure.other is not None:
            _check_columns(ask.measure.other, ask.measure.other_columns, call, scope)


def _check_table(table: Name, scope: Scope) -> None:
    if table.dataset not in scope.tables:
        hint = " It has no upstream." if table.dataset == UPSTREAM else did_you_mean(table.dataset, scope.tables)
        raise ExpressionError(f"There is no dataset `{table.dataset}`.{hint}", where=table.where)
    if table.data_center and table.data_center not in scope.data_centers:
        hint = did_you_mean(table.data_center, scope.data_centers)
        raise ExpressionError(f"There is no data center `{table.data_center}`.{hint}", where=table.where)


def _check_shift(table: Name, scope: Scope) -> None:
    grain = scope.grains.get(table.dataset)
    if not table.shift or grain is None:
        return
    if grain is Grain.NONE:
        raise ExpressionError(
            f"{_shown(table.dataset)} has no partitions, so none is earlier than another.", where=table.where
        )
    if grain is not Grain.HOUR and table.shift % _DAY:
        back = duration_text(-table.shift)
        raise ExpressionError(f"The partitions are by {grain}: shift by whole days, not by {back}.", where=table.where)


def _check_columns(table: Name, columns: Sequence[str], call: Call, scope: Scope) -> None:
    known = scope.tables[table.dataset]
    for column in columns:
        if known is not None and column not in known:
            hint = did_you_mean(column, known)
            raise ExpressionError(f"{_shown(table.dataset)} has no column `{column}`.{hint}", where=call.where)
