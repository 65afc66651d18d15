"""How Hudi reads the keys of a file for its record index: by column, and not as whole records."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from ingestion.spark.compiled_java import define_beside
from ingestion.spark.file_groups.lookups import storage_configuration
from ingestion.spark.session import jvm

_NEIGHBOUR = "org.apache.hudi.client.HoodieJavaWriteClient"
_FILES = "org.apache.hudi.client.LakehubFiles"
_SOURCE = r"""
package org.apache.hudi.client;

import java.io.IOException;
import java.util.HashSet;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.common.model.HoodieFileFormat;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.util.FileFormatUtils;
import org.apache.hudi.common.util.ParquetUtils;
import org.apache.hudi.exception.HoodieIOException;
import org.apache.hudi.io.storage.hadoop.HoodieHadoopIOFactory;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.StoragePath;
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

public class LakehubFiles extends HoodieHadoopIOFactory {
    public LakehubFiles(HoodieStorage storage) {
        super(storage);
    }

    public FileFormatUtils getFileFormatUtils(HoodieFileFormat format) {
        return format == HoodieFileFormat.PARQUET ? new Keys() : super.getFileFormatUtils(format);
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


def files_configuration(spark: SparkSession) -> Any:
    """Hadoop's settings of the session, with which keys are read by column."""
    define_beside(jvm(spark), _NEIGHBOUR, _SOURCE, marker="lakehub.files")
    configuration = storage_configuration(spark).newInstance()
    configuration.set("hoodie.io.factory.class", _FILES)
    return configuration
