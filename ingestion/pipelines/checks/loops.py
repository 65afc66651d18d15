"""Nothing is made from itself: through however many pipelines, and by whatever names datasets have for one folder of a lake."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Mapping

from django.db.models import Q

from ingestion.lake.lake_copies import lake_copies, table_uri
from lakehub.catalog.datasets.copies import lake_folder
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.models import Dataset, DatasetCopy, LineageEdge
from lakehub.catalog.storages import local_path


def folder_of(uri: str) -> str:
    """Equal for all ways to write it, and for all links to it. Raises MetadataUnavailable where it is none."""
    return os.path.realpath(local_path(uri)) if uri.startswith("file:") else lake_folder(uri)


def made_from(target: Dataset, inputs: Collection[Dataset]) -> dict[int, str]:
    """By number the datasets that are made from the table of `target`, among what is read already and the `inputs`, which are about to be.

    The text is the end of "by way of lineage": through which folder with two names, if any. Without other names of the target's own folder.
    """
    read = _read_by_folder(inputs)
    own_names = _other_names({target.pk: ""}, read)
    edge = ways = {target.pk: "", **own_names}
    while edge:
        pairs = LineageEdge.objects.filter(upstream__in=edge).order_by("pk").values_list("upstream", "downstream")
        made = {downstream: edge[upstream] for upstream, downstream in pairs if downstream not in ways}
        edge = {number: way for number, way in (_other_names(made, read) | made).items() if number not in ways}
        ways = ways | edge
    return {number: way for number, way in ways.items() if number not in own_names}


def loop_problem(dataset_id: int) -> str:
    """As `lakehub.catalog.ports.LoopCheck`: of a dataset that was another table, or off-boarded, when the pipelines were registered."""
    dataset = Dataset.objects.get(pk=dataset_id)
    read = _read_by_folder((dataset,))
    others = Dataset.objects.filter(pk__in=_other_names({dataset.pk: ""}, read)).order_by("pk")
    return next(filter(None, (_problem_of(each, read) for each in (dataset, *others))), "")


def _problem_of(dataset: Dataset, read: Mapping[str, Mapping[int, str]]) -> str:
    """Where what is made from it, by any name of its folders, lies in one of these."""
    folders = {folder for copy in lake_copies().filter(dataset=dataset) if (folder := _folder(copy))}
    reached, edge = {dataset.pk}, {dataset.pk: "", **_other_names({dataset.pk: ""}, read)}
    while edge and folders:
        made = dict.fromkeys(LineageEdge.objects.filter(upstream__in=edge).values_list("downstream", flat=True), "")
        for copy in lake_copies().filter(dataset__in=made).exclude(dataset=dataset).order_by("pk"):
            if (folder := _folder(copy)) in folders:
                return (
                    f"`{dataset.name}` would lie in {folder}, as `{copy.dataset.name}` does, which is made from `{dataset.name}`: a pipeline cannot read what it makes. "
                    f"Name another table, or first change the pipeline so that it no longer reads `{dataset.name}`."
                )
        reached |= edge.keys()
        edge = {number: "" for number in made | _other_names(made, read) if number not in reached}
    return ""


def _other_names(ways: Mapping[int, str], read: Mapping[str, Mapping[int, str]]) -> dict[int, str]:
    """Of those that are read the others that have their table in a folder of these."""
    others = dict[int, str]()
    for copy in lake_copies().filter(dataset__in=ways) if read else ():
        folder = _folder(copy)
        for other, name in read.get(folder, {}).items():
            if other != copy.dataset_id:
                both = f", and of the folder {folder}, which `{copy.dataset.name}` and `{name}` both name"
                others.setdefault(other, ways[copy.dataset_id] or both)
    return others


def _read_by_folder(inputs: Collection[Dataset]) -> dict[str, dict[int, str]]:
    """The names of datasets that something reads, or is about to, by folder and number; none where nothing is monitored: each table that Lakehub writes has a folder for itself."""
    by_folder = defaultdict[str, dict[int, str]](dict)
    if lake_copies().filter(dataset__ingested=False).exists():
        is_read = Q(dataset__in=inputs) | Q(dataset__in=LineageEdge.objects.values("upstream"))
        for copy in lake_copies().filter(is_read):
            if folder := _folder(copy):
                by_folder[folder][copy.dataset_id] = copy.dataset.name
    return by_folder


def _folder(copy: DatasetCopy) -> str:
    """Empty where it has none: no run can read it then, so nothing is made from it."""
    try:
        return folder_of(table_uri(copy))
    except MetadataUnavailable:
        return ""
