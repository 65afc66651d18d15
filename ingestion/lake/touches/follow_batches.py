"""What batches of a follow run touch, as a few rows: of a partition one for an hour, not one for each commit.

Nobody needs to know to the second which of a thousand batches changed a partition; who asks when its rows came learns the last
commit of that hour. A batch that deletes keeps rows of its own, as they say what took data away; one that moves rows out of a partition
does not, and they are counted as deleted there.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from ingestion.models import Commit, TouchedPartition
from ingestion.spark.tables.timeline import PartitionChange
from lakehub.kernel.interval import Interval

MERGED_FOR = timedelta(hours=1)


def merge_into_rows(commit: Commit, touched: Mapping[Interval, PartitionChange]) -> dict[Interval, PartitionChange]:
    """Adds the changes to the rows of the same follow run, to be claimed anew; those for which there is none yet. In a transaction."""
    rows = TouchedPartition.objects.select_for_update(of=("self",)).filter(
        copy=commit.copy_id,
        start__in=[over.start for over in touched],
        merged_since__gt=commit.completed_at - MERGED_FOR,
        commit__run=commit.run,
    )
    left, merged = dict(touched), []
    for row in rows.order_by("-merged_since"):
        change = left.pop(Interval(row.start, row.end), None)
        if change is not None:
            row.commit, row.claimed_at = commit, None
            row.rows += sum(change)
            row.inserts += change.inserts
            row.deletes += change.deletes
            merged.append(row)
    TouchedPartition.objects.bulk_update(merged, ["commit", "claimed_at", "rows", "inserts", "deletes"])
    return left
