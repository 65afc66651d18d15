"""The Spark session of a contender: the settings that Lakehub's own session has on one machine, for everybody the same."""

from __future__ import annotations

from typing import Any

SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:+UseSerialGC",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def open_spark(**more: str) -> Any:
    """Needs JAVA_HOME."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("bench")
    for key, value in {**SETTINGS, **{name.replace("_", "."): value for name, value in more.items()}}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
