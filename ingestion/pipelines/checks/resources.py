"""The resources that a pipeline asks for, compared with what the operator allows."""

from __future__ import annotations

from django.conf import settings

from ingestion.domain.pipelines.definition import PipelineDefinition
from ingestion.domain.pipelines.pipeline_file import PIPELINE_FILE
from ingestion.domain.pipelines.problems import Problem
from ingestion.domain.resources.job_resources import JobResources, ResourceLimits, excess
from lakehub.kernel.errors import Refused


def resource_limits() -> ResourceLimits:
    is_local = settings.LAKEHUB_SPARK_MASTER.startswith("local")
    return ResourceLimits(settings.LAKEHUB_SPARK_MAX_MEMORY, settings.LAKEHUB_SPARK_MAX_CORES, on_cluster=not is_local)


def check_resources(pipeline: PipelineDefinition, problems: list[Problem]) -> None:
    """What is more than is allowed is added to `problems`."""
    if pipeline.resources is not None:
        lines = pipeline.resource_lines
        for field, problem in excess(pipeline.resources, resource_limits()).items():
            problems.append(Problem(PIPELINE_FILE, lines.get(field, 0), problem))


def allowed_resources(pipeline: PipelineDefinition) -> JobResources | None:
    """Raises Refused where the operator has lowered the limits since the pipeline was registered."""
    if pipeline.resources is not None and (problems := excess(pipeline.resources, resource_limits())):
        raise Refused(f"The pipeline `{pipeline.name}` cannot run: {' '.join(problems.values())}")
    return pipeline.resources
