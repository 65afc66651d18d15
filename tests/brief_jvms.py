"""Options of JVMs that live for seconds or minutes, and are mostly busy with starting: those of tests and soaks.

`python -m tests.brief_jvms` makes, once, an archive of the classes that Spark and Hudi load, from which a JVM takes them in place of reading jars: with it
a session with its first commit takes a quarter less of the processor.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import MutableMapping
from pathlib import Path

from lakehub.setup.java import java_home
from lakehub.setup.locations import PACKAGES, cache_folder

COMPILED_ONCE = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
"""Quickly: 40 % less work than to compile well what soon ends. By itself that leaves 48 MB for code, which hundreds of tests in one JVM fill; it was
then thrown away, and compiled again, all the time."""
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"
"""A JVM with other jars than the archive was made with would say so, where programs are read, and go on without it."""
_SESSION = """
import os, sys
from py4j.protocol import Py4JError
from ingestion.spark.session import open_session

spark = open_session("class archive")
orders = spark.createDataFrame([(1, "a", "2026-11-01")], "id int, note string, day string")
options = {"table.name": "orders", "datasource.write.recordkey.field": "id", "datasource.write.partitionpath.field": "day"}
for _ in range(2):
    orders.write.format("hudi").options(**{f"hoodie.{name}": value for name, value in options.items()}).mode("append").save(sys.argv[1])
assert spark.read.format("hudi").load(sys.argv[1]).count() == 1
jvm = spark.sparkContext._gateway.proc
try:
    spark._jvm.java.lang.System.exit(0)  # a JVM that is ended otherwise archives nothing
except (Py4JError, OSError):
    jvm.wait()
os._exit(0)  # PySpark would ask it once more
"""


def configure(environ: MutableMapping[str, str]) -> None:
    """The JVMs of processes with these variables, unless somebody has named options for them."""
    environ.setdefault("JAVA_TOOL_OPTIONS", options())
    environ.setdefault("LAKEHUB_SPARK_ENVIRONMENT", "JAVA_TOOL_OPTIONS")  # by itself, it would not get to them


def options() -> str:
    java, spark = archives()
    if not spark.is_file() or " " in str(spark):  # which would end the option
        return COMPILED_ONCE
    return f"{COMPILED_ONCE} -XX:SharedArchiveFile={java}:{spark} {_QUIET}"


def archives() -> tuple[Path, Path]:
    """Of Java's own classes, which the runtime that pip installs lacks, and of the others. Another Java, and other versions of anything, have others."""
    locked = (PACKAGES / "requirements-dev.lock").read_bytes()
    versions = hashlib.sha256(locked + bytes(java_home())).hexdigest()[:12]
    folder = cache_folder() / "classes"
    return folder / f"java-{versions}.jsa", folder / f"spark-{versions}.jsa"


def make_archives() -> None:
    """Where they are not there yet."""
    java, spark = archives()
    if spark.is_file():
        return
    java.parent.mkdir(parents=True, exist_ok=True)
    dump = ["-Xshare:dump", "-XX:+UseSerialGC", f"-XX:SharedArchiveFile={java}"]
    subprocess.run([java_home() / "bin" / "java", *dump], check=True, capture_output=True, stdin=subprocess.DEVNULL)
    made = spark.with_suffix(f".{os.getpid()}")
    with tempfile.TemporaryDirectory() as folder:
        archiving = f"{COMPILED_ONCE} -XX:SharedArchiveFile={java} -XX:ArchiveClassesAtExit={made} {_QUIET}"
        environ = {
            "JAVA_TOOL_OPTIONS": archiving,
            "LAKEHUB_SPARK_ENVIRONMENT": "JAVA_TOOL_OPTIONS",
            "LAKEHUB_HOME": folder,
        }
        command = [sys.executable, "-c", _SESSION, (Path(folder) / "orders").as_uri()]
        done = subprocess.run(
            command,
            cwd=PACKAGES,
            env=os.environ | environ,
            check=False,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
        )
    if done.returncode != 0 or not made.is_file():
        raise SystemExit(f"No archive of classes was made:\n{done.stderr[-3000:]}")
    made.rename(spark)


if __name__ == "__main__":
    make_archives()
