"""gunicorn's threaded worker, with requests that are whole before a thread takes them.

gunicorn hands a connection to a thread with its first byte: as many clients as there are threads, which send their headers or
a body slowly, stop the server. Here the loop that waits for all connections receives each request; it has a time in
which it must be there, whatever trickles in, and where too many are on their way the one that is longest on it is let go.

A thread keeps a connection until the client has taken the answer, but for the last part, which the kernel holds. So the loop also looks how
much each client takes: whoever takes too little for too long is let go.

The last word of an answer must not be lost, so a connection is closed when the client has closed its end, or some time later. gunicorn waits for
that in the loop; here the loop goes on. Where there are as many connections as may be, kept ones make room for new ones.

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
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from gunicorn import http
from gunicorn.workers.gthread import ThreadWorker

HEAD_TIMEOUT_S = 10.0
"""From the first moment to the end of the headers."""
BODY_TIMEOUT_S = 30.0
"""From the end of the headers to the end of the body."""
STOP_TIMEOUT_S = 2.0
"""What is on its way when the worker stops."""
LEAVE_TIMEOUT_S = 2.0
"""From the last word to a client to the end of its connection."""
SEND_TIMEOUT_S = 10
"""A thread waits so long for a client that takes nothing of its answer."""
LEAST_RATE = 10_000
"""Bytes per second: a sixth of half a megabit, as a browser loads six files at once. Who takes less uses up its SEND_TIMEOUT_S."""
CROWDED_TIMEOUT_S, CROWDED_RATE = 3.0, 50_000
"""The same while all threads wait for clients and somebody waits for a thread; the slowest is let go, one with each look."""
LOOK_AT_ANSWERS_S = 1.0
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


class Progress(NamedTuple):
    """Of a connection, since it was opened."""

    taken: int
    """Bytes that the other side has confirmed."""
    waited_s: float
    """The time in which there was something that it had not confirmed: what the server needs to make an answer is not in it."""
    is_waiting: bool
    """There is more than the other side may be sent now."""


_TCP_INFO = struct.Struct("120xQ16xI20xQ")
"""Linux: tcpi_bytes_acked, tcpi_notsent_bytes, tcpi_busy_time."""


def progress(sock: socket.socket) -> Progress:
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
    except OSError:  # closed already, or a socket of this machine without TCP
        return Progress(0, 0.0, False)
    taken, unsent, busy_us = _TCP_INFO.unpack(info)
    return Progress(taken, busy_us / 1e6, unsent > 0)


@dataclass
class Patience:
    """Waiting uses it up, what is taken gives it back, and there is never more than at first: a fast start earns no slow end."""

    most_s: float
    rate: int
    left_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.left_s = self.most_s

    def spend(self, waited_s: float, taken: int) -> None:
        self.left_s = min(self.most_s, self.left_s - waited_s + taken / self.rate)


@dataclass
class Answer:
    """One that a thread makes or sends."""

    seen: Progress
    usual: Patience = field(default_factory=lambda: Patience(SEND_TIMEOUT_S, LEAST_RATE))
    crowded: Patience = field(default_factory=lambda: Patience(CROWDED_TIMEOUT_S, CROWDED_RATE))

    def look(self, now: Progress) -> None:
        for patience in (self.usual, self.crowded):
            patience.spend(now.waited_s - self.seen.waited_s, now.taken - self.seen.taken)
        self.seen = now


def too_slow(answers: dict[Any, Answer], threads: int) -> list[Any]:
    """Of the connections, those that are let go."""
    slow = [conn for conn, answer in answers.items() if answer.usual.left_s < 0]
    waiting = [conn for conn, answer in answers.items() if answer.seen.is_waiting]
    if slow or len(answers) <= threads or len(waiting) < threads:
        return slow
    slowest = min(waiting, key=lambda conn: answers[conn].crowded.left_s)
    return [slowest] if answers[slowest].crowded.left_s < 0 else []


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
        self._answers: dict[Any, Answer] = {}
        self._leaving: dict[Any, float] = {}
        """By connection, when it is closed at the latest; the first of them first."""
        self._looked_at_answers = 0.0

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
        if conn not in self._arrivals:
            return  # let go by what came before in the same round of the loop
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
        del self._arrivals[conn]
        self.poller.unregister(conn.sock)
        if conn.parser is None:
            conn.parser = http.get_parser(self.cfg, conn.sock, conn.client)
        conn.parser.unreader.unread(bytes(arrival.received))
        conn.initialized = conn.data_ready = True
        self._answers[conn] = Answer(progress(conn.sock))
        super().enqueue_req(conn)

    def finish_request(self, conn: Any, fs: Any) -> None:
        self._answers.pop(conn, None)
        if fs.cancelled() or (fs.exception() is None and not fs.result()):
            self._say_goodbye(conn)
        else:
            super().finish_request(conn, fs)

    def _say_goodbye(self, conn: Any) -> None:
        if conn.sock.fileno() < 0:  # a thread closed it in the middle of an answer that failed
            self.nr_conns -= 1
            return
        self._leaving[conn] = time.monotonic() + LEAVE_TIMEOUT_S
        conn.sock.setblocking(False)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._see_off, conn))
        try:
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:  # the client has gone already
            self._close_leaving(conn)

    def _see_off(self, conn: Any, sock: socket.socket) -> None:
        """What the client still sends is read: a close with something unread would take back what it has not read yet."""
        try:
            has_more = bool(sock.recv(_CHUNK))
        except BlockingIOError:
            return
        except OSError:
            has_more = False
        if not has_more:
            self._close_leaving(conn)

    def _close_leaving(self, conn: Any) -> None:
        del self._leaving[conn]
        self._close(conn)

    def _make_room(self) -> None:
        """Called between the rounds of the loop, of which each takes in one connection at most."""
        if self.nr_conns < self.worker_connections:
            return
        if self._leaving:
            self._close_leaving(next(iter(self._leaving)))
        elif self.keepalived_conns:
            conn = self.keepalived_conns.popleft()
            self._close(conn)

    def murder_pending(self) -> None:
        """Called after each round of the loop, at least about once a second."""
        now = time.monotonic()
        for conn, deadline in list(self._leaving.items()):
            if deadline > now:
                break
            self._close_leaving(conn)
        self._make_room()
        longest = float("inf") if self.alive else now + STOP_TIMEOUT_S
        for conn, arrival in list(self._arrivals.items()):
            arrival.deadline = min(arrival.deadline, longest)
            if arrival.deadline <= now:
                self._refuse(conn, "408 Request Timeout")
        if now - self._looked_at_answers >= LOOK_AT_ANSWERS_S:
            self._looked_at_answers = now
            self._look_at_answers()

    def _look_at_answers(self) -> None:
        for conn, answer in self._answers.items():
            answer.look(progress(conn.sock))
        for conn in too_slow(self._answers, self.cfg.threads):
            del self._answers[conn]
            self.log.info("An answer to %s was broken off: too little of it was taken", conn.client)
            _break_off(conn.sock)

    def _refuse(self, conn: Any, status: str) -> None:
        """A connection that was opened and never used is closed without a word."""
        if self._arrivals[conn].received:
            _send(conn.sock, f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode())
            self.log.info("A request from %s was refused: %s", conn.client, status)
        self._forget(conn)

    def _forget(self, conn: Any) -> None:
        del self._arrivals[conn]
        self._close(conn)

    def _close(self, conn: Any) -> None:
        """One that the loop looks at."""
        self.poller.unregister(conn.sock)
        self.nr_conns -= 1
        conn.close()


def _send(sock: socket.socket, text: bytes) -> None:
    """A few bytes that nobody waits for."""
    with suppress(OSError):
        sock.send(text)


def _break_off(sock: socket.socket) -> None:
    """Wakes the thread that sends, which closes it. What was not sent is thrown away: the kernel would hold it for a client that takes nothing."""
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.shutdown(socket.SHUT_RDWR)
