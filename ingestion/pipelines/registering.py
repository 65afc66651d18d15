"""Registering a pipeline: its target becomes a dataset like any other, with a copy wherever all of its inputs have one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from ingestion.domain.pipelines.plan import makes_other_rows
from ingestion.models import Pipeline
from ingestion.pipelines.checking import Checked, check_pipeline
from ingestion.pipelines.planning import basis_of, changes_of
from lakehub.accounts.audit import audit_log
from lakehub.catalog.datasets.copies import create_copy
from lakehub.catalog.datasets.wake_on_change import wake_on_metadata_change
from lakehub.catalog.metadata import ColumnType
from lakehub.catalog.models import Dataset, DatasetKind, Feed, FeedKind, LineageEdge
from lakehub.catalog.models.lineage import PIPELINE_SOURCE
from lakehub.kernel.errors import Conflict

_KINDS = {
    "int": ColumnType.INTEGER,
    "long": ColumnType.INTEGER,
    "float": ColumnType.FLOAT,
    "double": ColumnType.FLOAT,
    "boolean": ColumnType.BOOLEAN,
    "string": ColumnType.STRING,
    "binary": ColumnType.BINARY,
    "date": ColumnType.DATE,
    "timestamp": ColumnType.TIMESTAMP,
    "decimal": ColumnType.DECIMAL,
    "array": ColumnType.ARRAY,
    "map": ColumnType.MAP,
    "struct": ColumnType.STRUCT,
}
"""By the first word of a column's type what the catalog calls it."""
LINEAGE_SOURCE = PIPELINE_SOURCE
"""Of the edges from its inputs to its target."""


@dataclass(frozen=True)
class Registered:
    """`is_new`: it was not registered before. `remakes_rows`: rows that the target has may be others by the files as they are now."""

    dataset: Dataset
    is_new: bool
    remakes_rows: bool


def register_pipeline(
    texts: Mapping[str, str],
    *,
    actor: str,
    may: Callable[[Checked], None] = lambda checked: None,
    basis: str = "",
    now: datetime,
) -> Registered:
    """New, or in place of the files that it had. `may` raises PermissionDenied. `basis`: of the plan that was shown; empty: none was.

    Raises BadPipeline, and Conflict where what the plan was made against has changed since; nothing is written then."""
    checked = check_pipeline(texts)
    may(checked)
    try:
        with transaction.atomic():
            known = _known(checked)
            if basis and basis != basis_of(known, checked.transformer_digests):
                raise _changed_meanwhile(checked, known)
            dataset = _save(checked, known, texts, actor=actor, now=now)
    except IntegrityError:
        if checked.target is None and Dataset.objects.filter(name=checked.pipeline.name).exists():
            raise _changed_meanwhile(
                checked, Pipeline.objects.filter(dataset__name=checked.pipeline.name).first()
            ) from None
        raise
    return Registered(dataset, known is None, known is not None and makes_other_rows(changes_of(known, checked)))


def _known(checked: Checked) -> Pipeline | None:
    """As it is registered; nobody else changes it before the transaction ends."""
    return Pipeline.objects.select_for_update().filter(dataset=checked.target).first() if checked.target else None


def _save(checked: Checked, known: Pipeline | None, texts: Mapping[str, str], *, actor: str, now: datetime) -> Dataset:
    dataset = _save_dataset(checked, now)
    facts = {
        "files": dict(texts),
        "on_commit": checked.pipeline.on_commit,
        "transformer_digests": _digests(checked, known),
        "changed_by": actor,
        "changed_at": now,
    }
    Pipeline.objects.update_or_create(dataset=dataset, defaults=facts)
    audit_log.record(actor, "pipeline", f"dataset:{dataset.name}", now=now, is_new=known is None)
    wake_on_metadata_change()
    return dataset


def _changed_meanwhile(checked: Checked, known: Pipeline | None) -> Conflict:
    last = "" if known is None else f" {known.changed_by} changed it last, at {known.changed_at:%Y-%m-%d %H:%M} UTC."
    return Conflict(
        f"The pipeline `{checked.pipeline.name}`, or the code of a transformer, is not as it was when the plan was made.{last} Nothing was changed: look at the plan again."
    )


def _digests(checked: Checked, known: Pipeline | None) -> dict[str, str]:
    """Of one that cannot be read here, that of the last time stays."""
    before = {} if known is None else known.transformer_digests
    names = [each.code for each in checked.pipeline.transformers]
    return {name: digest for name in names if (digest := checked.transformer_digests.get(name) or before.get(name))}


def _save_dataset(checked: Checked, now: datetime) -> Dataset:
    pipeline, dataset = checked.pipeline, checked.target
    facts: dict[str, Any] = {
        "description": pipeline.description,
        "team": checked.team,
        "tier": pipeline.tier,
        "columns": [
            {"name": column.name, "type": _kind_of(column.type), "nullable": column.name not in pipeline.record_key}
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
    # One that events have told of stays now without them.
    LineageEdge.objects.filter(downstream=dataset, upstream__in=checked.inputs.values()).exclude(source="").update(
        source=LINEAGE_SOURCE
    )
    return dataset


def _kind_of(type_: str) -> str:
    word = re.match(r"[a-z]+", type_)
    return (ColumnType.OTHER if word is None else _KINDS.get(word[0], ColumnType.OTHER)).value
