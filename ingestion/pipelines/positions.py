"""How far a pipeline has read its inputs is told to them, so that what it has not read yet is not cleaned away (`ingestion.lake.readers`)."""

from __future__ import annotations

import logging
from datetime import datetime

from ingestion.domain.pipelines.reading import read_pipeline
from ingestion.lake import readers
from ingestion.models import Pipeline
from ingestion.spark.contract.report import JobReport
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Refused

logger = logging.getLogger(__name__)

_INPUTS = "inputs"
"""In the checkpoint of a pipeline's commits (`ingestion.spark.etl.runs`)."""


def note_read(copy: DatasetCopy, report: JobReport, *, now: datetime) -> None:
    """Of a run that has ended: `report` has the checkpoint that counts now. Nothing for a copy that no pipeline makes."""
    positions = (report.checkpoint or {}).get(_INPUTS)
    registered = Pipeline.objects.filter(dataset=copy.dataset_id).first()
    if not positions or registered is None:
        return
    datasets = {each.name: each.dataset for each in read_pipeline(registered.files).inputs}
    there = DatasetCopy.objects.filter(data_center=copy.data_center_id, dataset__name__in=datasets.values())
    copies = {each.dataset.name: each for each in there.select_related("dataset", "data_center")}
    for name, position in positions.items():
        if (read := copies.get(datasets.get(name, ""))) is not None:
            try:
                readers.note_position(read, f"pipeline {copy.dataset.name}", position, actor="ingestion", now=now)
            except Refused as problem:
                # Without it the pipeline goes on, and makes all rows anew where files are cleaned away before it reads them.
                logger.warning("%s is not told how far the pipeline %s is: %s", read, copy.dataset.name, problem)
