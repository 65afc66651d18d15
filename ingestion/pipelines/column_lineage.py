"""The column lineage of a pipeline that is registered, by the catalog as it is now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ingestion.domain.pipelines.lineage.column_lineage import ColumnLineage, column_lineage
from ingestion.domain.pipelines.lineage.uses import Use, Uses
from ingestion.domain.pipelines.problems import BadPipeline
from ingestion.domain.pipelines.reading import inputs_of
from ingestion.models import Pipeline
from ingestion.pipelines.checking import input_datasets, read_with_columns
from ingestion.pipelines.specs import column_names

MAX_COLUMNS = 1_000
"""Of the table, that are shown."""
MAX_USED = 100
"""Columns of inputs that are shown of one column."""


@dataclass(frozen=True)
class UsedColumn:
    """`input`: what the SELECT calls the dataset."""

    input: str
    dataset: str
    column: str
    uses: tuple[Use, ...]


@dataclass(frozen=True)
class MadeColumn:
    """`is_traced`: False: it is known from which inputs it is made only. `more`: columns that are not shown."""

    column: str
    is_traced: bool
    made_from: tuple[UsedColumn, ...]
    more: int


@dataclass(frozen=True)
class ShownLineage:
    """`rows`: what decides which rows there are, with `more_rows` that are not shown. `problem`: why not all is known; empty: it is."""

    columns: tuple[MadeColumn, ...]
    more_columns: int
    rows: tuple[UsedColumn, ...]
    more_rows: int
    problem: str


def lineage_of(registered: Pipeline) -> ColumnLineage:
    """Where its files do not fit the catalog any more, only from which inputs the table is made."""
    try:
        inputs = input_datasets(registered.files)
        pipeline = read_with_columns(registered.files, inputs, is_registered=True)
    except BadPipeline as bad:
        return ColumnLineage(dict.fromkeys(column_names(registered.dataset)), problem=bad.problems[0].text)
    return column_lineage(pipeline, {name: column_names(dataset) for name, dataset in inputs.items()})


def shown_lineage(registered: Pipeline) -> ShownLineage:
    """As much of it as a page or an answer has. One query."""
    lineage = lineage_of(registered)
    datasets = {each.name: each.dataset for each in inputs_of(registered.files)}
    columns = tuple(
        MadeColumn(name, uses is not None, _used(uses or {}, datasets), max(0, len(uses or {}) - MAX_USED))
        for name, uses in [*lineage.columns.items()][:MAX_COLUMNS]
    )
    more = max(0, len(lineage.columns) - MAX_COLUMNS), max(0, len(lineage.rows) - MAX_USED)
    return ShownLineage(columns, more[0], _used(lineage.rows, datasets), more[1], lineage.problem)


def _used(uses: Uses, datasets: Mapping[str, str]) -> tuple[UsedColumn, ...]:
    """Those of which values are made first."""
    order = sorted(uses.items(), key=lambda item: (not any(use.is_direct for use in item[1]), item[0]))
    return tuple(
        UsedColumn(
            each.input, datasets.get(each.input, each.input), each.column, tuple(sorted(kinds, key=[*Use].index))
        )
        for each, kinds in order[:MAX_USED]
    )
