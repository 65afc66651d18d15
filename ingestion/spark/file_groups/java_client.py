"""Hudi's Java write client, which hands over the files that are to be written anew: to who writes them by columns, or to Hudi, several side by side.

Hudi merges one after the other, record by record.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from ingestion.spark.compiled_java import class_of, define_beside
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups.java_files import files_configuration
from ingestion.spark.session import jvm
from ingestion.spark.tables import growing_time, hudi
from ingestion.spark.tables.failed_write import clean_up_failed_write
from ingestion.spark.tables.timeline import Timeline

MAX_MERGES = 4
"""At once, in the driver: each holds up to a group of rows in memory."""
CLIENT = "org.apache.hudi.client.HoodieJavaWriteClient"
_SOURCE = r"""
package org.apache.hudi.client;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.hudi.client.common.HoodieJavaEngineContext;
import org.apache.hudi.common.bloom.BloomFilter;
import org.apache.hudi.common.bloom.BloomFilterFactory;
import org.apache.hudi.common.data.HoodieListData;
import org.apache.hudi.common.engine.HoodieEngineContext;
import org.apache.hudi.common.engine.TaskContextSupplier;
import org.apache.hudi.common.model.EmptyHoodieRecordPayload;
import org.apache.hudi.common.model.HoodieBaseFile;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.model.HoodieWriteStat;
import org.apache.hudi.common.model.WriteOperationType;
import org.apache.hudi.common.table.HoodieTableConfig;
import org.apache.hudi.common.table.cdc.HoodieCDCSupplementalLoggingMode;
import org.apache.hudi.common.table.cdc.HoodieCDCUtils;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.exception.HoodieIOException;
import org.apache.hudi.io.HoodieAbstractMergeHandle;
import org.apache.hudi.io.HoodieCDCLogger;
import org.apache.hudi.io.HoodieMergeHandle;
import org.apache.hudi.io.IOUtils;
import org.apache.hudi.table.HoodieTable;
import org.apache.hudi.table.action.commit.JavaUpsertPreppedCommitActionExecutor;

public class LakehubWriteClient extends HoodieJavaWriteClient {
    private final int threads;

    public LakehubWriteClient(HoodieEngineContext context, HoodieWriteConfig config, int threads) {
        super(context, config);
        this.threads = threads;
    }

    private Upsert upsert;

    /** The statuses of new files. The files of groups that get records are `pending`. */
    public List upsertPreppedRecords(List records, String instant) {
        WriteOperationType operation = WriteOperationType.UPSERT_PREPPED;
        HoodieTable table = initTable(operation, Option.ofNullable(instant));
        table.validateUpsertSchema();
        preWrite(instant, operation, table.getMetaClient(), Option.of(HoodieListData.eager(records)));
        if (table.getMetaClient().getTableType() != HoodieTableType.COPY_ON_WRITE) {
            return (List) postWrite(table.upsertPrepped(context, instant, records), instant, table);
        }
        upsert = new Upsert((HoodieJavaEngineContext) context, config, table, instant, records);
        return (List) postWrite(upsert.execute(), instant, table);
    }

    /** The log of changes, if there is one, holds keys only, and so can be written by who does not read the rows. */
    public boolean canRewrite() {
        HoodieTableConfig table = upsert.table().getMetaClient().getTableConfig();
        return table.populateMetaFields() && (!table.isCDCEnabled() || table.cdcSupplementalLoggingMode() == HoodieCDCSupplementalLoggingMode.OP_KEY_ONLY);
    }

    public List pending() {
        return upsert == null ? Collections.emptyList() : upsert.pending;
    }

    /** Row by row, as Hudi does. */
    public List merge(List files) throws Exception {
        return upsert.merge(files, threads);
    }

    public Rewrite rewrite(PendingFile file) {
        return upsert.rewrite(file);
    }

    /** A commit whose files are all written by somebody else. */
    public void begin(String instant) {
        upsertPreppedRecords(new ArrayList(), instant);
    }

    /** Which keys change is told when it has ended. */
    public Rewrite rewrite(String partition, String fileId) {
        return upsert.rewrite(partition, fileId);
    }

    /** Of rewrites that have ended. */
    public List statuses(List rewrites) throws Exception {
        return callAll(rewrites, threads);
    }

    static List callAll(List tasks, int threads) throws Exception {
        ExecutorService workers = Executors.newFixedThreadPool(threads);
        try {
            List statuses = new ArrayList();
            Iterator called = workers.invokeAll(tasks).iterator();
            while (called.hasNext()) {
                statuses.addAll((List) ((Future) called.next()).get());
            }
            return statuses;
        } finally {
            workers.shutdown();
        }
    }

    /** A file group that gets records: `rows` are their places in what was given to the upsert. */
    public static class PendingFile {
        final String partition;
        final String fileId;
        final List records;
        final String rows;
        final HoodieBaseFile file;

