"""`python -m tests.services.spark_stream BROKERS TOPIC FOLDER JARS`: a stream of Spark that reads the changes of trips from a changelog in Kafka.

What is in the topic is appended to FOLDER/changes, each message once, and it ends. It goes on from where it ended.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from ingestion.domain.merging.events import Operation
from lakehub.setup.java import java_home
from tests.services.trips_in_kafka import DECODER, TRIPS


def decoded(batches: Iterable[Any]) -> Iterable[Any]:
    for batch in batches:
        events = [DECODER.decode(message["value"], (message["offset"],)).event for message in batch.to_pylist()]
        rows = [
            {**dict(event.values), "id": event.row_key[0], "reference_key": event.reference_key, "is_deleted": event.operation is Operation.DELETE}
            for event in events
        ]  # fmt: skip
        yield pa.RecordBatch.from_pylist(rows, TRIPS)


def main(brokers: str, topic: str, folder: str, jars: str) -> None:
    os.environ |= {
        "JAVA_HOME": str(java_home(os.environ)),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    settings: dict[str, bool | float | int | str | None] = {
        "spark.jars": jars,
        "spark.driver.memory": "512m",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.master("local[1]").config(map=settings)
    stream = builder.getOrCreate().readStream.format("kafka").options(
        subscribe=topic, startingOffsets="earliest", **{"kafka.bootstrap.servers": brokers, "kafka.isolation.level": "read_committed"}
    )  # fmt: skip
    changes = stream.load().mapInArrow(
        decoded, "id bigint, city string, fare decimal(8,2), reference_key bigint, is_deleted boolean"
    )
    written = changes.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
    written.trigger(availableNow=True).start(f"{folder}/changes").awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
