"""Small files put together, beside the jobs that write the table. No row changes, and the checkpoint stays as it is.

What is read and written anew is written beside the table, without the permit. Within it the new files take the place of those that are
still as they were planned; a partition in which one of them has changed meanwhile is given up until the next time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate

import pyarrow.parquet as pq

from ingestion.domain.accounting import RowCounts
from ingestion.spark.contract.report import JobReport
from ingestion.spark.file_groups import BaseFile
from ingestion.spark.file_groups.clustering.merged_files import MergedFile, write_merged_files
from ingestion.spark.file_groups.clustering.replacing import replace_files
from ingestion.spark.file_groups.clustering.small_files import ClusterLimits, choose_small_files, is_worth_it
from ingestion.spark.file_groups.lookups import newest_base_files, partition_paths
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.job import Job, UnbalancedCounts, schema_facts
from ingestion.spark.loading import rereading, write_path
from ingestion.spark.loading.small_batches import columns_to_write
from ingestion.spark.tables import hudi
from ingestion.spark.tables.checkpoint_metadata import commit_metadata
from ingestion.spark.tables.timeline import Timeline, open_storage
from ingestion.spark.write_permit import hold_write_permit
from lakehub.kernel import failpoint

_MIB = 2**20
_MAX_INDEXED_ROWS = 500_000
_SETTLING = timedelta(seconds=1)
"""By which a clock may be behind the newest commit."""


@dataclass(frozen=True)
class _Partition:
    replaced: tuple[BaseFile, ...]
    merged: tuple[MergedFile, ...]


def run(job: Job) -> JobReport:
    timeline = hudi.check_table(job.table)
    searched = timeline.latest_completion()
    if done := job.report_of_earlier_attempt(timeline):
        return done
    chosen, index = _choose_files(job), _index(job)
    columns = columns_to_write(job.spark, job.table, hudi.stored_schema(job.spark, job.table))
    if not chosen or columns is None or not index.is_up_to_date(job.table):
        return job.nothing_to_do_report()
    with write_path.folder_in_lake(job) as folder:
        with job.phase("merge"):
            merged = write_merged_files(job.spark, job.table, chosen, columns, folder)
        failpoint.reach("ingestion.before_write")
        with hold_write_permit(job):
            # Others wait: of a long timeline only what is new is searched.
            done = job.report_of_earlier_attempt(timeline, after=searched)
            return done or _replace(job, chosen, merged, columns, folder)


def _choose_files(job: Job) -> list[BaseFile]:
    given = job.spec.cluster
    quiet_since = datetime.now(UTC) + _SETTLING - timedelta(seconds=given.quiet_s)
    limits = ClusterLimits(
        max_file_bytes=job.table.max_file_mib * _MIB,
        min_files=given.min_files,
        max_bytes=given.max_mib * _MIB,
        quiet_since=f"{quiet_since:%Y%m%d%H%M%S%f}"[:17],
    )
    with job.phase("plan"):
        paths = partition_paths(job.spark, job.table.uri)
        if job.spec.partitions:
            wanted = {f"{job.table.partition_column}={name}" for name in job.spec.partitions}
            paths = [path for path in paths if path in wanted]
        chosen = choose_small_files(newest_base_files(job.spark, job.table.uri, paths), limits)
        return _as_far_as_indexed(job, chosen) if hudi.has_metadata_table(job.table.uri) else chosen


def _as_far_as_indexed(job: Job, files: Sequence[BaseFile]) -> list[BaseFile]:
    """The places of all their rows are noted at once, in memory."""
    totals = accumulate(_rows_of(job, [file]) for file in files)
    return [file for file, total in zip(files, totals, strict=True) if total <= _MAX_INDEXED_ROWS]


def _replace(
    job: Job, chosen: Sequence[BaseFile], merged: Sequence[MergedFile], columns: str, folder: str
) -> JobReport:
    """Within the permit."""
    partitions = _unchanged_partitions(job, chosen, merged)
    if not partitions or columns != columns_to_write(job.spark, job.table, hudi.stored_schema(job.spark, job.table)):
        return job.nothing_to_do_report()
    checkpoint = rereading.checkpoint_to_stamp(Timeline(job.table.uri).checkpoint())
    facts = schema_facts(hudi.stored_schema(job.spark, job.table))
    replaced = [file for each in partitions for file in each.replaced]
    new_files = [file for each in partitions for file in each.merged]
    _check_rows(job, replaced, new_files)
    clustered = {"clustered": {"files": len(replaced), "into": len(new_files)}}
    marks = commit_metadata(run=job.run_metadata(RowCounts(), facts, None, None) | clustered, checkpoint=checkpoint)
    with job.phase("write"):
        replace_files(
            job.spark, job.table, replaced, new_files, folder, columns, _index(job).write_options(job.table), marks
        )
    failpoint.reach("ingestion.after_commit")
    return write_path.report_of_commit(job)


def _unchanged_partitions(job: Job, chosen: Sequence[BaseFile], merged: Sequence[MergedFile]) -> list[_Partition]:
    """Those whose chosen files are still the newest of their groups, and become fewer."""
    chosen_by_path, merged_by_path = defaultdict(list), defaultdict(list)
    for file in chosen:
        chosen_by_path[file.group.partition].append(file)
    for new_file in merged:
        merged_by_path[new_file.partition].append(new_file)
    newest = set(newest_base_files(job.spark, job.table.uri, chosen_by_path))
    return [
        _Partition(tuple(files), tuple(merged_by_path[path]))
        for path, files in chosen_by_path.items()
        if newest.issuperset(files) and is_worth_it(files, len(merged_by_path[path]))
    ]


def _check_rows(job: Job, replaced: Sequence[BaseFile], merged: Sequence[MergedFile]) -> None:
    before = _rows_of(job, replaced)
    after = sum(file.rows for file in merged)
    if before != after:
        raise UnbalancedCounts(
            f"Of `{job.table.name}` {len(replaced)} small files hold {before} rows, but {after} were written in their place; nothing was committed. "
            "The table is as it was: leave its small files as they are, and report this."
        )


def _rows_of(job: Job, files: Iterable[BaseFile]) -> int:
    """By their footers."""
    filesystem, root = open_storage(job.table.uri)
    return sum(pq.read_metadata(f"{root}/{file.path}", filesystem=filesystem).num_rows for file in files)


def _index(job: Job) -> Index:
    index: Index = INDEXES.get(job.table.index)()
    return index
