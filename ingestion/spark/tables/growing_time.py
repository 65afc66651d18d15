"""The times by which Hudi names commits and orders them grow with each, also where the machine's clock was set back.

Hudi names a commit by the clock. It waits until that is later than the last name that this JVM has given, for hours where the clock was
hours ahead; and a JVM that has given none would name a commit earlier than those of the table, behind which its rows were hidden.
So the factory of Hudi's clocks is replaced, before its class is loaded: a clock of ours asks Hudi's own, with its locks and waits, and
where that is not later than the table's latest time it is a millisecond after that one.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from ingestion.spark.compiled_java import class_of, define_beside
from ingestion.spark.session import jvm
from ingestion.spark.tables.timeline import Timeline, instant_to_datetime

logger = logging.getLogger(__name__)

CLOCKS_DIFFER_BY = timedelta(seconds=10)
"""Less is not worth a word."""
_TIMELINE_PACKAGE = "org.apache.hudi.common.table.timeline"
_INSTALLED = "lakehub.growing-time"
"""A property of the JVM: the factory is ours."""
_SOURCE = """
package org.apache.hudi.common.table.timeline;

import java.io.Serializable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.apache.hudi.common.config.HoodieTimeGeneratorConfig;
import org.apache.hudi.storage.StorageConfiguration;

public class TimeGenerators {
    /** The latest time of each table that this JVM writes; its metadata table has the same. */
    static final ConcurrentHashMap LATEST = new ConcurrentHashMap();

    public static TimeGenerator getTimeGenerator(HoodieTimeGeneratorConfig config, StorageConfiguration storage) {
        return new Growing(new SkewAdjustingTimeGenerator(config, storage), table(config.getBasePath()));
    }

    public static void goOnAfter(String uri, long latest) {
        LATEST.put(table(uri), Long.valueOf(latest));
    }

    static String table(String uri) {
        return uri.replaceFirst("^[a-z0-9]+:/+", "/").replaceFirst("/+$", "").replaceFirst("/[.]hoodie/metadata$", "");
    }

    static long grown(String table, long at) {
        synchronized (LATEST) {
            Long latest = (Long) LATEST.get(table);
            long next = latest == null ? at : Math.max(at, latest.longValue() + 1);
            LATEST.put(table, Long.valueOf(next));
            return next;
        }
    }

    static class Growing implements TimeGenerator, Serializable {
        private final TimeGenerator clock;
        private final String table;

        Growing(TimeGenerator clock, String table) {
            this.clock = clock;
            this.table = table;
        }

        public long generateTime(boolean skipLocking) {
            return grown(this.table, this.clock.generateTime(skipLocking));
        }

        public void consumeTime(boolean skipLocking, final Consumer consumer) {
            final String of = this.table;
            this.clock.consumeTime(skipLocking, new Consumer() {
                public void accept(Object at) {
                    consumer.accept(Long.valueOf(grown(of, ((Long) at).longValue())));
                }
            });
        }
    }
}
"""


def go_on_after_latest(spark: SparkSession, uri: str) -> str:
    """What this JVM writes to the table at `uri` from here on is later than all that is on its timeline, whatever the clock shows.

    The latest time that is on it now; empty where there is none. Asked before each commit, within the fence: the times that the JVM has given to other tables do not matter to this one.
    """
    java: Any = jvm(spark)
    define_beside(java, f"{_TIMELINE_PACKAGE}.TimeGenerator", _SOURCE, marker=_INSTALLED)
    latest = Timeline(uri).latest_time()
    at = instant_to_datetime(latest) if latest else datetime.fromtimestamp(0, UTC)
    if at - datetime.now(UTC) > CLOCKS_DIFFER_BY:
        logger.warning(
            "The table at %s was written at %s, by a clock that was ahead: commits go on from there", uri, at
        )
    java.org.apache.hudi.common.table.timeline.TimeGenerators.goOnAfter(uri, round(at.timestamp() * 1000))
    generator = class_of(java, f"{_TIMELINE_PACKAGE}.HoodieInstantTimeGenerator")
    last_name = generator.getDeclaredField("LAST_INSTANT_TIME")
    last_name.setAccessible(True)
    last_name.get(None).set(latest or "0")
    return latest