        PendingFile(String partition, String fileId, HoodieBaseFile file, List records, String rows) {
            this.file = file;
            this.partition = partition;
            this.fileId = fileId;
            this.records = records;
            this.rows = rows;
        }

        public String partition() {
            return partition;
        }

        public String oldName() {
            return file.getFileName();
        }

        public String rows() {
            return rows;
        }
    }

    static class Upsert extends JavaUpsertPreppedCommitActionExecutor {
        final List pending = new ArrayList();
        private final IdentityHashMap places = new IdentityHashMap();

        Upsert(HoodieJavaEngineContext context, HoodieWriteConfig config, HoodieTable table, String instant, List records) {
            super(context, config, table, instant, records);
            for (int place = 0; place < records.size(); place++) {
                places.put(records.get(place), String.valueOf(place));
            }
        }

        public Iterator handleUpdate(String partition, String fileId, Iterator records) {
            List own = new ArrayList();
            List rows = new ArrayList();
            while (records.hasNext()) {
                Object record = records.next();
                own.add(record);
                rows.add(places.get(record));
            }
            if (!own.isEmpty()) {
                pending.add(new PendingFile(partition, fileId, HoodieAbstractMergeHandle.getLatestBaseFile(table, partition, fileId), own, String.join(",", rows)));
            }
            return Collections.emptyIterator();
        }

        /** As many files as there are threads are opened, one after the other, since opening one changes Hudi's settings; then they are merged. */
        List merge(List files, int threads) throws Exception {
            List statuses = new ArrayList();
            for (int from = 0; from < files.size(); from += threads) {
                List opened = new ArrayList();
                for (int place = from; place < Math.min(from + threads, files.size()); place++) {
                    PendingFile file = (PendingFile) files.get(place);
                    opened.add(new Merge(getUpdateHandle(file.partition, file.fileId, file.records.iterator()), instantTime, file.fileId));
                }
                statuses.addAll(callAll(opened, threads));
            }
            return statuses;
        }

        HoodieTable table() {
            return table;
        }

        Rewrite rewrite(PendingFile file) {
            return new Rewrite(config, instantTime, table, file.partition, file.fileId, file.file, file.records, taskContextSupplier);
        }

        Rewrite rewrite(String partition, String fileId) {
            HoodieBaseFile file = HoodieAbstractMergeHandle.getLatestBaseFile(table, partition, fileId);
            return new Rewrite(config, instantTime, table, partition, fileId, file, Collections.emptyList(), taskContextSupplier);
        }
    }

    static class Merge implements Callable {
        private final HoodieMergeHandle file;
        private final String instant;
        private final String fileId;

        Merge(HoodieMergeHandle file, String instant, String fileId) {
            this.file = file;
            this.instant = instant;
            this.fileId = fileId;
        }

        public Object call() throws Exception {
            List statuses = new ArrayList();
            Iterator merged = IOUtils.runMerge(file, instant, fileId);
            while (merged.hasNext()) {
                statuses.addAll((List) merged.next());
            }
            return statuses;
        }
    }

    /** What Hudi has to know of a file that somebody else writes: its marker before, and its numbers and its log of changes after. */
    public static class Rewrite extends HoodieAbstractMergeHandle implements Callable {
        private final String oldName;
        private Iterable records;
        private long written;

        Rewrite(HoodieWriteConfig config, String instant, HoodieTable table, String partition, String fileId, HoodieBaseFile file, Iterable records, TaskContextSupplier tasks) {
            super(config, instant, table, partition, fileId, tasks, file, Option.empty(), false);
            this.oldName = file.getFileName();
            this.records = records;
            createMarkerFile(partitionPath, newFilePath.getName());
        }

        public String oldName() {
            return oldName;
        }

        public String newName() {
            return newFilePath.getName();
        }

        public String schema() {
            return writeSchemaWithMetaFields.toString();
        }

        /** The keys of the file as a Bloom filter: those of the old one, and the new ones. */
        public String bloomFilter(String old, String type) {
            BloomFilter filter = BloomFilterFactory.fromString(old, type);
            Iterator each = records.iterator();
            while (each.hasNext()) {
                HoodieRecord record = (HoodieRecord) each.next();
                if (record.getCurrentLocation() == null) {
                    filter.add(record.getRecordKey());
                }
            }
            return filter.serializeToString();
        }

        /** A small filter that says "perhaps" of any key, whatever is added to the file. */
        public String filterOfAnyKey(String old, String type) {
            BloomFilter filter = BloomFilterFactory.fromString(old, type);
            for (int number = 0; number < 10000; number++) {
                filter.add(String.valueOf(number));
            }
            return filter.serializeToString();
        }

        /** `rows`: how many the file has now. */
        public void end(long rows) {
            written = rows;
        }

        /** `changes`: a record for each key that changes, without its row. */
        public void end(long rows, Iterable changes) {
            written = rows;
            records = changes;
        }

