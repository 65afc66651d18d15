"""Several connections read the next ranges of the key at once, each range as it was after a transaction of its own. They are handed over in the order of the key.

Where a range ends is asked of the server, by its own order: so a key may have several columns, texts of any collation, and holes. Nothing of it has to be kept:
a load goes on after the last key that was handed over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeVar

from ingestion.capture.snapshot.key_position import EncodedKey
from ingestion.sources.mysql.chunk_reading import ChunkReader, ReadChunk
from ingestion.sources.mysql.server import OpenServer

T = TypeVar("T")


class ReadAhead:
    """`servers`: the connections. With one, a chunk is read when it is asked for; with more, each of them is at work on a range, and none is read further ahead."""

    def __init__(self, reader: ChunkReader, servers: Sequence[OpenServer]) -> None:
        self._reader, self._servers = reader, servers
        self._free: SimpleQueue[OpenServer] = SimpleQueue()
        for server in servers:
            self._free.put(server)
        self._pool = ThreadPoolExecutor(len(servers), "read-ahead")
        self._ahead: deque[Future[ReadChunk]] = deque()
        self._begins_after: EncodedKey | None = None
        self._is_at_end = False

    def __enter__(self) -> ReadAhead:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    @property
    def has_begun(self) -> bool:
        """Is the next chunk being read, or was it?"""
        return bool(self._ahead)

    def next(self, after: EncodedKey | None) -> ReadChunk:
        """`after`: the end of the chunk before. What is raised where it is read."""
        if len(self._servers) == 1:
            return self._reader.next_chunk(self._servers[0], after)
        if not self._ahead:
            self._begins_after, self._is_at_end = after, False
        self._begin_more()
        chunk = self._ahead.popleft().result()
        self._begin_more()
        return chunk

    def rest(self) -> Iterator[ReadChunk]:
        """What was begun, and is not asked for now."""
        while self._ahead:
            yield self._ahead.popleft().result()

    def _begin_more(self) -> None:
        while len(self._ahead) < len(self._servers) and not self._is_at_end:
            after = self._begins_after
            upto = self._pool.submit(self._on_free_server, self._reader.end_of_next, after).result()
            self._ahead.append(self._pool.submit(self._on_free_server, self._reader.range, after, upto))
            self._begins_after, self._is_at_end = upto, upto is None

    def _on_free_server(self, work: Callable[..., T], *arguments: EncodedKey | None) -> T:
        """There are as many connections as threads."""
        server = self._free.get()
        try:
            return work(server, *arguments)
        finally:
            self._free.put(server)
