"""Registering a pipeline: its target becomes a dataset like any other, with a copy wherever all of its inputs have one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from ingestion.domain.pipelines.definition import PipelineDefinition
from ingestion.domain.pipelines.pipeline_file import PIPELINE_FILE
from ingestion.domain.pipelines.problems import BadPipeline, Problem
from ingestion.domain.pipelines.reading import inputs_of, read_pipeline
from ingestion.models import Pipeline
from ingestion.pipelines.specs import column_names
from ingestion.ports import audit_check
from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Team
from lakehub.catalog.datasets.copies import create_copy
from lakehub.catalog.datasets.wake_on_change import wake_on_metadata_change
from lakehub.catalog.models import DataCenter, Dataset, DatasetKind, Feed, FeedKind, LineageEdge
from lakehub.kernel.suggest import did_you_mean

LINEAGE_SOURCE = "pipeline"
"""Of the edges from its inputs to its target."""
_MAX_NAMES = 1000


@dataclass(frozen=True)
class Checked:
    """A pipeline whose every name was found. `target`: its dataset, where it is registered already; `inputs`: datasets by the names of the SELECT."""

    pipeline: PipelineDefinition
    team: Team
    inputs: Mapping[str, Dataset]
    data_centers: tuple[DataCenter, ...]
    target: Dataset | None


@dataclass(frozen=True)
class Registered:
    """`is_new`: it was not registered before. `remakes_rows`: rows that the target has may be others by the files as they are now."""

    dataset: Dataset
    is_new: bool
    remakes_rows: bool


def check_pipeline(texts: Mapping[str, str]) -> Checked:
    """Reads the catalog, and writes nothing. Raises BadPipeline with all that is wrong."""
    inputs = _input_datasets(texts)
    pipeline = _read_with_columns(texts, inputs)
    problems = list[Problem]()
    team = Team.objects.filter(name=pipeline.team).first()
    if team is None:
        near = did_you_mean(pipeline.team, Team.objects.values_list("name", flat=True)[:_MAX_NAMES])
        problems.append(Problem(PIPELINE_FILE, 0, f"There is no team `{pipeline.team}`.{near}"))
    problems += _audit_problems(pipeline, inputs)
    target = Dataset.objects.filter(name=pipeline.name).select_related("feed").first()
    problems += _target_problems(pipeline, target)
    problems += _circle_problems(target, inputs)
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
    return Checked(pipeline, team, inputs, centers, target)


def register_pipeline(
    texts: Mapping[str, str], *, actor: str, may: Callable[[Team], None] = lambda team: None, now: datetime
) -> Registered:
    """New, or in place of the files that it had. `may` raises PermissionDenied. Raises BadPipeline; nothing is written then."""
    checked = check_pipeline(texts)
    may(checked.team)
    if checked.target is not None:
        may(checked.target.team)
    with transaction.atomic():
        known = Pipeline.objects.select_for_update().filter(dataset=checked.target).first() if checked.target else None
        before = None if known is None else dict(known.files)
        dataset = _save_dataset(checked, now)
        facts = {"files": dict(texts), "changed_by": actor, "changed_at": now}
        Pipeline.objects.update_or_create(dataset=dataset, defaults=facts)
        audit_log.record(actor, "pipeline", f"dataset:{dataset.name}", now=now, is_new=before is None)
        wake_on_metadata_change()
    return Registered(dataset, before is None, before is not None and _makes_other_rows(before, checked))


def _makes_other_rows(before: Mapping[str, str], checked: Checked) -> bool:
    """Also where nobody can say any more what the former files made of the inputs."""
    try:
        old, new = _read_with_columns(before, _input_datasets(before)), checked.pipeline
    except BadPipeline:
        return True
    facts = [(each.transform, each.columns, each.record_key, each.precombine, each.inputs) for each in (old, new)]
    return facts[0] != facts[1]


def _read_with_columns(texts: Mapping[str, str], inputs: Mapping[str, Dataset]) -> PipelineDefinition:
    return read_pipeline(texts, {name: column_names(dataset) for name, dataset in inputs.items()})


def _input_datasets(texts: Mapping[str, str]) -> dict[str, Dataset]:
    """By the name that the SELECT calls them. Raises BadPipeline for one that is not in the lake; what else is wrong is said by others."""
    names = {each.name: each.dataset for each in inputs_of(texts) if each.dataset}
    live = Dataset.objects.filter(ingested=True, offboarded_at=None)
    found_by_name = {dataset.name: dataset for dataset in live.filter(name__in=names.values())}
    missing = sorted({*names.values()} - found_by_name.keys())
    if missing:
        known = [*live.values_list("name", flat=True)[:_MAX_NAMES]]
        raise BadPipeline(
            [
                Problem(PIPELINE_FILE, 0, f"The lake has no dataset `{name}`.{did_you_mean(name, known)}")
                for name in missing
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
    }
    return [
        Problem(
            PIPELINE_FILE,
            0,
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
    """Nothing is made from itself, through however many others."""
    if target is None:
        return []
    reached, edge = set[int](), {target.pk}
    while edge:
        reached |= edge
        edge = {*LineageEdge.objects.filter(upstream__in=edge).values_list("downstream", flat=True)} - reached
    return [
        Problem(
            PIPELINE_FILE,
            0,
            f"The input `{name}` is made from `{target.name}` itself, by way of lineage: a pipeline cannot read what is made from its target.",
        )
        for name, dataset in inputs.items()
        if dataset.pk in reached
    ]


def _shared_centers(datasets: Collection[Dataset]) -> set[int]:
    centers = [set(dataset.copies.values_list("data_center", flat=True)) for dataset in datasets]
    return set.intersection(*centers) if centers else set()


def _save_dataset(checked: Checked, now: datetime) -> Dataset:
    pipeline, dataset = checked.pipeline, checked.target
    facts: dict[str, Any] = {
        "description": pipeline.description,
        "team": checked.team,
        "tier": pipeline.tier,
        "columns": [
            {"name": column.name, "type": column.type, "nullable": column.name not in pipeline.record_key}
            for column in pipeline.columns
        ],
    }
    if dataset is None:
        dataset = Dataset.objects.create(
            name=pipeline.name,
            kind=DatasetKind.APPEND_PLUS_UPDATE,
            primary_key=[*pipeline.record_key],
            record_key=[*pipeline.record_key],
            partition_column=pipeline.partition,
            grain=pipeline.grain,
            partition_tz=pipeline.partition_tz,
            onboarded_at=now,
            **facts,
        )
        Feed.objects.create(dataset=dataset, kind=FeedKind.PIPELINE, object=pipeline.name, every=pipeline.every)
        for data_center in checked.data_centers:
            create_copy(dataset, data_center, None)
    else:
        for name, value in facts.items():
            setattr(dataset, name, value)
        dataset.metadata_version += 1
        dataset.save()
        dataset.feed.every = pipeline.every
        dataset.feed.save(update_fields=["every"])
    LineageEdge.objects.filter(downstream=dataset, source=LINEAGE_SOURCE).exclude(
        upstream__in=checked.inputs.values()
    ).delete()
    for upstream in checked.inputs.values():
        LineageEdge.objects.get_or_create(upstream=upstream, downstream=dataset, defaults={"source": LINEAGE_SOURCE})
    return dataset
