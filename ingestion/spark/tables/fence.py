"""One writer of a table at a time, told by the JVM that writes.

A killed Python may leave its JVM behind, still committing. The database's lease cannot see that; a lock of the operating system on a file can: the JVM holds it and
only its end releases it. So whoever holds the fence knows that no earlier job on this machine can still commit, and only then reads the checkpoint.
Lakes that are not files have the table's own lock, and the wait for pending writes below.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JError, Py4JJavaError
from pyarrow import fs
from pyspark.sql import SparkSession

from ingestion.spark.session import jvm
from ingestion.spark.tables.failed_write import remove_torn_files
from ingestion.spark.tables.hudi import HEARTBEAT_MS, TOLERABLE_MISSES
from ingestion.spark.tables.timeline import Timeline, open_storage
from ingestion.spark.tables.unfinished_writes import pending_writes, remove_heartbeat

logger = logging.getLogger(__name__)
HEARTBEAT_TIMEOUT = timedelta(milliseconds=HEARTBEAT_MS * TOLERABLE_MISSES)
DEATH_TIMEOUT = timedelta(milliseconds=HEARTBEAT_MS * 2)
"""Instead of it where the fence has shown that the last writer of this machine ended: a heartbeat that goes on is of another machine."""
_POLL_INTERVAL_S = 0.1
_OWNER = re.compile(r"(process \d+ \(Java\))\n(?:latest (\d*)\n)?")
"""What the lock file holds while somebody is within the fence: who, and the latest time of the table's timeline when they came in."""


class TableFenced(RuntimeError):
    """Another writer holds the table."""


@contextmanager
def hold_fence(spark: SparkSession, uri: str, *, wait_s: float, beside: Collection[str] = ()) -> Iterator[None]:
    """Within it this JVM is the only one of this machine that writes the table at `uri`, and those `beside` it. Raises TableFenced after `wait_s`."""
    path = lock_path(uri)
    deadline = time.monotonic() + wait_s
    if path is None:
        _wait_for_pending_writes(Timeline(uri), deadline)
        yield
        return
    with _closed_afterwards(_acquire(spark, path, uri, deadline)) as file:
        # Who leaves in order takes its name out.
        if last_owner := path.read_text():
            _clean_up_after(last_owner, uri, beside, deadline)
        else:
            _wait_for_pending_writes(Timeline(uri), deadline)
        _write_owner(spark, file, latest=Timeline(uri).latest_time())
        yield
        file.setLength(0)


def clean_up_after_killed_writer(spark: SparkSession, uri: str, *, wait_s: float, beside: Collection[str] = ()) -> None:
    """For a job that reads the table before it is within the fence: what a writer that was killed there has left cannot be read.

    Where somebody is within the fence nothing is done: they did it when they came in.
    """
    path = lock_path(uri)
    if path is None or not path.is_file() or not path.read_text():
        return
    with _closed_afterwards(jvm(spark).java.io.RandomAccessFile(str(path), "rw")) as file:
        if _try_lock(file) and (last_owner := path.read_text()):
            _clean_up_after(last_owner, uri, beside, time.monotonic() + wait_s)
            file.setLength(0)


@contextmanager
def _closed_afterwards(file: Any) -> Iterator[Any]:
    """`file`: of the JVM. Where the block fails, its error is raised whatever becomes of the file: a JVM that has ended closed it, and cannot be told to."""
    try:
        yield file
    except BaseException:
        try:
            file.close()
        except (Py4JError, OSError) as problem:
            logger.info("A lock file was not closed: %s", problem)
        raise
    file.close()


def lock_path(uri: str) -> Path | None:
    """Beside the table, not in it: a table that is replaced or dropped keeps its fence."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return None
    table = Path(unquote(parts.path))
    return table.parent / ".lakehub" / f"{table.name}.writer.lock"


def _clean_up_after(last_owner: str, uri: str, beside: Collection[str], deadline: float) -> None:
    """The last one within the fence was killed there."""
    timeline, owner = Timeline(uri), _OWNER.fullmatch(last_owner)
    _wait_for_pending_writes(timeline, deadline, died=True)
    if owner is not None and owner[2] is not None:
        # On a disk that was full as well.
        remove_torn_files(timeline, after=owner[2])
        _wait_for_pending_writes(timeline, deadline, died=True)
    for each in (uri, *beside):
        _remove_stale_table_lock(each, deadline)


def _acquire(spark: SparkSession, path: Path, uri: str, deadline: float) -> Any:
    """The locked file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = jvm(spark).java.io.RandomAccessFile(str(path), "rw")
    while not _try_lock(file):
        if time.monotonic() >= deadline:
            owner = _OWNER.fullmatch(path.read_text())
            holder = owner[1] if owner else "another writer"
            file.close()
            raise TableFenced(
                f"{uri} is being written by {holder}, and was until the deadline. "
                "Wait for it; or, where the job that started it is gone, end that process and run the job again: nothing is lost."
            )
        time.sleep(_POLL_INTERVAL_S)
    return file


def _write_owner(spark: SparkSession, file: Any, *, latest: str) -> None:
    file.setLength(0)
    file.writeBytes(f"process {jvm(spark).java.lang.ProcessHandle.current().pid()} (Java)\nlatest {latest}\n")


def _remove_stale_table_lock(uri: str, deadline: float) -> None:
    """A writer that was killed within the table's own lock leaves it behind, and every later writer would wait for it in vain.

    Nobody of this machine is alive within the fence, and a writer from elsewhere that holds the lock has a heartbeat, which was waited for.
    """
    filesystem, path = open_storage(f"{uri}/.hoodie/lock")
    while (left := filesystem.get_file_info(path)).type != fs.FileType.NotFound:
        if _is_older(left.mtime, DEATH_TIMEOUT):
            filesystem.delete_file(path)
            return
        if time.monotonic() >= deadline:
            raise TableFenced(
                f"{uri} has a lock that was taken only just, at {left.mtime.isoformat()}. Run the job again in some seconds."
            )
        time.sleep(_POLL_INTERVAL_S)


def _try_lock(file: Any) -> bool:
    try:
        return file.getChannel().tryLock() is not None
    except Py4JJavaError as problem:
        if "OverlappingFileLockException" in str(problem.java_exception):
            return False
        raise


def _wait_for_pending_writes(timeline: Timeline, deadline: float, *, died: bool = False) -> None:
    """Wait while someone else's unfinished write still has a heartbeat; one without is dead and rolled back by the next cleaning.

    Where a writer of this machine has `died`, its heartbeat is taken away too: Hudi would think it alive for longer.
    """
    timeout = DEATH_TIMEOUT if died else HEARTBEAT_TIMEOUT
    while alive := [
        instant for instant, beat in pending_writes(timeline).items() if beat and not _is_older(beat, timeout)
    ]:
        if time.monotonic() >= deadline:
            raise TableFenced(
                f"{timeline.uri} has the unfinished write {alive[0]}, whose writer is alive. Wait for it and run the job again."
            )
        time.sleep(_POLL_INTERVAL_S)
    for instant, beat in pending_writes(timeline).items() if died else ():
        if beat:
            remove_heartbeat(timeline, instant)


def _is_older(at: datetime, than: timedelta) -> bool:
    """Or as far in the future: a clock that was set back has left it there, and no writer is as far ahead."""
    return abs(datetime.now(UTC) - at) >= than
