"""What the lineage of a run tells: facts of our own records, of the pipeline as it is registered now, and no values of rows."""

from __future__ import annotations

import re
from typing import Any

from django.conf import settings

from ingestion.domain.pipelines.lineage.openlineage import End, EventTable, PipelineRun
from ingestion.domain.pipelines.transform import TRANSFORM_FILE
from ingestion.lake.lake_copies import table_uri
from ingestion.models import JobRun, JobState, Pipeline
from ingestion.pipelines.column_lineage import lineage_of
from ingestion.pipelines.specs import input_copies
from ingestion.spark.contract.report import REFUSED
from lakehub.catalog.lineage.lake_tables import table_in_lake
from lakehub.catalog.models import DatasetCopy

_ENDS = {JobState.SUCCEEDED: End.COMPLETE, JobState.FAILED: End.FAIL, JobState.CANCELLED: End.ABORT}
_A_CLASS = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,99}(?=: )")
_MAX_AUDITS = 10


def facts_of(run: JobRun) -> PipelineRun | None:
    """None: there is nothing to tell, as it never began, or is no pipeline's any more."""
    registered = Pipeline.objects.filter(dataset=run.copy.dataset_id).select_related("dataset").first()
    if registered is None or run.started_at is None or run.ended_at is None:
        return None
    copies = input_copies(run.copy, registered)
    written: dict[str, int] = run.report.get("written") or {}
    return PipelineRun(
        run_id=str(run.key),
        namespace=settings.LAKEHUB_OPENLINEAGE_NAMESPACE,
        job=f"{run.copy.dataset.name}.{run.copy.data_center.name}",
        started_at=run.started_at,
        ended_at=run.ended_at,
        end=_ENDS[JobState(run.state)],
        inputs={name: _table(copy) for name, copy in copies.items() if copy is not None},
        output=_table(run.copy),
        sql=registered.files.get(TRANSFORM_FILE, ""),
        rows=written.get("inserts", 0) + written.get("updates", 0),
        error=_error(run),
        lineage=lineage_of(registered),
    )


def _table(copy: DatasetCopy) -> EventTable:
    name = table_in_lake(table_uri(copy))
    columns = {column["name"]: str(column["type"]) for column in copy.dataset.columns}
    return EventTable(name.namespace, name.name, copy.dataset.name, columns)


def _error(run: JobRun) -> str:
    """The words of an error may have values of rows, so they stay here: the class is told, and where the words are."""
    if run.state != JobState.FAILED:
        return ""
    where = f"{settings.LAKEHUB_BASE_URL}/datasets/{run.copy.dataset.name}/pipeline"
    if run.report.get("status") == REFUSED:
        return f"Its rows do not pass the audits {_audits(run.report)}: {where}"
    error_class = _A_CLASS.match(run.error)
    return f"The run has failed{f' with {error_class[0]}' if error_class else ''}: {where}"


def _audits(report: dict[str, Any]) -> str:
    refusals = ((report.get("output") or {}).get("refused") or {}).get("audits") or []
    return ", ".join(f"`{each['audit']}`" for each in refusals[:_MAX_AUDITS])
