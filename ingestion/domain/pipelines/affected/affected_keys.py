"""Which record keys of the target may have other rows since rows of an input have changed, as queries.

A row of the target is made from one row of each place after FROM and JOIN, or from a group of such combinations. It can differ only where a changed row,
as it was or as it is, is in one of these. So the changed rows take the place of their input, all others are joined to them, and what comes out are keys.
Other inputs may have changed meanwhile: with their rows goes what their changed rows were before. What is found may be too much, never too little: the rows of
all these keys are recomputed, from what the inputs hold now.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp

from ingestion.domain.pipelines.affected.computed import has_aggregate, has_window, is_computed_from
from ingestion.domain.pipelines.affected.not_followed import NotFollowed, shown
from ingestion.domain.pipelines.affected.query_shape import QueryShape
from ingestion.domain.pipelines.affected.reach import reached_rows
from ingestion.domain.pipelines.affected.shapes import Combination, InputTable, Path, Query, Selection, Source
from ingestion.domain.pipelines.definition import INSERT_OVERWRITE, PipelineDefinition


def affected_keys(shape: QueryShape, keys: Sequence[str], changed: str) -> str:
    """A query for the record keys (columns `keys`, as often as they come) that changes of the input `changed` reach. Raises NotFollowed."""
    for key in keys:
        _check_key(shape.query, key.lower())
    occurrences = [*shape.query.occurrences(changed.lower())]
    if not occurrences:
        raise NotFollowed(f"It does not read the input `{changed}`.")
    names = [key.lower() for key in keys]
    queries = [reached_rows(shape.query, path, names) for path in occurrences]
    return " UNION ALL ".join(query.sql("spark") for query in queries)


def affected_partitions(shape: QueryShape, pipeline: PipelineDefinition, changed: str) -> str:
    """The same for the partitions, of a pipeline that recomputes whole partitions; else empty."""
    if pipeline.operation != INSERT_OVERWRITE:
        return ""
    return affected_keys(shape, [pipeline.partition], changed)


def partition_source(shape: QueryShape, pipeline: PipelineDefinition, changed: str) -> str:
    """The column of the input `changed` whose values name the partitions of the target as they are; empty: they come from elsewhere, or are computed."""
    occurrences = [*shape.query.occurrences(changed.lower())]
    if pipeline.operation != INSERT_OVERWRITE or len(occurrences) != 1:
        return ""
    return _source_column(shape.query, occurrences[0], pipeline.partition)


def _source_column(source: Source, path: Path, column: str) -> str:
    """The column of the input at `path` that is handed on as it stands, by queries in which a row reaches no others."""
    if isinstance(source, InputTable):
        return column
    if isinstance(source, Combination) or source.windows:
        return ""
    value, place = source.value_of(column), source.places[path[0]]
    is_handed_on = isinstance(value, exp.Column) and value.table == place.alias and not place.is_optional
    return _source_column(place.source, path[1:], value.name) if is_handed_on else ""


def check_followed(shape: QueryShape, keys: Sequence[str], inputs: Collection[str]) -> None:
    """`inputs`: those whose changes are followed. Raises NotFollowed where what a change reaches cannot be worked out."""
    for key in keys:
        _check_key(shape.query, key.lower())
    for name in inputs:
        affected_keys(shape, keys, name)


def _check_key(query: Query, key: str) -> None:
    """Raises NotFollowed."""
    if isinstance(query, Combination):
        for branch in query.branches:
            _check_key(branch, key)
        return
    value = query.value_of(key)
    if has_window(value):
        raise NotFollowed(
            f"The key `{key}` is computed by a window: a key is a column of an input, or computed from such columns."
        )
    if has_aggregate(value):
        raise NotFollowed(f"The key `{key}` is computed from a group: a key is a column that the query groups by.")
    if query.grouping is not None and not is_computed_from(value, query.grouping):
        raise NotFollowed(f"The key `{key}` is not grouped by: add `{shown(value)}` to GROUP BY.")
    if not query.traces(key):
        raise NotFollowed(_why_untraced(query, key, value))
    _check_not_null(query, key, value)


def _why_untraced(query: Selection, key: str, value: exp.Expr) -> str:
    for column in value.find_all(exp.Column):
        place = query.by_alias.get(column.table)
        if place is None:
            return f"The key `{key}` has `{shown(column)}`, which may be a column of several tables: write its table before it."
        if ignored := sorted(place.source.ignored_behind([column.name])):
            return (
                f"The key `{key}` comes from `{shown(column)}`, of the input `{ignored[0]}`, whose changes are ignored, so rows would stay under the keys that were made of earlier values: "
                f"take the key from an input whose changes are followed, or remove `changes: ignored` from `{ignored[0]}`."
            )
        if not place.source.traces(column.name):
            return (
                f"The key `{key}` comes from `{shown(column)}`, which is computed from a group or a window: "
                f"make the query of `{place.alias}` a pipeline of its own, and join its table."
            )
    return f"The key `{key}` is `{shown(value)}`, of which nobody can say which rows it is made from."


def _check_not_null(query: Selection, key: str, value: exp.Expr) -> None:
    """A row without a partner would have no key."""
    given = {id(column) for each in value.find_all(exp.Coalesce) for column in each.find_all(exp.Column)}
    for column in value.find_all(exp.Column):
        place = query.by_alias.get(column.table)
        if place is not None and place.is_optional and id(column) not in given:
            raise NotFollowed(
                f"The key `{key}` may come from `{place.alias}`, which is joined by LEFT JOIN and so may have no row: take the key from a table that always has one, "
                "with its alias, give it a value (coalesce), or use JOIN."
            )