        public Object call() throws IOException {
            return close();
        }

        public List close() {
            try {
                long inserts = 0;
                long updates = 0;
                long deletes = 0;
                Iterator each = records.iterator();
                while (each.hasNext()) {
                    HoodieRecord record = (HoodieRecord) each.next();
                    if (isDeleted(record)) {
                        deletes++;
                    } else {
                        if (record.getCurrentLocation() == null) {
                            inserts++;
                        } else {
                            updates++;
                        }
                        record.unseal();
                        record.setNewLocation(newRecordLocation);
                        record.seal();
                    }
                    writeStatus.markSuccess(record, Option.empty());
                }
                HoodieWriteStat stat = writeStatus.getStat();
                long size = storage.getPathInfo(newFilePath).getLength();
                stat.setTotalWriteBytes(size);
                stat.setFileSizeInBytes(size);
                stat.setNumWrites(written);
                stat.setNumDeletes(deletes);
                stat.setNumUpdateWrites(updates);
                stat.setNumInserts(inserts);
                HoodieWriteStat.RuntimeStats times = new HoodieWriteStat.RuntimeStats();
                times.setTotalUpsertTime(timer.endTimer());
                stat.setRuntimeStats(times);
                if (hoodieTable.getMetaClient().getTableConfig().isCDCEnabled()) {
                    logChanges(stat);
                }
                return Collections.singletonList(writeStatus);
            } catch (IOException e) {
                throw new HoodieIOException("What became of " + newFilePath + " could not be told", e);
            }
        }

        /** Keys only: `canRewrite`. */
        private void logChanges(HoodieWriteStat stat) throws IOException {
            HoodieCDCLogger log = new HoodieCDCLogger(instantTime, config, hoodieTable.getMetaClient().getTableConfig(), partitionPath, storage,
                getWriterSchema(), createLogWriter(instantTime, HoodieCDCUtils.CDC_LOGFILE_SUFFIX, Option.empty()),
                IOUtils.getMaxMemoryPerPartitionMerge(taskContextSupplier, config));
            GenericRecord some = new GenericData.Record(getWriterSchema().toAvroSchema());
            Iterator each = records.iterator();
            while (each.hasNext()) {
                HoodieRecord record = (HoodieRecord) each.next();
                log.put(record.getRecordKey(), record.getCurrentLocation() == null ? null : some, isDeleted(record) ? Option.empty() : Option.of(some));
            }
            log.close();
            stat.setCdcStats(log.getCDCWriteStats());
        }

        private static boolean isDeleted(HoodieRecord record) {
            return record.getData() instanceof EmptyHoodieRecordPayload;
        }

        public void doMerge() {
            throw new UnsupportedOperationException("The file is written by somebody else");
        }
    }
}
"""


def has_client(spark: SparkSession) -> bool:
    """Is the client's jar there? A Spark of its own may have been given Hudi's bundle only."""
    try:
        class_of(jvm(spark), CLIENT)
    except Py4JJavaError:
        return False
    return True


def open_client(spark: SparkSession, table: TableSpec, avro_schema: str, options: Mapping[str, str]) -> Any:
    java: Any = jvm(spark)
    define_beside(java, CLIENT, _SOURCE, marker="lakehub.client")
    hudi_java = java.org.apache.hudi
    given = {**hudi.table_options(table, parallelism=1), **options, "hoodie.index.type": "INMEMORY"}
    config = hudi_java.config.HoodieWriteConfig.newBuilder()
    config = config.withPath(table.uri).withSchema(avro_schema).forTable(table.name)
    config = config.withProps(java_map(java, given)).withEngineType(hudi_java.common.engine.EngineType.JAVA).build()
    engine = hudi_java.client.common.HoodieJavaEngineContext(files_configuration(spark))
    threads = min(spark.sparkContext.defaultParallelism, os.cpu_count() or 1, MAX_MERGES)
    return hudi_java.client.LakehubWriteClient(engine, config, threads)


@contextmanager
def commit_client(spark: SparkSession, table: TableSpec, avro_schema: str, options: Mapping[str, str]) -> Iterator[Any]:
    """For one commit. Where it fails, what it has left is no hindrance to the next writer."""
    latest = growing_time.go_on_after_latest(spark, table.uri)
    client = open_client(spark, table, avro_schema, options)
    try:
        yield client
    except Exception:
        client.close()
        clean_up_failed_write(spark, Timeline(table.uri), after=latest)
        raise
    client.close()


def java_list(java: Any, values: Iterable[Any]) -> Any:
    filled = java.java.util.ArrayList()
    for value in values:
        filled.add(value)
    return filled


def java_map(java: Any, entries: Mapping[str, str]) -> Any:
    filled = java.java.util.HashMap()
    for name, value in entries.items():
        filled.put(name, value)
    return filled
