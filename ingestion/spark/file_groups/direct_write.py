"""A commit of a few rows by Hudi's own Java write client, in the driver's JVM: no Spark job.

Each row comes with its place, so nothing is looked up. The table is the same as Spark's writer would leave it: one format, one timeline,
one lock, and the metadata table with its record index is kept up.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa
from pyspark.sql import SparkSession

from ingestion.spark.compiled_java import define_beside
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import FileGroup
from ingestion.spark.file_groups.arrow_types import arrow_type
from ingestion.spark.file_groups.java_client import CLIENT, MAX_MERGES, commit_client, java_list, java_map
from ingestion.spark.file_groups.rewriting import (
    AVRO_SCHEMA,
    BLOOM_FILTER,
    FILTER_TYPE,
    FileRewrite,
    footer_to_rewrite,
    rewrite_file,
    rows_by_key,
)
from ingestion.spark.session import jvm
from ingestion.spark.tables import avro_schema as avro
from ingestion.spark.tables.commit_failpoint import FAILPOINT
from ingestion.spark.tables.hudi import META_COLUMNS
from ingestion.spark.tables.timeline import open_storage
from lakehub.kernel import failpoint
from lakehub.scratch import temporary_folder

_SOURCE = r"""
package org.apache.hudi.client;

import java.io.File;
import java.util.ArrayList;
import java.util.List;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.hudi.common.model.EmptyHoodieRecordPayload;
import org.apache.hudi.common.model.HoodieAvroRecord;
import org.apache.hudi.common.model.HoodieKey;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieRecordLocation;
import org.apache.hudi.common.model.OverwriteWithLatestAvroPayload;

public class LakehubRecords {
    public static List read(String path) throws java.io.IOException {
        ArrayList records = new ArrayList();
        DataFileReader placed = new DataFileReader(new File(path), new GenericDatumReader());
        try {
            while (placed.hasNext()) {
                records.add(record((GenericRecord) placed.next()));
            }
        } finally {
            placed.close();
        }
        return records;
    }

