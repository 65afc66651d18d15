"""Spark's tasks are told how fast they may ask while they ask: by a file where HFiles are staged, which all of them reach, and the driver writes again and again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread

from ingestion.domain.index_cluster.fresh_rate import EVERY_S, FreshRate, written_rate
from ingestion.spark.global_index.hbase_client.staging import let_go, staged_name
from ingestion.spark.tables.timeline import open_storage

logger = logging.getLogger(__name__)
_MOST_BYTES = 64


def rate_told_at(uri: str) -> Callable[[], float]:
    """A task's side: requests a second now; 0: none, until it is known."""
    fresh = FreshRate(partial(_read, uri), time.monotonic)
    return lambda: fresh() or 0.0


@contextmanager
def told_rate(folder: str, name: str, rate: Callable[[], float]) -> Iterator[str]:
    """While the block runs: the URI of a file that says what `rate` does. Raises OSError where it cannot be written in the beginning."""
    uri = f"{folder.rstrip('/')}/{staged_name(name, '.rate')}"
    _write(uri, written_rate(rate(), 0))
    done = Event()
    thread = Thread(target=_tell, args=(uri, rate, done), name="rate", daemon=True)
    thread.start()
    try:
        yield uri
    finally:
        done.set()
        thread.join()
        let_go(uri)


def _tell(uri: str, rate: Callable[[], float], done: Event) -> None:
    number = 0
    while not done.wait(EVERY_S):
        number += 1
        try:
            _write(uri, written_rate(rate(), number))
        except OSError:
            logger.warning("The tasks are not told how fast they may ask: they wait until they are", exc_info=True)


def _write(uri: str, text: str) -> None:
    filesystem, path = open_storage(uri)
    filesystem.create_dir(path.rpartition("/")[0])
    with filesystem.open_output_stream(path) as file:
        file.write(text.encode())


def _read(uri: str) -> str:
    filesystem, path = open_storage(uri)
    try:
        with filesystem.open_input_stream(path) as file:
            return bytes(file.read(_MOST_BYTES)).decode(errors="replace")
    except OSError as problem:
        logger.info("How fast the index may be asked is not read: %s", problem)
        return ""
