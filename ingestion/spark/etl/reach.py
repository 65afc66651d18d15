"""What the changes of the inputs reach: record keys of the target, or its partitions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ingestion.spark.contract.spec import PipelineInputSpec
from ingestion.spark.etl.input_changes import ChangedFiles
from ingestion.spark.etl.recomputing import target_schema
from ingestion.spark.etl.views import InputViews
from ingestion.spark.job import Job, JobError
from ingestion.spark.tables.spark_columns import type_of_spark
from ingestion.spark.tables.timeline import Timeline

MAX_OVERWRITTEN = 1_000
"""Partitions that are recomputed as a whole by one run."""
_CERTAIN = {
    "string": ("string", "int", "long"),
    "int": ("string", "int", "long"),
    "long": ("string", "int", "long"),
}
"""By the type of an input's column, those into which the text in a path is cast as its value is."""
_USUAL = {
    "hoodie.table.keygenerator.type": ("SIMPLE", "COMPLEX"),
    "hoodie.datasource.write.hive_style_partitioning": ("true",),
    "hoodie.datasource.write.partitionpath.urlencode": ("false", None),
}
"""Of a table whose folders have the values as they are. Others cut times, or escape."""


def affected_keys(views: InputViews, changes: Mapping[str, ChangedFiles], job: Job) -> DataFrame | None:
    """The record keys, in the target's types, each once, that changes of the followed inputs reach. None: there is no change that is followed."""
    types = target_schema(job).types
    keys = [F.col(f"`{name}`").cast(types[name]).alias(name) for name in job.table.record_key]
    frames = [
        views.query(each.affected_keys).select(*keys)
        for each in views.pipeline.inputs
        if each.affected_keys and not changes[each.name].is_empty
    ]
    return reduce(DataFrame.union, frames).distinct() if frames else None


def affected_partitions(views: InputViews, changes: Mapping[str, ChangedFiles], job: Job) -> list[Any] | None:
    """The values of the partition column that changes of the followed inputs reach. None: they are too many to name, or one is null, or rows are replaced by key."""
    column = job.table.partition_column
    changed = [each for each in views.pipeline.inputs if each.affected_partitions and not changes[each.name].is_empty]
    if not changed or column is None:
        return None
    values, frames = set[Any](), []
    type_ = target_schema(job).types[column]
    for each in changed:
        named = _named_by_paths(each, changes[each.name], views, type_)
        values |= named or set()
        if named is None:
            frames.append(views.query(each.affected_partitions).select(F.col(f"`{column}`").cast(type_).alias("value")))
    if frames:
        rows = reduce(DataFrame.union, frames).distinct().limit(MAX_OVERWRITTEN + 1).collect()
        values |= {row["value"] for row in rows}
    return sorted(values) if len(values) <= MAX_OVERWRITTEN and None not in values else None


def _named_by_paths(each: PipelineInputSpec, files: ChangedFiles, views: InputViews, type_: str) -> set[Any] | None:
    """No row is read for it: of a file that was written anew some row has changed. None: the folders do not say it."""
    types = {field.name.lower(): str(type_of_spark(field.dataType)) for field in views.columns[each.name]}
    is_certain = type_ in _CERTAIN.get(types.get(each.partition_source.lower(), ""), ())
    properties = Timeline(each.uri).properties
    is_certain &= all(properties.get(name) in usual for name, usual in _USUAL.items())
    return values_in_paths(files.paths, each.partition_source, type_) if is_certain else None


def values_in_paths(paths: Iterable[str], column: str, type_: str) -> set[Any] | None:
    """Of files whose folders are named by the values of `column`, in the type that the target has for them. None: by something else, or by what may be written otherwise than a cast does."""
    values = set[Any]()
    for folder in {path.rpartition("/")[0] for path in paths}:
        name, _, text = folder.partition("=")
        value = _READ_BY[type_](text) if name.lower() == column.lower() else None
        if value is None:
            return None
        values.add(value)
    return values


def values_named(names: Sequence[str], job: Job) -> list[Any]:
    """Of the partition column, by the names of partitions. Raises JobError for one that is none."""
    column = str(job.table.partition_column)
    type_ = target_schema(job).types[column]
    values = [name if type_ == "string" else _READ_BY[type_](name) for name in names]
    if None in values:
        wrong = names[values.index(None)]
        raise JobError(f"{wrong!r} is no partition of `{job.table.name}`: `{column}` is of the type {type_}.")
    return values


def _text(text: str) -> str | None:
    """As it is: without what may be written otherwise in a path."""
    return text if re.fullmatch(r"[\w. :-]+", text, re.ASCII) and not text.startswith("__") else None


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d{1,18}", text, re.ASCII) else None


_READ_BY: Mapping[str, Callable[[str], Any]] = {"string": _text, "int": _number, "long": _number}
