"""Hudi's Java write client, with two of its works done otherwise: the files of a commit are merged side by side, and of a file whose keys
the record index wants just the keys are read. Hudi merges one after the other, and reads keys as whole records.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from ingestion.spark.compiled_java import class_of, define_beside
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups.lookups import storage_configuration
from ingestion.spark.session import jvm
from ingestion.spark.tables import hudi

MAX_MERGES = 4
"""At once, in the driver: each holds up to a group of rows in memory."""
CLIENT = "org.apache.hudi.client.HoodieJavaWriteClient"
_FILES = "org.apache.hudi.client.LakehubWriteClient$Files"
_SOURCE = r"""
package org.apache.hudi.client;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.client.common.HoodieJavaEngineContext;
import org.apache.hudi.common.data.HoodieListData;
import org.apache.hudi.common.engine.HoodieEngineContext;
import org.apache.hudi.common.model.HoodieFileFormat;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.model.WriteOperationType;
import org.apache.hudi.common.util.FileFormatUtils;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.ParquetUtils;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.exception.HoodieIOException;
import org.apache.hudi.exception.HoodieUpsertException;
import org.apache.hudi.io.HoodieMergeHandle;
import org.apache.hudi.io.IOUtils;
import org.apache.hudi.io.storage.hadoop.HoodieHadoopIOFactory;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.table.HoodieTable;
import org.apache.hudi.table.action.HoodieWriteMetadata;
import org.apache.hudi.table.action.commit.JavaUpsertPreppedCommitActionExecutor;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.ColumnReader;
import org.apache.parquet.column.impl.ColumnReadStoreImpl;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.io.api.Converter;
import org.apache.parquet.io.api.GroupConverter;
import org.apache.parquet.io.api.PrimitiveConverter;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.Type;

public class LakehubWriteClient extends HoodieJavaWriteClient {
    private final int threads;

    public LakehubWriteClient(HoodieEngineContext context, HoodieWriteConfig config, int threads) {
        super(context, config);
        this.threads = threads;
    }

    public List upsertPreppedRecords(List records, String instant) {
        WriteOperationType operation = WriteOperationType.UPSERT_PREPPED;
        HoodieTable table = initTable(operation, Option.ofNullable(instant));
        table.validateUpsertSchema();
        preWrite(instant, operation, table.getMetaClient(), Option.of(HoodieListData.eager(records)));
        HoodieWriteMetadata written = table.getMetaClient().getTableType() == HoodieTableType.COPY_ON_WRITE
            ? new Upsert((HoodieJavaEngineContext) context, config, table, instant, records, threads).execute()
            : table.upsertPrepped(context, instant, records);
        return (List) postWrite(written, instant, table);
    }

    /** As many files as there are threads are opened, one after the other, since opening one changes Hudi's settings; then they are merged. */
    static class Upsert extends JavaUpsertPreppedCommitActionExecutor {
        private final List opened = new ArrayList();
        private final int threads;

        Upsert(HoodieJavaEngineContext context, HoodieWriteConfig config, HoodieTable table, String instant, List records, int threads) {
            super(context, config, table, instant, records);
            this.threads = threads;
        }

        public Iterator handleUpdate(String partition, String fileId, Iterator records) throws IOException {
            if (records.hasNext()) {
                opened.add(new Merge(getUpdateHandle(partition, fileId, records), instantTime, fileId));
            }
            return opened.size() < threads ? Collections.emptyIterator() : Collections.singletonList(mergeOpened()).iterator();
        }

        /** Hudi calls it when it has handed over all files. */
        protected List updateIndex(List statuses, HoodieWriteMetadata result) {
            statuses.addAll(mergeOpened());
            return super.updateIndex(statuses, result);
        }

