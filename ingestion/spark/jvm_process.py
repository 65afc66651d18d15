"""The process of a JVM that PySpark starts: it is up in time or given up, and nothing that it started outlives it.

A JVM starts programs, such as the chmod with which the table format's files get their rights, through a helper of its own,
which inherits all of its connections. A JVM that is killed before it has told the helper what to start leaves it waiting for ever:
with those connections open, so whoever waits for an answer of the JVM is never told that it has ended.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

from ingestion.spark.environment import jvm_environment
from lakehub import environment as env
from lakehub.source_databases.deadline import deadline

logger = logging.getLogger(__name__)
_ADDRESS_FILE = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""The variable by which a JVM is told where to write its address: no two have the same file, and what they start inherits it."""
EXIT_TIMEOUT_S = 2
_LOOK_EVERY_S = 0.2
MAX_ROUNDS = 25
"""Five seconds. What a kill has not ended by then waits in the kernel, where no kill reaches it."""

HELPERLESS = ["-Djdk.lang.Process.launchMechanism=VFORK"] if sys.platform == "linux" else []
"""Options of a JVM that starts programs without its helper. Only Linux has that way."""


class JvmNotStarted(RuntimeError):
    """The JVM was not up in time."""


class JvmStart:
    """One JVM from the first moment of its process on, which PySpark hands out only when the JVM has answered.

    `running`: the process of one that has answered, and has no session yet.
    """

    def __init__(self, running: subprocess.Popen[bytes] | None = None) -> None:
        self._running, self._options = running, _PopenOptions()

    def launch(self, settings: Mapping[str, str]) -> Any:
        """PySpark's gateway to a new JVM. Raises SecretForSpark, and an error of PySpark where the JVM ends before it is up."""
        conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
        gateway: Any = launch_gateway(conf, self._options)  # type: ignore[no-untyped-call]
        self._running = gateway.proc
        if sys.platform == "linux":
            watch = Thread(target=self._end_with, args=(gateway.proc.pid,), name="end of the JVM", daemon=True)
            watch.start()
        return gateway

    @contextmanager
    def in_time(self) -> Iterator[None]:
        """The block, in which the JVM is launched and used, ends within LAKEHUB_SPARK_START_S, or the JVM is killed. Raises JvmNotStarted."""
        seconds = env.number("LAKEHUB_SPARK_START_S", 300, least=1)
        with deadline(timedelta(seconds=seconds), self._give_up) as is_late:
            try:
                yield
            except Exception as problem:
                self._wait_for_end()
                if not is_late.is_set():
                    raise
                raise JvmNotStarted(
                    f"Spark's JVM was not up within LAKEHUB_SPARK_START_S={seconds} and was killed. Look at what it wrote to the log; "
                    f"where the machine or the cluster of LAKEHUB_SPARK_MASTER only is slow, raise LAKEHUB_SPARK_START_S."
                ) from problem

    def _wait_for_end(self) -> None:
        """A connection that broke is seen a moment before the end of the process, and whoever tries again at once would ask it."""
        if self._running is not None:
            with suppress(subprocess.TimeoutExpired):
                self._running.wait(EXIT_TIMEOUT_S)

    def _give_up(self) -> None:
        if self._running is not None:
            self._running.kill()
        address_file = self._options.address_file
        if address_file is None:
            return
        _kill_all_of(address_file)
        # PySpark waits for this file also where what it started has ended without an error. One that is empty ends that.
        with suppress(OSError):
            Path(address_file).touch()

    def _end_with(self, process: int) -> None:
        # Looks and collects nothing: how the process ended is for the one that has started it.
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
        if self._options.address_file is not None:
            end_what_is_left(self._options.address_file, pause=Event().wait)


class _PopenOptions(dict[str, Any]):
    """PySpark puts all of this process's environment into these; what a JVM may not know is taken out of it."""

    address_file: str | None = None

    def __setitem__(self, name: str, value: Any) -> None:
        if name == "env":
            self.address_file = value[_ADDRESS_FILE]
            value = jvm_environment(value) | _own_variables(value)
        super().__setitem__(name, value)


def _own_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """By which the JVM tells PySpark where it listens."""
    return {name: value for name, value in environ.items() if name.startswith("_PYSPARK_DRIVER_")}


def end_what_is_left(address_file: str, *, pause: Callable[[float], object]) -> None:
    """Kills what a JVM that has ended had started, until nothing is left or after MAX_ROUNDS; one line of the log says what came of it.

    `address_file`: the file of that JVM. `pause`: waits for so many seconds.
    """
    killed = set[int]()
    for _ in range(MAX_ROUNDS):
        left = _kill_all_of(address_file)
        if not left:
            break
        killed.update(left)
        pause(_LOOK_EVERY_S)
    else:
        # As where the kernel waits for a disk that does not answer: it ends when that does, and needs no second kill.
        logger.warning("Processes that a JVM has left were killed and have not ended: %s", sorted(left))
        return
    if killed:
        logger.info("Processes that a JVM has left were killed: %s", sorted(killed))


def _kill_all_of(address_file: str) -> list[int]:
    """The JVM that writes to this file, Spark's script that becomes it, and what they have started, whoever its parent is now.

    Those that were killed. Elsewhere than on Linux nothing tells which they are, and there are none.
    """
    mark, killed = f"{_ADDRESS_FILE}={address_file}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        # It has ended meanwhile, or is somebody else's.
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
                killed.append(int(folder.name))
    return killed