    static HoodieRecord record(GenericRecord placed) {
        HoodieKey key = new HoodieKey(placed.get("key").toString(), placed.get("partition").toString());
        GenericRecord row = (GenericRecord) placed.get("row");
        HoodieRecord record = row == null
            ? new HoodieAvroRecord(key, new EmptyHoodieRecordPayload())
            : new HoodieAvroRecord(key, new OverwriteWithLatestAvroPayload(row, Integer.valueOf(0)));
        Object fileId = placed.get("file_id");
        if (fileId != null) {
            record.setCurrentLocation(new HoodieRecordLocation("0", fileId.toString()));
        }
        return record;
    }
}
"""


class RowsNotWritten(RuntimeError):
    """The table format could not write some rows; none was committed."""


class PlacedRow(NamedTuple):
    """What becomes of a key in one place. `file_id` None: it is new there. `row` None: it is removed from there.

    `row` has all columns of the table; dates are days and timestamps microseconds since 1970.
    """

    key: str
    partition: str
    file_id: str | None
    row: Mapping[str, Any] | None

    @classmethod
    def removed(cls, key: str, group: FileGroup) -> PlacedRow:
        return cls(key, group.partition, group.file_id, None)


def write_rows(
    spark: SparkSession,
    table: TableSpec,
    rows: Iterable[PlacedRow],
    avro_schema: str,
    options: Mapping[str, str],
    marks: Mapping[str, str],
) -> None:
    """One commit. `avro_schema`: the table's columns, as its newest commit has them; `marks` travel in the commit's metadata.

    Raises RowsNotWritten.
    """
    java = jvm(spark)
    define_beside(java, CLIENT, _SOURCE, marker="lakehub.records")
    placed = tuple(rows)
    with commit_client(spark, table, avro_schema, options) as client:
        with temporary_folder("rows") as folder:
            records = java.org.apache.hudi.client.LakehubRecords.read(str(_write_avro(folder, placed, avro_schema)))
        instant = client.startCommit()
        written = client.upsertPreppedRecords(records, instant)
        merges = _FileMerges(java, client, table.uri, instant, placed, avro_schema)
        written = java_list(java, [*written, *merges.write()])
        require_all_written(written, table)
        failpoint.reach(FAILPOINT)
        client.commit(instant, written, java.org.apache.hudi.common.util.Option.of(java_map(java, marks)))


def require_all_written(statuses: Iterable[Any], table: TableSpec) -> None:
    """Hudi notes a row that it could not write in the status of its file, and goes on: committed, the row would be lost."""
    failed = {status.getFileId(): status.getTotalErrorRecords() for status in statuses if status.hasErrors()}
    if failed:
        raise RowsNotWritten(
            f"Hudi could not write {sum(failed.values())} of the rows of `{table.name}` to the file groups {', '.join(sorted(failed))}; nothing was committed. "
            "The log of the job's JVM says why."
        )


def _write_avro(folder: Path, rows: Iterable[PlacedRow], avro_schema: str) -> Path:
    """The rows with their places as one Avro file, which the JVM reads in one call."""
    fields = [
        {"name": "key", "type": "string"},
        {"name": "partition", "type": "string"},
        {"name": "file_id", "type": ["null", "string"]},
        {"name": "row", "type": ["null", json.loads(avro_schema)]},
    ]
    placed = fastavro.parse_schema({"type": "record", "name": "PlacedRow", "namespace": "lakehub", "fields": fields})
    path = folder / "rows.avro"
    with path.open("wb") as file:
        fastavro.writer(file, placed, (row._asdict() for row in rows))
    return path


class _FileMerges:
    """Of the commit `instant` by `client`, to the table at `uri`. `rows`: all of the commit, in the order in which the client got them."""

    def __init__(
        self, java: Any, client: Any, uri: str, instant: str, rows: Sequence[PlacedRow], avro_schema: str
    ) -> None:
        self._java, self._client, self._instant, self._rows = java, client, instant, rows
        self._filesystem, self._root = open_storage(uri)
        schema = avro.schema_of(avro_schema, without=META_COLUMNS)
        self._columns = None if schema is None else pa.schema([(n, arrow_type(t)) for n, t in schema.types.items()])

    def write(self) -> Iterator[Any]:
        """The statuses of the files. Raises RowsNotMet."""
        files = self._client.pending()
        can_rewrite = files and self._columns is not None and self._client.canRewrite()
        by_hudi, rewrites = [], []
        for number, file in enumerate(files):
            begun = self._begin(file, number) if can_rewrite else None
            if begun is None:
                by_hudi.append(file)
            else:
                rewrites.append(begun)
        if by_hudi:
            yield from self._client.merge(java_list(self._java, by_hudi))
        if not rewrites:
            return
        with ThreadPoolExecutor(min(MAX_MERGES, os.cpu_count() or 1)) as at_once:
            written = at_once.map(lambda begun: rewrite_file(self._filesystem, begun[1]), rewrites)
            for (handle, _), rows in zip(rewrites, written, strict=True):
                handle.end(rows)
        yield from self._client.statuses(java_list(self._java, (handle for handle, _ in rewrites)))

    def _begin(self, file: Any, number: int) -> tuple[Any, FileRewrite] | None:
        """Hudi's handle, which has left its marker, and what is to be written. None: it is Hudi's."""
        assert self._columns is not None
        folder = "/".join(filter(None, (self._root, file.partition())))
        footer = footer_to_rewrite(self._filesystem, f"{folder}/{file.oldName()}", self._columns)
        if footer is None:
            return None
        handle = self._client.rewrite(file)
        rows = [self._rows[int(place)] for place in file.rows().split(",")]
        added = {row.key: row.row for row in rows if row.file_id is None}
        own = {AVRO_SCHEMA: handle.schema().encode()}
        if added and BLOOM_FILTER in footer.own:
            known, type_ = (footer.own[name].decode() for name in (BLOOM_FILTER, FILTER_TYPE))
            own[BLOOM_FILTER] = handle.bloomFilter(known, type_).encode()
        changed = {row.key: row.row for row in rows if row.file_id is not None}
        old, new = (f"{folder}/{name}" for name in (file.oldName(), handle.newName()))
        was_changed, is_new = (rows_by_key(each, self._columns) for each in (changed, added))
        what = FileRewrite(old, new, file.partition(), self._instant, number, self._columns, was_changed, is_new, own)
        return handle, what
