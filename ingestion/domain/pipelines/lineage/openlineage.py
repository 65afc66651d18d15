"""A run of a pipeline as OpenLineage tells it: an event of its start and one of its end (https://openlineage.io, spec 2-0-2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from ingestion.domain.pipelines.lineage.column_lineage import ColumnLineage
from ingestion.domain.pipelines.lineage.uses import InputColumn, Use, Uses

Json = dict[str, Any]
_SPEC = "https://openlineage.io/spec"
EVENT_SCHEMA = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
FACETS = {
    "columnLineage": ("1-2-0", "ColumnLineageDatasetFacet"),
    "schema": ("1-2-0", "SchemaDatasetFacet"),
    "symlinks": ("1-0-1", "SymlinksDatasetFacet"),
    "outputStatistics": ("1-0-2", "OutputStatisticsOutputDatasetFacet"),
    "errorMessage": ("1-0-1", "ErrorMessageRunFacet"),
    "jobType": ("2-0-4", "JobTypeJobFacet"),
    "sql": ("1-1-0", "SQLJobFacet"),
}
"""By its key the version and the name of each facet's schema."""
MAX_FIELDS = 1_000
"""Columns of a table that an event has."""
MAX_USED = 100
"""Columns of inputs that an event has for each of these."""


class End(StrEnum):
    COMPLETE = "COMPLETE"
    FAIL = "FAIL"
    ABORT = "ABORT"


@dataclass(frozen=True)
class EventTable:
    """`namespace` and `name`: of the table in the lake. `dataset`: what it is called in Lakehub. `columns`: types by name."""

    namespace: str
    name: str
    dataset: str
    columns: Mapping[str, str]


@dataclass(frozen=True)
class PipelineRun:
    """`inputs`: by what the SELECT calls them. `rows`: that were written. `error`: why it has failed, without values of rows; empty: it has not. `sql`: empty: it has no SELECT of its own."""

    run_id: str
    namespace: str
    job: str
    started_at: datetime
    ended_at: datetime
    end: End
    inputs: Mapping[str, EventTable]
    output: EventTable
    sql: str = ""
    rows: int = 0
    error: str = ""
    lineage: ColumnLineage = field(default_factory=lambda: ColumnLineage({}))


def run_events(run: PipelineRun, *, producer: str) -> tuple[Json, Json]:
    """The event of its start, and that of its end, which has all that is known. `producer`: a URI that names the version of Lakehub."""
    facet = _Facets(producer)
    error = {"message": run.error, "programmingLanguage": "PYTHON"}
    statistics = {"outputStatistics": facet("outputStatistics", {"rowCount": run.rows})}
    ended = {"facets": {"errorMessage": facet("errorMessage", error)} if run.error else {}}
    output = _dataset(run.output, facet)
    output_at_end = {
        **output,
        "facets": {**output["facets"], **_column_lineage(run, facet)},
        "outputFacets": statistics if run.end == End.COMPLETE else {},
    }
    start = _event(run, "START", run.started_at, facet) | {"outputs": [output]}
    end = _event(run, run.end.value, run.ended_at, facet) | {"outputs": [output_at_end]}
    return start, end | {"run": end["run"] | ended}


@dataclass(frozen=True)
class _Facets:
    producer: str

    def __call__(self, key: str, values: Json) -> Json:
        version, name = FACETS[key]
        return {
            "_producer": self.producer,
            "_schemaURL": f"{_SPEC}/facets/{version}/{name}.json#/$defs/{name}",
            **values,
        }


def _event(run: PipelineRun, kind: str, at: datetime, facet: _Facets) -> Json:
    job_type = {"processingType": "BATCH", "integration": "LAKEHUB", "jobType": "PIPELINE"}
    facets = {"jobType": facet("jobType", job_type)}
    if run.sql:
        facets["sql"] = facet("sql", {"query": run.sql, "dialect": "spark"})
    return {
        "eventType": kind,
        "eventTime": at.isoformat(),
        "producer": facet.producer,
        "schemaURL": EVENT_SCHEMA,
        "run": {"runId": run.run_id},
        "job": {"namespace": run.namespace, "name": run.job, "facets": facets},
        "inputs": [_dataset(table, facet) for table in run.inputs.values()],
    }


def _dataset(table: EventTable, facet: _Facets) -> Json:
    fields = [{"name": name, "type": type_} for name, type_ in [*table.columns.items()][:MAX_FIELDS]]
    in_lakehub = {"namespace": "lakehub", "name": table.dataset, "type": "TABLE"}
    facets = {"symlinks": facet("symlinks", {"identifiers": [in_lakehub]})}
    if fields:
        facets["schema"] = facet("schema", {"fields": fields})
    return {"namespace": table.namespace, "name": table.name, "facets": facets}


def _column_lineage(run: PipelineRun, facet: _Facets) -> Json:
    """Columns of which it is not known are left out: the table is made from the inputs then, and no more is told."""
    traced = {name: uses for name, uses in run.lineage.columns.items() if uses is not None}
    if not traced:
        return {}
    fields = {name: {"inputFields": _input_fields(run, uses)} for name, uses in [*traced.items()][:MAX_FIELDS]}
    rows = _input_fields(run, run.lineage.rows)
    return {"columnLineage": facet("columnLineage", {"fields": fields, **({"dataset": rows} if rows else {})})}


def _input_fields(run: PipelineRun, uses: Uses) -> list[Json]:
    known = [(column, kinds) for column, kinds in uses.items() if column.input in run.inputs]
    return [_input_field(run.inputs[column.input], column, kinds) for column, kinds in known[:MAX_USED]]


def _input_field(table: EventTable, column: InputColumn, kinds: frozenset[Use]) -> Json:
    transformations = [
        {"type": "DIRECT" if use.is_direct else "INDIRECT", "subtype": use.value} for use in Use if use in kinds
    ]
    return {
        "namespace": table.namespace,
        "name": table.name,
        "field": column.column,
        "transformations": transformations,
    }
