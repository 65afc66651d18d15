"""The column lineage of a pipeline, by the names that its table and its inputs have in the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from ingestion.domain.pipelines.affected.query_shape import Columns
from ingestion.domain.pipelines.definition import PipelineDefinition
from ingestion.domain.pipelines.lineage.select_lineage import NotTraced, SelectLineage, trace_select
from ingestion.domain.pipelines.lineage.uses import InputColumn, Uses


@dataclass(frozen=True)
class ColumnLineage:
    """`columns`: of the table, in its order; None: it is known from which inputs the column is made, and not from which of their columns.
    `rows`: what decides which rows there are. `problem`: why not all is known; empty: it is."""

    columns: Mapping[str, Uses | None]
    rows: Uses = field(default_factory=dict)
    problem: str = ""


def column_lineage(pipeline: PipelineDefinition, columns: Columns) -> ColumnLineage:
    """`columns`: of the inputs, by the names that the SELECT calls them."""
    traced = _traced(pipeline.transform, tuple((name, tuple(names)) for name, names in sorted(columns.items())))
    if isinstance(traced, str):
        return ColumnLineage(dict.fromkeys(pipeline.columns.names), problem=traced)
    spelled = {
        (name.lower(), column.lower()): InputColumn(name, column) for name, names in columns.items() for column in names
    }
    by_name = {name: _spelled(uses, spelled) for name, uses in traced.columns.items() if _is_selects(pipeline, name)}
    made = {name: by_name.get(name.lower()) for name in pipeline.columns.names}
    return ColumnLineage(made, _spelled(traced.rows, spelled), _problem(pipeline, made))


@lru_cache(maxsize=256)
def _traced(sql: str, columns: tuple[tuple[str, tuple[str, ...]], ...]) -> SelectLineage | str:
    """What pages and events ask for again and again; where it cannot be traced, why."""
    try:
        return trace_select(sql, dict(columns))
    except NotTraced as problem:
        return str(problem)


def _is_selects(pipeline: PipelineDefinition, column: str) -> bool:
    """Transformers may make any other column from all that the SELECT makes; keys and partitions they get are those that they return."""
    fixed = {name.lower() for name in (*pipeline.record_key, pipeline.partition)}
    return not pipeline.transformers or column in fixed


def _spelled(uses: Uses, names: Mapping[tuple[str, str], InputColumn]) -> Uses:
    return {names.get((each.input, each.column), each): kinds for each, kinds in uses.items()}


def _problem(pipeline: PipelineDefinition, made: Mapping[str, Uses | None]) -> str:
    unknown = [name for name, uses in made.items() if uses is None]
    if unknown and pipeline.transformers:
        names = ", ".join(each.name for each in pipeline.transformers)
        return f"Transformers are not looked into: {names} may make any column but those of the record key and the partition from all that the inputs have."
    return f"The SELECT has no column `{unknown[0]}` of its own." if unknown else ""
