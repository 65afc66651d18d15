"""gunicorn's threaded worker, with requests that are whole before a thread takes them.

gunicorn hands a connection to a thread with its first byte: as many clients as there are threads, which send their headers or
a body slowly, stop the server. Here the loop that waits for all connections receives each request; it has a time in
which it must be there, whatever trickles in, and where too many are on their way the one that is longest on it is let go.

Connections that are kept are shared out evenly: all processes wake for a new one, and the first would have it, which is mostly the one that is
awake already. Few connections would all be of one process, which gives half the answers.
"""

from __future__ import annotations

import mmap
import re
import selectors
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from gunicorn import http
from gunicorn.workers.gthread import ThreadWorker

HEAD_TIMEOUT_S = 10.0
"""From the first moment to the end of the headers."""
BODY_TIMEOUT_S = 30.0
"""From the end of the headers to the end of the body."""
STOP_TIMEOUT_S = 2.0
"""What is on its way when the worker stops."""
SEND_TIMEOUT_S = 10
"""A thread waits so long for a client that takes nothing of its answer."""
MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 2 * 1024 * 1024
"""More than any address takes: `DATA_UPLOAD_MAX_MEMORY_SIZE` and the form around it."""
MAX_RECEIVING = 400
"""Requests on their way at once, of one process."""
MAX_WORKERS = 64
"""Of which it is known how many connections they have."""
LET_OTHERS_S, LET_OTHERS_TIMES = 0.001, 10
"""Whoever has more connections than another leaves a new one to it for so long, so many times, and goes on with the rest meanwhile."""
_CHUNK = 64 * 1024
_END_OF_HEAD = b"\r\n\r\n"
_LENGTHS = re.compile(rb"\r\ncontent-length[^:\r\n]*:([^\r\n]*)", re.IGNORECASE)
_LENGTH = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]*")
_ENCODING = re.compile(rb"\r\ntransfer-encoding[ \t]*:", re.IGNORECASE)
_EXPECTS = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*(?=\r\n)", re.IGNORECASE)


class RequestRefused(Exception):
    """It is answered without a thread; the text is status and reason."""


@dataclass
class Arrival:
    """What has come of one request."""

    deadline: float
    received: bytearray
    searched: int = 0
    """Up to here there is no end of the headers."""
    size: int = 0
    """Of the whole request; 0: not known before the headers are whole."""

    def is_whole(self, *, now: float, send: Callable[[bytes], object]) -> bool:
        """`send`: to the client, who may wait for a word before it sends a body. Raises RequestRefused."""
        if not self.size:
            end = self.received.find(_END_OF_HEAD, self.searched)
            if end < 0:
                self.searched = max(0, len(self.received) - len(_END_OF_HEAD) + 1)
                if len(self.received) > MAX_HEAD_BYTES:
                    raise RequestRefused("431 Request Header Fields Too Large")
                return False
            head = bytes(self.received[: end + len(_END_OF_HEAD)])
            self.size = len(head) + _body_size(head)
            self.deadline = now + BODY_TIMEOUT_S
            expects = _EXPECTS.search(head)
            if expects and len(self.received) < self.size:
                send(b"HTTP/1.1 100 Continue\r\n\r\n")
                # Said once: gunicorn would say it again.
                del self.received[expects.start() : expects.end()]
                self.size -= expects.end() - expects.start()
        return len(self.received) >= self.size


def _body_size(head: bytes) -> int:
    """Raises RequestRefused, also for a length that gunicorn may read otherwise: its thread would wait for that body."""
    if len(head) > MAX_HEAD_BYTES:
        raise RequestRefused("431 Request Header Fields Too Large")
    if _ENCODING.search(head):
        raise RequestRefused("411 Length Required")
    lengths = [_LENGTH.fullmatch(text) for text in _LENGTHS.findall(head)]
    if not lengths:
        return 0
    if len(lengths) > 1 or lengths[0] is None:
        raise RequestRefused("400 Bad Request")
    size = int(lengths[0][1])
    if size > MAX_BODY_BYTES:
        raise RequestRefused("413 Content Too Large")
    return size


