"""Debezium's embedded engine in a JVM of its own, which captures one table and appends its events to a file as JSON.

The Java that runs Spark has no compiler: Janino, which PySpark brings along, compiles DebeziumCapture.java when the JVM starts.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import IO, Any

from bench.harness import ChildFailed
from lakehub.setup.artifacts import ArtifactNotFetched, fetch_artifacts
from lakehub.setup.jar_list import read_jar_list
from lakehub.setup.java import java_home
from lakehub.setup.machine import scaled
from tests.soak.stand.waiting import wait_until

JARS = Path(__file__).with_name("debezium.jars")
MAIN = Path(__file__).with_name("DebeziumCapture.java")
NAME, SERVER_ID, STARTED_WITHIN_S = "bench", 4_402, 60.0
MEMORY = "-Xmx1g"


@dataclass(frozen=True)
class Batch:
    """How many events there were when it was safe on the disk, when that was, and what the JVM had worked since it began."""

    events: int
    at: float
    core_s: float


@dataclass(frozen=True)
class CapturedTable:
    """`port`: of a MariaDB on this machine. `folder`: where offsets, the history of schemas and the events are kept."""

    port: int
    database: str
    table: str
    folder: Path

    @property
    def events(self) -> Path:
        return self.folder / "events"

    @property
    def topic(self) -> str:
        return f"{NAME}.{self.database}.{self.table}"

    def properties(self) -> dict[str, Any]:
        """No rows are read of the table; everything else that is not named is as Debezium has it."""
        return {
            "name": NAME,
            "topic.prefix": NAME,
            "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
            "database.hostname": "127.0.0.1",
            "database.port": self.port,
            "database.user": "lakehub",
            "database.password": "lakehub",
            "database.server.id": SERVER_ID,
            "database.ssl.mode": "disable",
            "database.include.list": self.database,
            "table.include.list": f"{self.database}.{self.table}",
            "snapshot.mode": "no_data",
            "include.schema.changes": "false",
            "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
            "offset.storage.file.filename": self.folder / "offsets",
            "offset.flush.interval.ms": 0,
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": self.folder / "schemas",
            "converter.schemas.enable": "false",
        }


@dataclass
class Debezium:
    """A JVM that captures; a second one goes on where the first ended."""

    process: subprocess.Popen[str]
    log: Path
    batches: list[Batch] = field(default_factory=list)

    @property
    def events(self) -> int:
        """Since this JVM began."""
        return self.batches[-1].events if self.batches else 0

    def wait_for(self, events: int, within_s: float) -> None:
        """Raises ChildFailed where the JVM ends before."""
        wait_until(lambda: self.events >= events or self._is_over, f"{events:,} events of Debezium", within_s)
        if self.events < events:
            raise self.failure()

    def failure(self) -> ChildFailed:
        lines = [line for line in self.log.read_text().splitlines() if line.strip()]
        reasons = [line for line in lines if line.startswith("Debezium ended")] or lines[-3:]
        return ChildFailed(f"did not start: {' '.join(reasons)[:500] or 'it wrote nothing'}")

    @property
    def _is_over(self) -> bool:
        return self.process.poll() is not None

    def _read(self, out: IO[str]) -> None:
        for line in out:
            events, at_ms, core_ms = map(int, line.split())
            self.batches.append(Batch(events, at_ms / 1000, core_ms / 1000))


@contextmanager
def capturing(table: CapturedTable) -> Iterator[Debezium]:
    """Fetches Debezium's jars where they are missing. Raises ArtifactNotFetched."""
    table.folder.mkdir(exist_ok=True)
    settings, log = table.folder / "properties", table.folder / "log"
    settings.write_text("".join(f"{name}={value}\n" for name, value in table.properties().items()))
    command = [
        java_home() / "bin" / "java", MEMORY, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        # Interfaces have static methods since Java 8.
        "-Dorg.codehaus.janino.UnitCompiler.defaultTargetVersion=8", "-cp", class_path(),
        "org.codehaus.janino.SimpleCompiler", MAIN, MAIN.stem, settings, table.topic, table.events,
    ]  # fmt: skip
    with (
        log.open("w") as errors,
        subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        debezium = Debezium(process, log)
        reading = Thread(target=debezium._read, args=(process.stdout,), daemon=True)
        reading.start()
        try:
            yield debezium
            process.stdin.close()
            # It notes where it is when it ends.
            process.wait(scaled(30))
        finally:
            process.kill()
            reading.join()


def class_path() -> str:
    """Raises ArtifactNotFetched."""
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise ArtifactNotFetched("PySpark is not installed: run `make setup`")
    jars = Path(spark.origin).parent / "jars"
    compiler = [file for name in ("janino", "commons-compiler") for file in jars.glob(f"{name}-*.jar")]
    return os.pathsep.join(map(str, (*fetch_artifacts(read_jar_list(JARS)), *compiler)))


def last_key(table: CapturedTable) -> int | None:
    """The key of the newest event; None: there is none."""
    lines = table.events.read_text().splitlines() if table.events.exists() else []
    return int(json.loads(lines[-1])["after"]["id"]) if lines else None
