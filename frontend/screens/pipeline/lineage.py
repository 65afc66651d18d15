"""From which columns of the inputs the table's are made, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ingestion.domain.pipelines.lineage.uses import Use
from ingestion.models import Pipeline
from ingestion.pipelines.column_lineage import ShownLineage, UsedColumn, shown_lineage

_WORDS = {
    Use.IDENTITY: "as it is",
    Use.TRANSFORMATION: "computed",
    Use.AGGREGATION: "aggregated",
    Use.CONDITIONAL: "decides between values",
    Use.WINDOW: "decides over the window",
    Use.JOIN: "joined by",
    Use.GROUP_BY: "grouped by",
    Use.FILTER: "filtered by",
    Use.SORT: "sorted by",
}


@dataclass(frozen=True)
class ColumnRow:
    """`sources`: each with what is done with it, in words."""

    column: str
    is_traced: bool
    sources: list[tuple[UsedColumn, str]]
    more: int


@dataclass(frozen=True)
class ColumnLineageRows:
    lineage: ShownLineage
    columns: list[ColumnRow]
    rows: list[tuple[UsedColumn, str]]


def column_lineage_rows(registered: Pipeline) -> ColumnLineageRows:
    lineage = shown_lineage(registered)
    columns = [ColumnRow(each.column, each.is_traced, _in_words(each.made_from), each.more) for each in lineage.columns]
    return ColumnLineageRows(lineage, columns, _in_words(lineage.rows))


def _in_words(columns: Sequence[UsedColumn]) -> list[tuple[UsedColumn, str]]:
    return [(each, ", ".join(_WORDS[use] for use in each.uses)) for each in columns]