_connections = memoryview(mmap.mmap(-1, 4 * MAX_WORKERS)).cast("I")
"""One more than each process has; 0: nobody's place. Made before the processes are forked, so that they share it."""


def forget_worker(worker: Any) -> None:
    """It has ended."""
    _connections[worker.age % MAX_WORKERS] = 0


class BufferedWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._left_to_others = 0
        self._arrivals: dict[Any, Arrival] = {}
        """By connection, the one that is longest on its way first."""

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        _connections[self.age % MAX_WORKERS] = self.nr_conns + 1
        super().wait_for_and_dispatch_events(timeout)

    def accept(self, listener: Any) -> None:
        has_more = any(0 < one_more <= self.nr_conns for one_more in _connections)
        if has_more and self._left_to_others < LET_OTHERS_TIMES:
            self._left_to_others += 1
            time.sleep(LET_OTHERS_S)
            return
        self._left_to_others = 0
        super().accept(listener)

    def enqueue_req(self, conn: Any) -> None:
        """Called in the loop for a new connection, and for each further request of one that was kept."""
        received = bytearray(conn.parser.unreader.take_buffered() if conn.parser else b"")
        arrival = self._arrivals[conn] = Arrival(time.monotonic() + HEAD_TIMEOUT_S, received)
        conn.sock.setblocking(False)
        if not conn.initialized:
            conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_TIMEOUT_S, 0))
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._receive, conn, arrival))
        if len(self._arrivals) > MAX_RECEIVING:
            self._refuse(next(iter(self._arrivals)), "408 Request Timeout")
        # Mostly it is there already.
        if conn in self._arrivals:
            self._receive(conn, arrival, conn.sock, is_new=bool(received))

    def _receive(self, conn: Any, arrival: Arrival, sock: socket.socket, *, is_new: bool = False) -> None:
        try:
            chunk = sock.recv(_CHUNK)
        except BlockingIOError:
            chunk = b""
            if not is_new:
                return
        except OSError:
            return self._forget(conn)
        else:
            if not chunk:
                return self._forget(conn)
        arrival.received += chunk
        try:
            if arrival.is_whole(now=time.monotonic(), send=partial(_send, sock)):
                self._hand_over(conn, arrival)
        except RequestRefused as refused:
            self._refuse(conn, str(refused))

    def _hand_over(self, conn: Any, arrival: Arrival) -> None:
        self._leave(conn)
        if conn.parser is None:
            conn.parser = http.get_parser(self.cfg, conn.sock, conn.client)
        conn.parser.unreader.unread(bytes(arrival.received))
        conn.initialized = conn.data_ready = True
        super().enqueue_req(conn)

    def murder_pending(self) -> None:
        """Called about once a second."""
        now = time.monotonic()
        longest = float("inf") if self.alive else now + STOP_TIMEOUT_S
        for conn, arrival in list(self._arrivals.items()):
            arrival.deadline = min(arrival.deadline, longest)
            if arrival.deadline <= now:
                self._refuse(conn, "408 Request Timeout")

    def _refuse(self, conn: Any, status: str) -> None:
        """A connection that was opened and never used is closed without a word."""
        if self._arrivals[conn].received:
            _send(conn.sock, f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode())
            self.log.info("A request from %s was refused: %s", conn.client, status)
        self._forget(conn)

    def _forget(self, conn: Any) -> None:
        self._leave(conn)
        self.nr_conns -= 1
        conn.close()

    def _leave(self, conn: Any) -> None:
        del self._arrivals[conn]
        self.poller.unregister(conn.sock)


def _send(sock: socket.socket, text: bytes) -> None:
    """A few bytes that nobody waits for."""
    with suppress(OSError):
        sock.send(text)
