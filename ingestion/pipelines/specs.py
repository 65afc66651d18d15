"""What a job of a pipeline is told: its inputs in the lake of its data center, and its queries."""

from __future__ import annotations

from ingestion.domain.pipelines.affected_keys import affected_keys
from ingestion.domain.pipelines.query_shape import QueryShape
from ingestion.domain.pipelines.reading import read_pipeline
from ingestion.models import Pipeline
from ingestion.spark.contract.spec import PipelineInputSpec, PipelineSpec
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Refused


def pipeline_spec_of(copy: DatasetCopy) -> PipelineSpec:
    """Raises Refused where an input is gone, or has no copy beside this one."""
    registered = Pipeline.objects.filter(dataset=copy.dataset_id).first()
    if registered is None:
        raise Refused(
            f"The pipeline of `{copy.dataset.name}` has no files: register it with `manage.py pipelines register FOLDER`."
        )
    pipeline = read_pipeline(registered.files)
    copies = input_copies(copy, [each.dataset for each in pipeline.inputs])
    columns = {
        each.name: [column["name"] for column in copies[each.dataset].dataset.columns] for each in pipeline.inputs
    }
    shape = QueryShape.of(pipeline.transform, columns)
    inputs = [
        PipelineInputSpec(
            each.name,
            copies[each.dataset].uri,
            affected_keys(shape, pipeline.record_key, each.name) if each.is_followed else "",
        )
        for each in pipeline.inputs
    ]
    return PipelineSpec(tuple(inputs), pipeline.transform, pipeline.columns.types, pipeline.precombine)


def input_copies(copy: DatasetCopy, datasets: list[str]) -> dict[str, DatasetCopy]:
    """By name of the dataset, in the data center of `copy`. Raises Refused."""
    there = DatasetCopy.objects.filter(
        data_center=copy.data_center_id, dataset__name__in=datasets, dataset__ingested=True, dataset__offboarded_at=None
    )
    copies = {each.dataset.name: each for each in there.select_related("dataset", "data_center")}
    for name in datasets:
        if name not in copies:
            raise Refused(
                f"The input `{name}` of the pipeline `{copy.dataset.name}` has no copy in `{copy.data_center}` any more. Restore it, or register the pipeline without it."
            )
    return copies
