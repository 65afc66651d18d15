"""The ranges of an input that a pipeline is about to follow: commits that it has not read yet have touched them, whenever their data is from."""

from __future__ import annotations

from django.db.models import Max, Min

from ingestion.domain.pipelines.pipeline_file import PIPELINE_FILE
from ingestion.models import Commit, ReaderPosition, TouchedPartition
from ingestion.pipelines.positions import reader_name
from ingestion.runs.modelled_tables.input_commits import SERVICES, inputs_of_file
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import Interval, union

MAX_TOUCHED = 1_000
MAX_RANGES = 20
"""Where there are more, all from the first to the last is meant: each is a question to the gate."""


def waiting_ranges(made: DatasetCopy, source: DatasetCopy) -> tuple[Interval, ...] | None:
    """Of `source`, an input of the pipeline that makes `made`; empty where its changes are not followed. None: nobody knows how far it was read."""
    registered = getattr(made.dataset, "pipeline", None)
    inputs = () if registered is None else inputs_of_file(registered.files.get(PIPELINE_FILE, ""))
    if not any(each.is_followed for each in inputs if each.dataset == source.dataset.name):
        return ()
    readers = ReaderPosition.objects.filter(copy=source, name=reader_name(made.dataset))
    position = readers.values_list("position", flat=True).first()
    if position is None:
        return None
    waiting = Commit.objects.filter(copy=source, instant__gt=position).exclude(operation__in=SERVICES)
    touched = TouchedPartition.objects.filter(commit__in=waiting.values("pk")).order_by()
    pieces = [*touched.values_list("start", "end").distinct()[: MAX_TOUCHED + 1]]
    ranges = union(Interval(start, end) for start, end in pieces)
    if len(pieces) <= MAX_TOUCHED and len(ranges) <= MAX_RANGES:
        return ranges
    ends = touched.aggregate(start=Min("start"), end=Max("end"))
    return (Interval(ends["start"], ends["end"]),)