        private List mergeOpened() {
            if (opened.isEmpty()) {
                return Collections.emptyList();
            }
            ExecutorService workers = Executors.newFixedThreadPool(opened.size());
            try {
                List statuses = new ArrayList();
                Iterator merged = workers.invokeAll(opened).iterator();
                while (merged.hasNext()) {
                    statuses.addAll((List) ((Future) merged.next()).get());
                }
                opened.clear();
                return statuses;
            } catch (ExecutionException e) {
                throw new HoodieUpsertException("A file could not be merged at " + instantTime, e.getCause());
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new HoodieUpsertException("Merging files was interrupted at " + instantTime, e);
            } finally {
                workers.shutdown();
            }
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

    public static class Files extends HoodieHadoopIOFactory {
        public Files(HoodieStorage storage) {
            super(storage);
        }

        public FileFormatUtils getFileFormatUtils(HoodieFileFormat format) {
            return format == HoodieFileFormat.PARQUET ? new Keys() : super.getFileFormatUtils(format);
        }
    }

    public static class Keys extends ParquetUtils {
        public Set readRowKeys(HoodieStorage storage, StoragePath path) {
            Configuration configuration = (Configuration) storage.getConf().unwrapAs(Configuration.class);
            try {
                HadoopInputFile input = HadoopInputFile.fromPath(new Path(path.toUri()), configuration);
                ParquetFileReader file = ParquetFileReader.open(input, HadoopReadOptions.builder(configuration, input.getPath()).build());
                try {
                    return keys(file);
                } finally {
                    file.close();
                }
            } catch (IOException e) {
                throw new HoodieIOException("The record keys of " + path + " could not be read", e);
            }
        }

        private static Set keys(ParquetFileReader file) throws IOException {
            MessageType schema = file.getFileMetaData().getSchema();
            MessageType wanted = new MessageType(schema.getName(), new Type[] {schema.getType(HoodieRecord.RECORD_KEY_METADATA_FIELD)});
            ColumnDescriptor column = (ColumnDescriptor) wanted.getColumns().get(0);
            file.setRequestedSchema(wanted);
            Set keys = new HashSet();
            for (PageReadStore pages = file.readNextRowGroup(); pages != null; pages = file.readNextRowGroup()) {
                ColumnReader values = new ColumnReadStoreImpl(pages, new Record(), wanted, file.getFileMetaData().getCreatedBy()).getColumnReader(column);
                for (long row = 0; row < pages.getRowCount(); row++) {
                    if (values.getCurrentDefinitionLevel() < column.getMaxDefinitionLevel()) {
                        throw new IOException("Row " + row + " has none");
                    }
                    keys.add(values.getBinary().toStringUsingUTF8());
                    values.consume();
                }
            }
            return keys;
        }
    }

    /** Parquet wants to know what to do with the values of a record: nothing, as they are asked for one by one. */
    static class Record extends GroupConverter {
        public Converter getConverter(int field) {
            return new Value();
        }

        public void start() {}

        public void end() {}
    }

    static class Value extends PrimitiveConverter {
        public void addBinary(Binary value) {}
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
    hudi_java = java.org.apache.hudi
    given = {**hudi.table_options(table, parallelism=1), **options, "hoodie.index.type": "INMEMORY"}
    config = hudi_java.config.HoodieWriteConfig.newBuilder()
    config = config.withPath(table.uri).withSchema(avro_schema).forTable(table.name)
    config = config.withProps(java_map(java, given)).withEngineType(hudi_java.common.engine.EngineType.JAVA).build()
    engine = hudi_java.client.common.HoodieJavaEngineContext(files_configuration(spark))
    threads = min(spark.sparkContext.defaultParallelism, os.cpu_count() or 1, MAX_MERGES)
    return hudi_java.client.LakehubWriteClient(engine, config, threads)


def files_configuration(spark: SparkSession) -> Any:
    """Hadoop's settings of the session, with which keys are read by column."""
    define_beside(jvm(spark), CLIENT, _SOURCE, marker="lakehub.client")
    configuration = storage_configuration(spark).newInstance()
    configuration.set("hoodie.io.factory.class", _FILES)
    return configuration


def java_map(java: Any, entries: Mapping[str, str]) -> Any:
    filled = java.java.util.HashMap()
    for name, value in entries.items():
        filled.put(name, value)
    return filled
