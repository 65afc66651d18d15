"""The files of a pipeline against the catalog: whether every name in them stands for something, and what cannot be."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from django.db.models import Q

from ingestion.domain.pipelines.definition import PipelineDefinition
from ingestion.domain.pipelines.pipeline_file import MAX_INPUTS, PIPELINE_FILE, read_pipeline_file
from ingestion.domain.pipelines.problems import BadPipeline, Problem
from ingestion.domain.pipelines.reading import inputs_of, read_pipeline
from ingestion.domain.pipelines.transform import TRANSFORM_FILE
from ingestion.lake.lake_copies import lake_copies, table_uri
from ingestion.models import Pipeline
from ingestion.pipelines.checks.loops import folder_of, made_from
from ingestion.pipelines.checks.resources import check_resources
from ingestion.pipelines.specs import column_names
from ingestion.pipelines.transformers import check_transformers
from ingestion.ports import audit_check
from ingestion.spark.etl.input_changes import problem_of_input
from ingestion.spark.tables.timeline import DamagedTable, NotATable
from lakehub.accounts.models import Team
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.models import DataCenter, Dataset, FeedKind
from lakehub.kernel.suggest import HintBudget, did_you_mean

_MAX_NAMES = 1000


@dataclass(frozen=True)
class Checked:
    """A pipeline whose every name was found. `target`: its dataset, where it is registered already; `inputs`: datasets by the names of the SELECT.
    `transformer_digests`: by the code of a transformer that of its files; without those that are on other machines only."""

    pipeline: PipelineDefinition
    team: Team
    inputs: Mapping[str, Dataset]
    data_centers: tuple[DataCenter, ...]
    target: Dataset | None
    transformer_digests: Mapping[str, str]


def check_pipeline(texts: Mapping[str, str]) -> Checked:
    """Reads the catalog, and writes nothing. Raises BadPipeline with all that is wrong."""
    inputs = input_datasets(texts)
    pipeline = read_with_columns(texts, inputs, is_strict=not _is_known(texts))
    problems = list[Problem]()
    team = Team.objects.filter(name=pipeline.team).first()
    if team is None:
        near = did_you_mean(pipeline.team, Team.objects.values_list("name", flat=True)[:_MAX_NAMES])
        line = pipeline.lines.get("team", 0)
        problems.append(Problem(PIPELINE_FILE, line, f"There is no team `{pipeline.team}`.{near}"))
    problems += _audit_problems(pipeline, inputs)
    digests = check_transformers(pipeline, problems)
    check_resources(pipeline, problems)
    target = Dataset.objects.filter(name=pipeline.name).select_related("feed").first()
    problems += _target_problems(pipeline, target)
    problems += _circle_problems(target, inputs)
    problems += _table_problems(inputs, target)
    centers = tuple(DataCenter.objects.filter(pk__in=_shared_centers(inputs.values())))
    if not centers:
        problems.append(
            Problem(
                PIPELINE_FILE,
                0,
                "No data center has copies of all inputs: a pipeline reads the lake of its own data center.",
            )
        )
    if problems or team is None:
        raise BadPipeline(problems)
    return Checked(pipeline, team, inputs, centers, target, digests)


def _is_known(texts: Mapping[str, str]) -> bool:
    """The SELECT is registered already: a column that its source has lost since is no reason to refuse other changes."""
    name = read_pipeline_file(texts.get(PIPELINE_FILE, ""), []).facts.get("name", "")
    registered = Pipeline.objects.filter(dataset__name=name).first()
    return registered is not None and registered.files.get(TRANSFORM_FILE) == texts.get(TRANSFORM_FILE)


def read_with_columns(
    texts: Mapping[str, str], inputs: Mapping[str, Dataset], *, is_strict: bool = False, is_registered: bool = False
) -> PipelineDefinition:
    """As `read_pipeline`. Raises BadPipeline."""
    columns = {name: column_names(dataset) for name, dataset in inputs.items()}
    return read_pipeline(texts, columns, is_strict=is_strict, is_registered=is_registered)


def input_datasets(texts: Mapping[str, str]) -> dict[str, Dataset]:
    """By the name that the SELECT calls them. Raises BadPipeline for one that is not in a lake; what else is wrong is said by others."""
    inputs = [each for each in inputs_of(texts) if each.dataset]
    names, lines = {each.name: each.dataset for each in inputs}, {each.dataset: each.line for each in inputs}
    live = Dataset.objects.filter(Q(ingested=True) | Q(pk__in=lake_copies().values("dataset")), offboarded_at=None)
    found_by_name = {dataset.name: dataset for dataset in live.filter(name__in=names.values())}
    missing = sorted({*names.values()} - found_by_name.keys())
    if missing:
        known, hints = [*live.values_list("name", flat=True)[:_MAX_NAMES]], HintBudget()
        raise BadPipeline(
            [
                Problem(
                    PIPELINE_FILE,
                    lines[name],
                    f"The lake has no dataset `{name}`.{did_you_mean(name, known) if hints.take() else ''}",
                )
                for name in missing[: MAX_INPUTS + 1]
            ]
        )
    return {name: found_by_name[dataset] for name, dataset in names.items()}


def _target_problems(pipeline: PipelineDefinition, target: Dataset | None) -> list[Problem]:
    if target is None:
        return []
    feed = target.feed_or_none
    if feed is None or feed.kind != FeedKind.PIPELINE:
        return [
            Problem(
                PIPELINE_FILE,
                0,
                f"There is a dataset `{target.name}` already, which is no pipeline's: give the pipeline another name.",
            )
        ]
    if target.offboarded_at is not None:
        return [
            Problem(
                PIPELINE_FILE,
                0,
                f"The dataset `{target.name}` is off-boarded: restore it with `manage.py restore {target.name}`, or choose another name.",
            )
        ]
    fixed = {
        "record_key": (tuple(target.record_key), pipeline.record_key),
        "partition": (target.partition_column, pipeline.partition),
        "grain": (str(target.grain), pipeline.grain),
        "partition_tz": (target.partition_tz, pipeline.partition_tz),
    }
    return [
        Problem(
            PIPELINE_FILE,
            pipeline.lines.get(field, 0),
            f"`{field}` was {before or 'not given'}, and is {after or 'not given'} now: that is fixed when the table is made. Register it under another name.",
        )
        for field, (before, after) in fixed.items()
        if before != after
    ]


def _audit_problems(pipeline: PipelineDefinition, inputs: Mapping[str, Dataset]) -> Iterator[Problem]:
    columns = {name: column_names(dataset) for name, dataset in inputs.items()}
    for audit in pipeline.audits:
        if problem := audit_check()(audit.test, pipeline.columns.names, columns, pipeline.record_key):
            yield Problem(PIPELINE_FILE, audit.line, f"The audit `{audit.name}`: {problem}")


def _circle_problems(target: Dataset | None, inputs: Mapping[str, Dataset]) -> list[Problem]:
    if target is None:
        return []
    ways = made_from(target, inputs.values())
    return [
        Problem(
            PIPELINE_FILE,
            0,
            f"The input `{name}` is made from `{target.name}` itself, by way of lineage{ways[dataset.pk]}: a pipeline cannot read what is made from its target. "
            f"Remove the input, or have it made without what comes from `{target.name}`.",
        )
        for name, dataset in inputs.items()
        if dataset.pk in ways
    ]


def _table_problems(inputs: Mapping[str, Dataset], target: Dataset | None) -> Iterator[Problem]:
    """Of tables that others write: what they are is known before the first run."""
    own = set() if target is None else {folder_of(copy.uri) for copy in target.copies.all()}
    monitored = {name: dataset for name, dataset in inputs.items() if not dataset.ingested}
    for name, dataset in monitored.items():
        for copy in lake_copies().filter(dataset=dataset):
            try:
                uri = table_uri(copy)
                problem = (
                    "is the table that the pipeline itself makes" if folder_of(uri) in own else problem_of_input(uri)
                )
            except (MetadataUnavailable, NotATable, DamagedTable, OSError) as unread:
                problem = f"cannot be read: {unread}"
            if problem:
                yield Problem(PIPELINE_FILE, 0, f"The input `{name}` in {copy.data_center} {problem}.")


def _shared_centers(datasets: Collection[Dataset]) -> set[int]:
    centers = {dataset.pk: set[int]() for dataset in datasets}
    for dataset, center in lake_copies().filter(dataset__in=centers).values_list("dataset", "data_center"):
        centers[dataset].add(center)
    return set.intersection(*centers.values()) if centers else set()
