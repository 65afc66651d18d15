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
import selectors
import socket
import struct
import time
from contextlib import suppress
from functools import partial
from typing import Any

from gunicorn import http
from gunicorn.workers.gthread import ThreadWorker

from lakehub.processes.web_server.answers import SEND_TIMEOUT_S, Answer, progress, too_slow
from lakehub.processes.web_server.arrivals import HEAD_TIMEOUT_S, Arrival, RequestRefused

STOP_TIMEOUT_S = 2.0
"""What is on its way when the worker stops."""
LEAVE_TIMEOUT_S = 2.0
"""From the last word to a client to the end of its connection."""
LOOK_AT_ANSWERS_S = 1.0
MAX_RECEIVING = 400
"""Requests on their way at once, of one process."""
MAX_WORKERS = 64
"""Of which it is known how many connections they have."""
LET_OTHERS_S, LET_OTHERS_TIMES = 0.001, 10
"""Whoever has more connections than another leaves a new one to it for so long, so many times, and goes on with the rest meanwhile."""
_CHUNK = 64 * 1024

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
