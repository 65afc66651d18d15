"""The plan of a registration: what changes, what is read and written for it, and which pipelines read its table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ingestion.domain.pipelines.definition import PipelineDefinition
from ingestion.domain.pipelines.plan import (
    Change,
    Effect,
    changes_between,
    code_changes,
    digest_of,
    makes_other_rows,
)
from ingestion.domain.pipelines.problems import BadPipeline
from ingestion.domain.pipelines.reading import read_pipeline
from ingestion.lake.files.table_sizes import SizeUnknown, TableSize, read_size, size_of
from ingestion.models import Pipeline
from ingestion.pipelines.checking import Checked, input_datasets, read_with_columns
from ingestion.pipelines.specs import column_names
from lakehub.catalog.models import DataCenter, Dataset, DatasetCopy, LineageEdge

_MAX_READERS = 50


@dataclass(frozen=True)
class Reader:
    """A pipeline that reads the table, itself or through others. `problems`: what is wrong with its files once the table is as planned."""

    dataset: str
    is_direct: bool
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableRead:
    """`size`: None: not known, as its lake is not on files, or there is no table yet."""

    name: str
    dataset: str
    size: TableSize | None


@dataclass(frozen=True)
class TableWrite:
    """What is written, in each data center. `size`: None: it is not known, and `reason` says why. `is_estimate`: it is that of the rows which are replaced."""

    size: TableSize | None
    is_estimate: bool = False
    reason: str = ""


@dataclass(frozen=True)
class Plan:
    """`changes`: to the files that it has; none for a new pipeline. `reads`: all of these, in each of `data_centers`, where rows are made.
    `readers`: the nearest first. `basis`: what it was made against. `replicated`: where its copy is a replica."""

    checked: Checked
    is_new: bool
    basis: str
    changes: tuple[Change, ...]
    reads: tuple[TableRead, ...]
    writes: TableWrite
    readers: tuple[Reader, ...]
    replicated: tuple[DataCenter, ...] = ()

    @property
    def data_centers(self) -> tuple[DataCenter, ...]:
        """In which jobs make its rows."""
        return tuple(center for center in self.checked.data_centers if center not in self.replicated)

    @cached_property
    def makes_rows(self) -> bool:
        return self.is_new or makes_other_rows(self.changes)

    @property
    def sentence(self) -> str:
        where = ", ".join(map(str, self.data_centers))
        if self.is_new:
            return f"A new table is made in {where}."
        if not self.changes:
            return "Nothing changes: the files say what they said."
        if not self.makes_rows:
            return "No row changes."
        replicas = f"; replicas follow in {', '.join(map(str, self.replicated))}" if self.replicated else ""
        return f"All rows are recomputed in {where}{replicas}."


def plan_of(checked: Checked) -> Plan:
    """Reads the catalog and lists files of the lake; writes nothing."""
    registered = None if checked.target is None else Pipeline.objects.filter(dataset=checked.target).first()
    changes = () if registered is None else changes_of(registered, checked)
    basis = basis_of(registered, checked.transformer_digests)
    readers, replicated = (*_readers(checked),), (*_replicated(checked),)
    no_rows = TableWrite(TableSize(rows=0, bytes=0, files=0))
    plan = Plan(checked, registered is None, basis, changes, (), no_rows, readers, replicated)
    if not plan.makes_rows:
        return plan
    return replace(plan, reads=(*_reads(checked),), writes=_rebuilt(checked.target))


def basis_of(registered: Pipeline | None, code: Mapping[str, str]) -> str:
    """A digest of what a plan was made against: the files that are registered and the code of their transformers, and `code` as it is now by name of a transformer."""
    known = None if registered is None else [registered.files, registered.transformer_digests]
    return digest_of([known, dict(code)])


def changes_of(registered: Pipeline, checked: Checked) -> tuple[Change, ...]:
    """`registered`: as it was until now."""
    try:
        known = read_with_columns(registered.files, input_datasets(registered.files), is_registered=True)
    except BadPipeline:
        return (Change("files", "cannot be read any more", "as given", Effect.ALL_ROWS),)
    of_code = code_changes(_digests_before(registered, known), checked.transformer_digests)
    return (*changes_between(known, checked.pipeline), *of_code)


def _digests_before(registered: Pipeline, known: PipelineDefinition) -> dict[str, str]:
    """Of those that it names; of one that could not be read then, nothing is known."""
    return {each.code: registered.transformer_digests.get(each.code, "") for each in known.transformers}


def _reads(checked: Checked) -> Iterator[TableRead]:
    for each in checked.pipeline.inputs:
        dataset = checked.inputs[each.name]
        yield TableRead(each.name, dataset.name, _size_in(checked, dataset))


def _size_in(checked: Checked, dataset: Dataset) -> TableSize | None:
    """In the first of its data centers."""
    copies = DatasetCopy.objects.filter(dataset=dataset, data_center=checked.data_centers[0])
    copy = copies.select_related("dataset", "data_center").first()
    return None if copy is None else size_of(copy)


def _rebuilt(target: Dataset | None) -> TableWrite:
    """In the first data center where jobs make its rows. How many there will be only the SELECT can tell; that of now is known without a job."""
    copies = DatasetCopy.objects.filter(dataset=target, replica=None)
    copy = None if target is None else copies.select_related("dataset", "data_center").first()
    if copy is None:
        return TableWrite(None, reason="There is no table yet: its size is known after its first run.")
    try:
        size = read_size(copy)
    except SizeUnknown as unknown:
        return TableWrite(None, reason=str(unknown))
    if not size.rows:
        return TableWrite(None, reason=f"{copy} holds no rows now, so there is nothing to estimate from.")
    return TableWrite(size, is_estimate=True)


def _replicated(checked: Checked) -> Iterator[DataCenter]:
    copies = DatasetCopy.objects.filter(dataset=checked.target, replica__isnull=False)
    for copy in copies.select_related("data_center").order_by("data_center__name"):
        yield copy.data_center


def _readers(checked: Checked) -> Iterator[Reader]:
    """Breadth first, each once."""
    if checked.target is None:
        return
    known, edge, is_direct = {checked.target.pk}, [checked.target.pk], True
    while edge:
        below = LineageEdge.objects.filter(upstream__in=edge, downstream__pipeline__isnull=False)
        names = dict(below.values_list("downstream", "downstream__name").order_by("downstream__name")[:_MAX_READERS])
        edge = [pk for pk in names if pk not in known]
        for pk in edge:
            yield Reader(names[pk], is_direct, _problems_of_reader(pk, checked) if is_direct else ())
        known |= {*edge}
        is_direct = False


def _problems_of_reader(dataset: int, checked: Checked) -> tuple[str, ...]:
    """With the columns that the table is to have."""
    registered = Pipeline.objects.get(dataset=dataset)
    try:
        inputs = input_datasets(registered.files)
        planned = checked.pipeline.columns.names
        read_pipeline(
            registered.files,
            {name: planned if each == checked.target else column_names(each) for name, each in inputs.items()},
            is_strict=True,
            is_registered=True,
        )
    except BadPipeline as bad:
        return tuple(map(str, bad.problems))
    return ()
