"""Do the names of an expression stand for something: tables, columns, data centers, partitions before the tested one?"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeAlias

from lakehub.kernel.partitions import Grain
from lakehub.kernel.suggest import did_you_mean
from quality.domain.language.measures import Ask, Reach
from quality.domain.language.parameters import MAX_TIMEOUT, MIN_RUN_INTERVAL, MIN_TIMEOUT
from quality.domain.language.scope import THIS, UPSTREAM, Scope
from quality.domain.language.tree.errors import ExpressionError, TextRange
from quality.domain.language.tree.literals import format_duration
from quality.domain.language.tree.nodes import Call, Expression, Name
from quality.domain.periods import MAX_PERIOD

CallAsk: TypeAlias = tuple[Call, Ask]

MAX_GROUPS = 1_000
_UNGROUPABLE_KINDS = frozenset({"committed", "delay", "findings", "query", "matching", "sampled", "difference"})
"""Measures that are not answered by the values of a column."""
_DAY = timedelta(days=1)


def check_parameters(expression: Expression, call_asks: Sequence[CallAsk], scope: Scope | None) -> None:
    """Raises ExpressionError where the parameters do not fit each other or what is asked."""
    given = expression.parameters
    whole = given.partition == "whole" or given.cadence is not None
    for call, ask in call_asks:
        if ask.table.shift and whole:
            raise ExpressionError(
                "A test of the whole table has no earlier partition: leave out `cadence` and `partition=whole`.",
                where=ask.table.where,
            )
        if ask.measure.kind == "across_partitions" and not whole:
            raise ExpressionError(
                f"`{call.function}` looks at the whole table: write `with partition=whole`.", where=call.where
            )
        if ask.table.shift and ask.reach is not Reach.PARTITION:
            raise ExpressionError(
                f"`{call.function}` looks at all partitions here: it has no shift.", where=ask.table.where
            )
    _check_durations(expression)
    _check_groups(expression, call_asks, scope)
    if scope is not None and given.dc is not None and given.dc not in scope.data_centers:
        hint = did_you_mean(given.dc, scope.data_centers)
        raise ExpressionError(f"There is no data center `{given.dc}`.{hint}", where=expression.where("dc"))
    if scope is not None and scope.engines and given.engine not in (None, *scope.engines):
        hint = did_you_mean(str(given.engine), scope.engines)
        raise ExpressionError(f"`engine` cannot be `{given.engine}`.{hint}", where=expression.where("engine"))


def _check_durations(expression: Expression) -> None:
    given = expression.parameters
    if given.timeout is not None and not MIN_TIMEOUT <= given.timeout <= MAX_TIMEOUT:
        raise ExpressionError(
            f"`timeout` is {format_duration(MIN_TIMEOUT)} to {format_duration(MAX_TIMEOUT)}, "
            f"not {format_duration(given.timeout)}.",
            where=expression.where("timeout"),
        )
    if given.cadence is not None and given.cadence < MIN_RUN_INTERVAL:
        raise ExpressionError(
            f"`cadence` is {format_duration(MIN_RUN_INTERVAL)} at least, not {format_duration(given.cadence)}.",
            where=expression.where("cadence"),
        )
    for name, length in (("cadence", given.cadence), ("sustain", given.sustain)):
        if length is not None and length > MAX_PERIOD:
            raise ExpressionError(
                f"`{name}` is {MAX_PERIOD.days}d at most, not {format_duration(length)}.",
                where=expression.where(name),
            )


def _check_groups(expression: Expression, call_asks: Sequence[CallAsk], scope: Scope | None) -> None:
    given = expression.parameters
    if given.by is None:
        for name in ("least", "most"):
            if getattr(given, name) is not None:
                raise ExpressionError(
                    f"`{name}` is about the groups of `by`: name a column, as in by=origin.",
                    where=expression.where(name),
                )
        return
    if given.most is not None and not 1 <= given.most <= MAX_GROUPS:
        raise ExpressionError(
            f"`most` is 1 to {MAX_GROUPS:,} groups, not {given.most:,}.", where=expression.where("most")
        )
    for call, ask in call_asks:
        if ask.measure.kind in _UNGROUPABLE_KINDS or ask.reach is Reach.EACH_PARTITION:
            raise ExpressionError(f"`{call.function}` cannot be asked by the values of a column.", where=call.where)
    if scope is not None:
        for table in sorted({THIS, *(ask.table.dataset for _, ask in call_asks if is_grouped(ask))}):
            _check_group_column(table, given.by, scope, expression.where("by"))


def is_grouped(ask: Ask) -> bool:
    """Of a dimension test `this` and `upstream` are cut by its column; other tables are looked at as they are."""
    return ask.table.dataset in (THIS, UPSTREAM)


def _check_group_column(table: str, column: str, scope: Scope, where: TextRange) -> None:
    known_columns = scope.tables.get(table)
    if known_columns is not None and column not in known_columns:
        raise ExpressionError(
            f"{_table_label(table)} has no column `{column}`.{did_you_mean(column, known_columns)}", where=where
        )


def _table_label(table: str) -> str:
    return "This dataset" if table == THIS else f"`{table}`"


def check_names(call_asks: Sequence[CallAsk], scope: Scope) -> None:
    """Raises ExpressionError at the first name that stands for nothing."""
    for call, ask in call_asks:
        _check_table(ask.table, scope)
        _check_shift(ask.table, scope)
        if ask.measure.kind != "findings":
            _check_columns(ask.table, ask.measure.columns, call, scope)
        for other in ask.measure.other_tables:
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
            f"{_table_label(table.dataset)} has no partitions, so none is earlier than another.", where=table.where
        )
    if grain is not Grain.HOUR and table.shift % _DAY:
        back = format_duration(-table.shift)
        raise ExpressionError(f"The partitions are by {grain}: shift by whole days, not by {back}.", where=table.where)


def _check_columns(table: Name, columns: Sequence[str], call: Call, scope: Scope) -> None:
    known_columns = scope.tables[table.dataset]
    for column in columns:
        if known_columns is not None and column not in known_columns:
            hint = did_you_mean(column, known_columns)
            raise ExpressionError(f"{_table_label(table.dataset)} has no column `{column}`.{hint}", where=call.where)
