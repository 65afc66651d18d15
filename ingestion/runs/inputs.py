"""What a run reads that lies in the lake: datasets that its feed names as inputs, or else those that lineage knows of."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import QuerySet

from ingestion.lake.lake_copies import lake_copies
from ingestion.models import JobKind, JobRun
from ingestion.ports import JobInput
from ingestion.runs.copy_lag import complete_upto
from ingestion.runs.modelled_tables.waiting_ranges import waiting_ranges
from ingestion.spark.contract.job_kinds import READING_KINDS
from lakehub.catalog.datasets.feed_options import checked_options
from lakehub.catalog.models import DatasetCopy, FeedKind
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import BEGINNING, FOREVER, Interval, union
from lakehub.kernel.partitions import parse_partition_name, partition_at
from lakehub.kernel.suggest import did_you_mean


def inputs_of_run(run: JobRun, *, now: datetime) -> list[JobInput]:
    """In the run's own data center. Raises Refused where the feed names what is not there."""
    feed = run.copy.dataset.feed_or_none
    if feed is None or run.kind not in (*READING_KINDS, JobKind.FOLLOW):
        return []
    back = timedelta(seconds=float(checked_options(feed.options)["inputs_back_s"]))
    copies = _named_copies(run.copy, feed.inputs) if feed.inputs is not None else _upstream_copies(run.copy)
    return [
        JobInput(copy.pk, copy.dataset.name, copy.data_center.name, over)
        for copy in copies
        for over in _ranges_to_read(run, copy, back, now)
    ]


def _upstream_copies(copy: DatasetCopy) -> list[DatasetCopy]:
    """What it is made from, as far as Lakehub itself writes it into this data center's lake; of a pipeline also what others write there."""
    upstream = _other_copies_in_data_center(copy).filter(dataset__downstream_edges__downstream=copy.dataset_id)
    if copy.dataset.feed.kind == FeedKind.PIPELINE:
        return list(upstream.filter(pk__in=lake_copies().values("pk")))
    return list(upstream.filter(dataset__ingested=True))


def _named_copies(copy: DatasetCopy, names: list[str]) -> list[DatasetCopy]:
    copies_by_name = {
        other_copy.dataset.name: other_copy
        for other_copy in _other_copies_in_data_center(copy).filter(dataset__name__in=names)
    }
    for name in names:
        if name not in copies_by_name:
            near = did_you_mean(name, _other_copies_in_data_center(copy).values_list("dataset__name", flat=True)[:1000])
            raise Refused(f"The feed names the input `{name}`, which has no copy in `{copy.data_center}`.{near}")
    return [copies_by_name[name] for name in dict.fromkeys(names)]


def _other_copies_in_data_center(copy: DatasetCopy) -> QuerySet[DatasetCopy]:
    live = DatasetCopy.objects.filter(data_center=copy.data_center_id, dataset__offboarded_at=None)
    return live.exclude(dataset=copy.dataset_id).select_related("dataset", "data_center")


def _ranges_to_read(run: JobRun, source: DatasetCopy, back: timedelta, now: datetime) -> Iterator[Interval]:
    """Whole partitions of the input: for a backfill those of the run, for what is new those since the last look and, of what a pipeline follows, those that it has not read yet;
    else all that is watched."""
    if run.kind == JobKind.BACKFILL and run.params.get("partitions"):
        dataset = run.copy.dataset
        named = (parse_partition_name(name, dataset.partition_grain, dataset.zone) for name in run.params["partitions"])
        yield from (Interval(interval.start - back, interval.end) for interval in union(named))
        return
    grain, zone = source.dataset.partition_grain, source.dataset.zone
    looked_at = complete_upto(run.copy) if run.kind in (JobKind.INCREMENTAL, JobKind.FOLLOW) else None
    follows = looked_at is not None and run.copy.dataset.feed.kind == FeedKind.PIPELINE
    waiting = waiting_ranges(run.copy, source) if follows else ()
    watched_from = source.monitored_from or BEGINNING
    since = watched_from if looked_at is None or waiting is None else looked_at - back
    new = Interval(partition_at(min(since, now), grain, zone).start, partition_at(now, grain, zone).end)
    watched = Interval(watched_from, FOREVER)
    yield from union([new, *filter(None, (each.clip(watched) for each in waiting or ()))])
