"""Which keys a file gets, loses, or has with another row: written by the task that writes the file, and read by Hudi for its log of changes and its index of records."""

from __future__ import annotations

from typing import Any

import fastavro
import pyarrow as pa

from ingestion.spark.compiled_java import define_beside
from ingestion.spark.file_groups import FileGroup
from ingestion.spark.file_groups.java_client import CLIENT
from ingestion.spark.file_groups.rewriting import KEY, REMOVED
from ingestion.spark.tables.timeline import open_storage

NEW = "_lakehub_new_row"
"""Of a row: whether the file gets it now."""
_CHANGED_KEYS = fastavro.parse_schema(
    {
        "type": "record",
        "name": "ChangedKey",
        "namespace": "lakehub",
        "fields": [
            {"name": "key", "type": "string"},
            {"name": "is_new", "type": "boolean"},
            {"name": "is_removed", "type": "boolean"},
        ],
    }
)
_SOURCE = r"""
package org.apache.hudi.client;

import java.io.IOException;
import java.util.Iterator;
import org.apache.avro.file.DataFileStream;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.hudi.common.model.EmptyHoodieRecordPayload;
import org.apache.hudi.common.model.HoodieAvroRecord;
import org.apache.hudi.common.model.HoodieKey;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieRecordLocation;
import org.apache.hudi.common.model.OverwriteWithLatestAvroPayload;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.exception.HoodieIOException;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.StoragePath;

public class LakehubChangedKeys implements Iterable {
    private final HoodieStorage storage;
    private final String path;
    private final String partition;
    private final String fileId;

    public LakehubChangedKeys(HoodieStorage storage, String path, String partition, String fileId) {
        this.storage = storage;
        this.path = path;
        this.partition = partition;
        this.fileId = fileId;
    }

    public Iterator iterator() {
        try {
            return new Reading(new DataFileStream(storage.open(new StoragePath(path)), new GenericDatumReader()));
        } catch (IOException e) {
            throw unreadable(e);
        }
    }

    HoodieIOException unreadable(IOException e) {
        return new HoodieIOException("What becomes of the keys of " + fileId + " cannot be read from " + path, e);
    }

    HoodieRecord record(GenericRecord row) {
        HoodieKey key = new HoodieKey(row.get("key").toString(), partition);
        HoodieRecord record = Boolean.TRUE.equals(row.get("is_removed"))
            ? new HoodieAvroRecord(key, new EmptyHoodieRecordPayload())
            : new HoodieAvroRecord(key, new OverwriteWithLatestAvroPayload(Option.empty()));
        if (!Boolean.TRUE.equals(row.get("is_new"))) {
            record.setCurrentLocation(new HoodieRecordLocation("0", fileId));
        }
        return record;
    }

    /** The file is closed when all are read. */
    class Reading implements Iterator {
        private final DataFileStream file;

        Reading(DataFileStream file) {
            this.file = file;
        }

        public boolean hasNext() {
            boolean more = file.hasNext();
            if (!more) {
                try {
                    file.close();
                } catch (IOException e) {
                    throw unreadable(e);
                }
            }
            return more;
        }

        public Object next() {
            return record((GenericRecord) file.next());
        }

        public void remove() {
            throw new UnsupportedOperationException();
        }
    }
}
"""


def write_changed_keys(uri: str, rows: pa.Table) -> None:
    """`rows`: KEY, NEW and REMOVED."""
    keys = zip(*(rows[name].to_pylist() for name in (KEY, NEW, REMOVED)), strict=True)
    filesystem, path = open_storage(uri)
    with filesystem.open_output_stream(path) as file:
        fastavro.writer(
            file, _CHANGED_KEYS, ({"key": key, "is_new": new, "is_removed": removed} for key, new, removed in keys)
        )


def read_changed_keys(java: Any, storage: Any, uri: str, group: FileGroup) -> Any:
    """Hudi's records of the keys, without rows, as often as they are asked for. `storage`: Hudi's, of the table."""
    define_beside(java, CLIENT, _SOURCE, marker="lakehub.changed_keys")
    return java.org.apache.hudi.client.LakehubChangedKeys(storage, uri, *group)
