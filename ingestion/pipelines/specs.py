"""What a job of a pipeline is told: its inputs in the lake of its data center, and its queries."""

from __future__ import annotations

from collections.abc import Mapping

from ingestion.domain.pipelines.reading import inputs_of, read_pipeline
from ingestion.domain.pipelines.version import version_of
from ingestion.lake.lake_copies import lake_copies, table_uri
from ingestion.models import Pipeline
from ingestion.pipelines.checks.resources import allowed_resources
from ingestion.pipelines.input_specs import input_specs
from ingestion.pipelines.transformers import transformer_specs, transformers_folder
from ingestion.ports import auditor
from ingestion.spark.contract.spec import PipelineSpec
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.errors import Refused


def pipeline_spec_of(
    copy: DatasetCopy, *, is_audited: bool = True, skip_to: Mapping[str, str] | None = None
) -> PipelineSpec:
    """`skip_to`: as of PipelineSpec. Raises Refused where an input is gone, or has no copy beside this one, and where it asks for more resources than are allowed."""
    registered = Pipeline.objects.filter(dataset=copy.dataset_id).first()
    if registered is None:
        raise Refused(
            f"The pipeline of `{copy.dataset.name}` has no files: register it with `manage.py pipelines register FOLDER`."
        )
    copies = _require_all(copy, input_copies(copy, registered))
    columns = {name: column_names(each.dataset) for name, each in copies.items()}
    pipeline = read_pipeline(registered.files, columns, is_registered=True)
    uris = {name: table_uri(each) for name, each in copies.items()}
    audits = {each.name: each.test for each in pipeline.audits} if is_audited else {}
    columns_made, asked = pipeline.columns.types, auditor() if audits else ""
    code = {each.code: registered.transformer_digests.get(each.code, "") for each in pipeline.transformers}
    return PipelineSpec(
        input_specs(pipeline, columns, uris),
        pipeline.transform,
        columns_made,
        pipeline.precombine,
        audits,
        asked,
        dict(skip_to or {}),
        transformer_specs(pipeline, registered.transformer_digests),
        transformers_folder() if pipeline.transformers else "",
        allowed_resources(pipeline),
        version_of(pipeline, registered.files, code),
    )


def input_copies(copy: DatasetCopy, registered: Pipeline) -> dict[str, DatasetCopy | None]:
    """In the data center of `copy`, by what the SELECT calls them; None: there is none any more."""
    names = {each.name: each.dataset for each in inputs_of(registered.files)}
    there = lake_copies().filter(data_center=copy.data_center_id, dataset__name__in=names.values())
    copies = {each.dataset.name: each for each in there}
    return {name: copies.get(dataset) for name, dataset in names.items()}


def _require_all(copy: DatasetCopy, copies: Mapping[str, DatasetCopy | None]) -> dict[str, DatasetCopy]:
    """Raises Refused."""
    if missing := [name for name, each in copies.items() if each is None]:
        raise Refused(
            f"The input `{missing[0]}` of the pipeline `{copy.dataset.name}` has no copy in `{copy.data_center}` any more. Restore it, or register the pipeline without it."
        )
    return {name: each for name, each in copies.items() if each is not None}


def column_names(dataset: Dataset) -> list[str]:
    return [column["name"] for column in dataset.columns]
