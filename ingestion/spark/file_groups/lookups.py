"""What Hudi knows of a table's file groups, asked in this JVM: the answer of a look-up comes in one call, however many keys it has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from typing import Any

from pyspark.sql import SparkSession

from ingestion.spark.compiled_java import define_beside
from ingestion.spark.file_groups import BaseFile, FileGroup
from ingestion.spark.session import jvm

SEPARATOR = "\0"
"""Between the keys of a question, and between the parts of an answer, of which each has as many. No path has it, and keys that have it are not asked for."""
ASK_BY_BLOCK = {"hoodie.metadata.file.cache.max.size.mb": "0"}
"""Of a file of the metadata table only the blocks are read that may hold what is asked for; Hudi reads all of one of up to 50 MB."""
_SOURCE = r"""
package org.apache.hudi.client;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashSet;
import org.apache.hudi.common.data.HoodieListData;
import org.apache.hudi.common.model.HoodieBaseFile;
import org.apache.hudi.common.model.HoodieRecordGlobalLocation;
import org.apache.hudi.common.table.view.HoodieTableFileSystemView;
import org.apache.hudi.common.util.collection.Pair;
import org.apache.hudi.metadata.HoodieBackedTableMetadata;

public class LakehubLookups {
    public static String fileGroups(HoodieBackedTableMetadata metadata, String keys) {
        HoodieListData asked = HoodieListData.eager(Arrays.asList(keys.split("\0", -1)));
        LinkedHashSet groups = new LinkedHashSet();
        Iterator pairs = metadata.readRecordIndexLocationsWithKeys(asked).collectAsList().iterator();
        while (pairs.hasNext()) {
            HoodieRecordGlobalLocation at = (HoodieRecordGlobalLocation) ((Pair) pairs.next()).getRight();
            groups.add(at.getPartitionPath() + "\0" + at.getFileId());
        }
        return String.join("\0", groups);
    }

    public static String baseFiles(HoodieTableFileSystemView view, String partitions) {
        ArrayList files = new ArrayList();
        String[] paths = partitions.split("\0", -1);
        for (int place = 0; place < paths.length; place++) {
            Iterator newest = view.getLatestBaseFiles(paths[place]).iterator();
            while (newest.hasNext()) {
                HoodieBaseFile file = (HoodieBaseFile) newest.next();
                files.add(paths[place] + "\0" + file.getFileId() + "\0" + file.getFileName() + "\0" + file.getFileSize());
            }
        }
        return String.join("\0", files);
    }
}
"""


def newest_base_files(spark: SparkSession, uri: str, partitions: Collection[str]) -> list[BaseFile]:
    """Of the committed files of the partitions with these paths the newest of each group. A partition that is not there has none."""
    if not partitions:
        return []
    java = _java(spark)
    client = meta_client(spark, uri)
    completed = client.getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
    views = java.org.apache.hudi.common.table.view.HoodieTableFileSystemView
    view = views.fileListingBasedFileSystemView(_local_engine(spark), client, completed)
    with closing(view):
        answer = java.org.apache.hudi.client.LakehubLookups.baseFiles(view, SEPARATOR.join(sorted(partitions)))
    rows = _rows(answer, parts=4)
    return [BaseFile(FileGroup(partition, file_id), name, int(size)) for partition, file_id, name, size in rows]


def newest_files_of(spark: SparkSession, uri: str, groups: Collection[FileGroup]) -> list[BaseFile]:
    """The same, of these groups only."""
    files = newest_base_files(spark, uri, {group.partition for group in groups})
    return [file for file in files if file.group in groups]


def partition_paths(spark: SparkSession, uri: str) -> list[str]:
    """Of all partitions of the table, by a walk through its folders."""
    hudi = _java(spark).org.apache.hudi
    config = hudi.common.config.HoodieMetadataConfig.newBuilder().enable(False).build()
    return [*hudi.common.fs.FSUtils.getAllPartitionPaths(_local_engine(spark), meta_client(spark, uri), config)]


def file_groups_of_keys(spark: SparkSession, uri: str, keys: Iterable[str]) -> set[FileGroup]:
    """The groups in which the keys lie, as the record index of the table's metadata table has them. Keys are as Hudi writes them."""
    text = SEPARATOR.join(keys)
    if not text:
        return set()
    java = _java(spark)
    hudi = java.org.apache.hudi
    properties = java.java.util.Properties()
    for name, value in ASK_BY_BLOCK.items():
        properties.setProperty(name, value)
    config = hudi.common.config.HoodieMetadataConfig.newBuilder().fromProperties(properties).enable(True).build()
    storage = meta_client(spark, uri).getStorage()
    metadata = hudi.metadata.HoodieBackedTableMetadata(_local_engine(spark), storage, config, uri)
    with closing(metadata):
        return {FileGroup(*row) for row in _rows(hudi.client.LakehubLookups.fileGroups(metadata, text), parts=2)}


def _rows(answer: str, *, parts: int) -> Iterator[tuple[str, ...]]:
    words = iter(answer.split(SEPARATOR) if answer else ())
    return zip(*(words for _ in range(parts)), strict=True)


def _java(spark: SparkSession) -> Any:
    java: Any = jvm(spark)
    define_beside(java, "org.apache.hudi.client.WriteStatus", _SOURCE, marker="lakehub.lookups")
    return java


def meta_client(spark: SparkSession, uri: str) -> Any:
    """Hudi's own view of the table at `uri`, as it is now."""
    client = jvm(spark).org.apache.hudi.common.table.HoodieTableMetaClient.builder()
    return client.setConf(storage_configuration(spark)).setBasePath(uri).build()


def storage_configuration(spark: SparkSession) -> Any:
    """Hadoop's settings of the session, as Hudi takes them."""
    context: Any = spark.sparkContext
    return jvm(spark).org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(context._jsc.hadoopConfiguration())


def _local_engine(spark: SparkSession) -> Any:
    return jvm(spark).org.apache.hudi.common.engine.HoodieLocalEngineContext(storage_configuration(spark))
