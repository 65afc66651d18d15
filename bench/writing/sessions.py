"""The Spark sessions of the bench: one for each writer, so that none runs what another has warmed up, and none has another's file system."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from ingestion.spark.session import close_session, jvm, open_session


@contextmanager
def session() -> Iterator[SparkSession]:
    spark = open_session("bench", memory="3g")
    try:
        yield spark
    finally:
        close_session(spark)


def use_hadoops_files(spark: SparkSession) -> None:
    """As in a session that nobody has prepared: who asks for the file system of local files from here on gets Hadoop's own."""
    jvm(spark).org.apache.hadoop.fs.FileSystem.closeAll()
