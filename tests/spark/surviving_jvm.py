"""A job whose JVM's standard input stays open in a process that outlives its Python; with `untied`, the JVM does not watch its parent either.

`python -m tests.spark.surviving_jvm [untied] spec.json report.json`
"""

from __future__ import annotations

import os
import sys
from threading import Event

from pyspark.sql import SparkSession

from ingestion.spark import __main__ as program
from ingestion.spark import session
from ingestion.spark.loading import small_batches

_open = session.open_session


def _with_a_heir(name: str) -> SparkSession:
    """The heir inherits the pipe to the JVM and does nothing; it ends with the JVM."""
    spark = _open(name)
    java = session.jvm_pid(spark)
    if os.fork() == 0:
        pause = Event()
        while _lives(java):
            pause.wait(0.2)
        os._exit(0)
    return spark


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[0] == "untied":
        session.halt_jvm_with_parent = lambda spark: None
        arguments = arguments[1:]
    program.open_session = _with_a_heir
    small_batches.MAX_ROWS = 0  # what Python commits by itself ends with it
    sys.exit(program.main(arguments))
