"""How far a pipeline has read its inputs is told to them, so that what it has not read yet is not cleaned away (`ingestion.lake.readers`)."""

from __future__ import annotations

import logging
from datetime import datetime

from ingestion.domain.pipelines.view_names import INPUTS
from ingestion.lake import readers
from ingestion.models import Pipeline
from ingestion.pipelines.specs import input_copies
from ingestion.spark.contract.report import JobReport
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.errors import Refused

logger = logging.getLogger(__name__)


def reader_name(dataset: Dataset) -> str:
    """As which the pipeline that makes it is known to its inputs."""
    return f"pipeline {dataset.name}"


def note_read(copy: DatasetCopy, report: JobReport, *, now: datetime) -> None:
    """Of a run that has ended: `report` has the checkpoint that counts now. Nothing for a copy that no pipeline makes."""
    positions = (report.checkpoint or {}).get(INPUTS)
    registered = Pipeline.objects.filter(dataset=copy.dataset_id).first()
    if not positions or registered is None:
        return
    copies = input_copies(copy, registered)
    for name, position in positions.items():
        if (read := copies.get(name)) is not None:
            try:
                readers.note_position(read, reader_name(copy.dataset), position, actor="ingestion", now=now)
            except Refused as problem:
                # Without it the pipeline goes on, and recomputes all rows where files are cleaned away before it reads them.
                logger.warning("%s is not told how far the pipeline %s is: %s", read, copy.dataset.name, problem)
