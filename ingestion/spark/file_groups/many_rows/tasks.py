"""Files written anew by Spark's tasks: a task gets the rows of its file groups one group after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from ingestion.spark.file_groups import FileGroup
from ingestion.spark.file_groups.many_rows.changed_keys import NEW, write_changed_keys
from ingestion.spark.file_groups.rewriting import KEY, REMOVED, FileRewrite, rewrite_file
from ingestion.spark.tables.timeline import open_storage

PARTITION, FILE_ID = "_lakehub_partition", "_lakehub_file_id"
"""Of a row: the path of its partition, and the group that it lies in or goes to."""
_WRITTEN = "number int, rows long, file string, changes string"
_WRITTEN_ARROW = pa.schema(
    [("number", pa.int32()), ("rows", pa.int64()), ("file", pa.string()), ("changes", pa.string())]
)
_MAX_TASKS = 200


@dataclass(frozen=True)
class PlannedRewrite:
    """`old` and `new`: names in the folder of the partition."""

    number: int
    old: str
    new: str
    footer: Mapping[bytes, bytes] = field(default_factory=dict)


class Rewritten(NamedTuple):
    """`rows`: how many the file has now. `file` and `changes`: URIs of it, which is not in its place yet, and of the file that tells its keys."""

    rows: int
    file: str
    changes: str


@dataclass(frozen=True)
class TableRewrite:
    """What all tasks of a commit share. `scratch`: the URI of a folder in the lake, in which each attempt of a task writes files of its own: one that was taken for lost touches
    no file of the table. `columns`: of the table, without Hudi's own."""

    uri: str
    scratch: str
    instant: str
    columns: pa.Schema
    plans: Mapping[FileGroup, PlannedRewrite]

    def write(self, rows: DataFrame) -> dict[int, Rewritten]:
        """By the numbers of the plans. `rows`: of these groups; KEY, PARTITION, FILE_ID, NEW, REMOVED and the columns."""
        tasks = max(1, min(len(self.plans), _MAX_TASKS))
        by_group = rows.repartition(tasks, PARTITION, FILE_ID).sortWithinPartitions(PARTITION, FILE_ID)
        return {row[0]: Rewritten(*row[1:]) for row in by_group.mapInArrow(task_of(self), _WRITTEN).collect()}


def task_of(what: TableRewrite) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """For `mapInArrow`."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for group, rows in groups_of(batches):
            planned = what.plans[group]
            written = _rewrite(what, group, planned, rows)
            row = {"number": planned.number, **written._asdict()}
            yield pa.RecordBatch.from_pylist([row], schema=_WRITTEN_ARROW)

    return run


def groups_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[FileGroup, pa.Table]]:
    """Of rows that are sorted by PARTITION and FILE_ID."""
    pending, current = list[pa.RecordBatch](), None
    for batch in batches:
        for piece in _pieces(batch):
            group = FileGroup(piece[PARTITION][0].as_py(), piece[FILE_ID][0].as_py())
            if current is not None and group != current:
                yield current, pa.Table.from_batches(pending)
                pending = []
            current = group
            pending.append(piece)
    if current is not None:
        yield current, pa.Table.from_batches(pending)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Each of one group."""
    if not batch.num_rows:
        return
    differs = np.zeros(batch.num_rows - 1, dtype=bool)
    for name in (PARTITION, FILE_ID):
        column = batch[name]
        differs |= pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
    for begin, end in pairwise([0, *(np.flatnonzero(differs) + 1), batch.num_rows]):
        yield batch.slice(begin, end - begin)


def _rewrite(what: TableRewrite, group: FileGroup, planned: PlannedRewrite, rows: pa.Table) -> Rewritten:
    filesystem, root = open_storage(what.uri)
    attempt = f"{what.scratch}/{uuid4().hex}"
    _, folder = open_storage(attempt)
    filesystem.create_dir(folder)
    columns = [KEY, REMOVED, *what.columns.names]
    types = pa.schema([(KEY, pa.string()), (REMOVED, pa.bool_()), *what.columns])
    changed, added = (rows.filter(each).select(columns).cast(types) for each in (pc.invert(rows[NEW]), rows[NEW]))
    old = "/".join(filter(None, (root, group.partition, planned.old)))
    new = f"{folder}/{planned.new}"
    written = rewrite_file(
        filesystem,
        FileRewrite(
            old, new, group.partition, what.instant, planned.number, what.columns, changed, added, planned.footer
        ),
    )
    write_changed_keys(f"{attempt}/keys.avro", rows)
    return Rewritten(written, f"{attempt}/{planned.new}", f"{attempt}/keys.avro")
