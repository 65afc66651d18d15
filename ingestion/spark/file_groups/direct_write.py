"""A commit of a few rows by Hudi's own Java write client, in the driver's JVM: no Spark job.

Each row comes with its place, so nothing is looked up. The table is the same as Spark's writer would leave it: one format, one timeline,
one lock, and the metadata table with its record index is kept up.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
from pyspark.sql import SparkSession

from ingestion.spark.compiled_java import define_beside
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import FileGroup
from ingestion.spark.file_groups.java_client import CLIENT, java_map, open_client
from ingestion.spark.session import jvm
from ingestion.spark.tables import growing_time
from ingestion.spark.tables.commit_failpoint import FAILPOINT
from ingestion.spark.tables.failed_write import clean_up_failed_write
from ingestion.spark.tables.timeline import Timeline
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
    latest = growing_time.go_on_after_latest(spark, table.uri)
    java = jvm(spark)
    define_beside(java, CLIENT, _SOURCE, marker="lakehub.records")
    client = open_client(spark, table, avro_schema, options)
    try:
        with temporary_folder("rows") as folder:
            records = java.org.apache.hudi.client.LakehubRecords.read(str(_write_avro(folder, rows, avro_schema)))
        instant = client.startCommit()
        written = client.upsertPreppedRecords(records, instant)
        require_all_written(written, table)
        failpoint.reach(FAILPOINT)
        client.commit(instant, written, java.org.apache.hudi.common.util.Option.of(java_map(java, marks)))
    except Exception:
        client.close()
        clean_up_failed_write(spark, Timeline(table.uri), after=latest)
        raise
    client.close()


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
