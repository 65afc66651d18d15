"""Which record keys of the target may have other rows since rows of an input have changed, as queries.

A row of the target is made from one row of each place after FROM and JOIN, or from a group of such combinations. It can differ only where a changed row,
as it was or as it is, is in one of these. So the changed rows take the place of their input, all others are joined to them, and what comes out are keys.
Other inputs may have changed meanwhile: with their rows goes what their changed rows were before. What is found may be too much, never too little: the rows of
all these keys are made anew, from what the inputs hold now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from sqlglot import exp

from ingestion.domain.pipelines.definition import INSERT_OVERWRITE, PipelineDefinition
from ingestion.domain.pipelines.query_shape import Joined, NotFollowed, QueryShape
from ingestion.domain.pipelines.view_names import ANY, CHANGED


def affected_keys(shape: QueryShape, keys: Sequence[str], changed: str) -> str:
    """A query for the record keys (columns `keys`, as often as they come) that changes of the input `changed` reach. Raises NotFollowed."""
    values = [_key_value(shape, key) for key in keys]
    places = [place for place in shape.places if place.input == changed.lower()]
    if not places:
        raise NotFollowed(f"It does not read the input `{changed}`.")
    queries = [_query(shape, keys, values, place) for place in places]
    return " UNION ALL ".join(query.sql("spark") for query in queries)


def affected_partitions(shape: QueryShape, pipeline: PipelineDefinition, changed: str) -> str:
    """The same for the partitions, of a pipeline that makes whole partitions anew; else empty."""
    if pipeline.operation != INSERT_OVERWRITE:
        return ""
    return affected_keys(shape, [pipeline.partition], changed)


def partition_source(shape: QueryShape, pipeline: PipelineDefinition, changed: str) -> str:
    """The column of the input `changed` whose values name the partitions of the target as they are; empty: they come from elsewhere, or are computed."""
    if pipeline.operation != INSERT_OVERWRITE:
        return ""
    value = shape.with_aliases(shape.value_of(pipeline.partition))
    places = [place for place in shape.places if place.input == changed.lower()]
    if not isinstance(value, exp.Column) or value.args.get("db"):
        return ""
    return value.name if [value.table] == [place.alias for place in places] else ""


def check_followed(shape: QueryShape, keys: Sequence[str]) -> None:
    """Raises NotFollowed where what a change reaches cannot be said."""
    for key in keys:
        _key_value(shape, key)


def _key_value(shape: QueryShape, key: str) -> exp.Expr:
    value = shape.with_aliases(shape.value_of(key))
    if value.find(exp.AggFunc) is not None:
        raise NotFollowed(f"The key `{key}` is computed from a group: a key is a column that the query groups by.")
    grouped = shape.group_by
    if grouped is None and shape.select.find(exp.AggFunc) is not None:
        raise NotFollowed("It has an aggregate and no GROUP BY: group by the record key.")
    if grouped is not None and value not in grouped:
        raise NotFollowed(f"The key `{key}` is not grouped by: add `{value.sql('spark')}` to GROUP BY.")
    optional = sorted(
        alias for alias in shape.aliases_in(value) if alias in shape.by_alias and shape.by_alias[alias].is_optional
    )
    if optional:
        raise NotFollowed(
            f"The key `{key}` may come from `{optional[0]}`, which is joined by LEFT JOIN and so may have no row: take the key from a table that always has one, "
            "with its alias, or use JOIN."
        )
    return value


def _query(shape: QueryShape, keys: Sequence[str], values: Sequence[exp.Expr], changed: Joined) -> exp.Select:
    needed = _needed(shape, values, changed)
    query = exp.Select(
        expressions=[exp.alias_(value.copy(), key, quoted=True) for key, value in zip(keys, values, strict=True)]
    )
    first, *others = (place for place in shape.places if place.alias in needed)
    query = query.from_(_table(first, changed))
    for place in others:
        on = None if place.on is None else place.on.copy()
        kind = "INNER" if on is not None or place.using else "CROSS"
        using: list[int | str | exp.Expr] = [exp.to_identifier(name, quoted=True) for name in place.using]
        query = query.join(_table(place, changed), on=on, using=using or None, join_type=kind)
    for condition in _conditions(shape, needed):
        query = query.where(condition.copy())
    return query


def _needed(shape: QueryShape, values: Sequence[exp.Expr], changed: Joined) -> set[str]:
    """The places that have a part in it: all that narrow the rows, that of the changed rows, and what these are joined by."""
    needed = {place.alias for place in shape.places if not place.is_optional} | {changed.alias}
    for value in values:
        needed |= shape.aliases_in(value)
    for place in reversed(shape.places):
        if place.alias in needed and place.on is not None:
            needed |= shape.aliases_in(place.on)
        if place.alias in needed and place.using:
            needed |= _having(shape, place)
    return needed


def _having(shape: QueryShape, place: Joined) -> set[str]:
    """Places before it that may have the columns of its USING."""
    before = shape.places[: shape.places.index(place)]
    columns = [exp.column(name) for name in place.using]
    reached = {alias for column in columns for alias in shape.aliases_in(column)}
    return {each.alias for each in before if each.alias in reached}


def _conditions(shape: QueryShape, needed: Collection[str]) -> Iterator[exp.Expr]:
    """Of WHERE what holds whatever the optional places have: a row that one of them has let go, or in, is reached as well."""
    where = shape.select.args.get("where")
    if where is None:
        return
    certain = {place.alias for place in shape.places if not place.is_optional} & set(needed)
    for condition in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
        if shape.aliases_in(condition) <= certain:
            yield condition


def _table(place: Joined, changed: Joined) -> exp.Expr:
    prefix = CHANGED if place is changed else ANY
    return exp.alias_(exp.to_table(f"{prefix}{place.input}"), place.alias, table=True, quoted=True)
