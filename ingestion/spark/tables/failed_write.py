"""What a write that failed leaves to the next one: no file that cannot be read, and no heartbeat that says that it goes on.

The table format does neither. Where a disk is full it renames what it could write of a file to the file's name, and the table cannot
be read again; and after an error that is not one of its own the writer's heartbeat goes on for as long as the JVM.
"""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from ingestion.spark.session import set_unusable
from ingestion.spark.tables.timeline import Timeline
from ingestion.spark.tables.unfinished_writes import pending_writes, remove_file, torn_files

logger = logging.getLogger(__name__)


def clean_up_failed_write(spark: SparkSession, timeline: Timeline, *, after: str) -> None:
    """Called within the fence, so that what is newer than `after`, the latest time before the write, is that write's."""
    try:
        remove_torn_files(timeline, after=after)
        alive = [instant for instant, beat in pending_writes(timeline).items() if instant > after and beat]
    except OSError:
        logger.exception("What the failed write to %s has left cannot be looked at", timeline.uri)
        return
    if alive:
        set_unusable(spark, f"its write {alive[-1]} of {timeline.uri} failed, and has a heartbeat still")


def remove_torn_files(timeline: Timeline, *, after: str) -> None:
    """They were never whole, and without them the write is one that did not end, which the next writer rolls back. Raises OSError."""
    for name in torn_files(timeline, after=after):
        remove_file(timeline, name)
        logger.error("The file %s/%s was cut off when its write failed: it is removed", timeline.uri, name)
