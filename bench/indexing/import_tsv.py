"""HBase's own ImportTsv, which makes HFiles by a job of Hadoop: here by its local runner, in one JVM. All its jars are those of Spark and of our client of HBase."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyspark

from bench.harness import ChildFailed
from bench.indexing.entries import COLUMNS, TIMESTAMP_MS
from bench.indexing.server import HBase
from ingestion.index.entries import FAMILY
from ingestion.index.hfile.reader import read_summary
from lakehub.setup.artifacts import HBASE_JARS, artifact_path
from lakehub.setup.java import java_home

_OF_SPARK = ("hadoop-client", "slf4j-api", "log4j", "commons-logging", "jcl-over")
_CLASS = "org.apache.hadoop.hbase.mapreduce.ImportTsv"
_TIMEOUT_S = 900


class Spent(NamedTuple):
    seconds: float
    core_seconds: float


@dataclass(frozen=True)
class ImportTsv:
    hbase: HBase
    folder: Path

    def run(self, file: Path, table: str, rows: int) -> Spent:
        """The HFiles of `file`, for a table of one region, which it makes. With what it takes the JVM to start."""
        output = self.folder / f"{table}-hfiles"
        before, begun = _core_seconds_of_children(), time.perf_counter()
        done = subprocess.run(
            self._command(file, table, output), capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        spent = Spent(time.perf_counter() - begun, _core_seconds_of_children() - before)
        if done.returncode:
            raise ChildFailed(f"ImportTsv ended with {done.returncode}:\n{(done.stderr or done.stdout)[-2000:]}")
        _check(output, rows)
        return spent

    def _command(self, file: Path, table: str, output: Path) -> list[str]:
        settings = {
            "hbase.zookeeper.quorum": self.hbase.quorum,
            "hadoop.tmp.dir": str(self.folder / "tmp"),
            "hbase.fs.tmp.dir": str(self.folder / "tmp" / "partitions"),
            "fs.defaultFS": "file:///",
            "mapreduce.framework.name": "local",
            "importtsv.columns": ",".join(("HBASE_ROW_KEY", *(f"{FAMILY.decode()}:{name}" for name in COLUMNS[1:]))),
            "importtsv.timestamp": str(TIMESTAMP_MS),
            "importtsv.bulk.output": output.as_uri(),
        }
        java = [str(java_home() / "bin" / "java"), "-Xmx1g", "-XX:+UseSerialGC", "-Djava.net.preferIPv4Stack=true"]
        arguments = [*(f"-D{name}={value}" for name, value in settings.items()), table, file.as_uri()]
        return [*java, "-cp", os.pathsep.join(_jars()), _CLASS, *arguments]


def _jars() -> list[str]:
    of_spark = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    return [
        *(str(artifact_path(jar)) for jar in HBASE_JARS),
        *(str(jar) for jar in of_spark if jar.name.startswith(_OF_SPARK)),
    ]


def _core_seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _check(output: Path, rows: int) -> None:
    """It has written each row with its cells."""
    files = [file for file in (output / FAMILY.decode()).iterdir() if not file.name.startswith(".")]
    cells = 0
    for file in files:
        with file.open("rb") as source:
            cells += read_summary(source).cells
    if cells != rows * len(COLUMNS[1:]):
        raise AssertionError(f"ImportTsv wrote {cells:,} cells of {rows:,} rows")
