"""gunicorn's threaded worker, with requests that are whole before a thread takes them.

gunicorn hands a connection to a thread with its first byte: as many clients as there are threads, which send their headers or
a body slowly, stop the server. Here the loop that waits for all connections receives each request; it has a time in
which it must be there, whatever trickles in, and where too many are on their way the one that is longest on it is let go.

A request that is whole waits for a thread in a line of its caller's, and the callers take turns (`fair_queue`). A caller is an address: that of
the client where LAKEHUB_PROXIES says how many proxies there are.

A thread keeps a connection until the client has taken the answer, but for the last part, which the kernel holds. So the loop also looks how
much each client takes: whoever takes too little for too long is let go.

The last word of an answer must not be lost, so a connection is closed when the client has closed its end, or some time later. gunicorn waits for
that in the loop; here the loop goes on. Where there are as many connections as may be, kept ones make room for new ones.

Connections that are kept are shared out evenly: all processes wake for a new one, and the first would have it, which is mostly the one that is
awake already. Few connections would all be of one process, which gives half the answers.
"""

from __future__ import annotations

import errno
import mmap
import selectors
import socket
import struct
import time
from contextlib import suppress
from functools import partial
from typing import Any

from django.conf import settings
from gunicorn import http
from gunicorn.workers.gthread import ThreadWorker
from structlog.contextvars import clear_contextvars

from lakehub.kernel.addresses import forwarded_client, network_of
from lakehub.processes.web_server.answers import SEND_TIMEOUT_S, Answer, progress, too_slow
from lakehub.processes.web_server.arrivals import HEAD_TIMEOUT_S, Arrival, RequestRefused
from lakehub.processes.web_server.fair_queue import FairQueue

STOP_TIMEOUT_S = 2.0
"""What is on its way when the worker stops."""
LEAVE_TIMEOUT_S = 2.0
"""From the last word to a client to the end of its connection."""
LOOK_AT_ANSWERS_S = 1.0
MAX_RECEIVING = 400
"""Requests on their way at once, of one process."""
MAX_RECEIVED_BYTES = 64 << 20
"""Of all of these, and of those that wait for a thread."""
NO_FILE_S = 0.01
"""Between two looks whether the system has a file for a connection again."""
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
        self._has_no_file = False
        """For a connection that waits to be taken in."""
        self._received_bytes = 0
        """Of all arrivals."""
        self._queue: FairQueue[Any] = FairQueue(self.cfg.threads)
        self._answers: dict[Any, Answer] = {}
        """Those that wait for a thread, or have one."""
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
        try:
            super().accept(listener)
        except OSError as problem:
            if problem.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            self._has_no_file = True

    def enqueue_req(self, conn: Any) -> None:
        """Called in the loop for a new connection, and for each further request of one that was kept."""
        received = bytearray(conn.parser.unreader.take_buffered() if conn.parser else b"")
        arrival = self._arrivals[conn] = Arrival(time.monotonic() + HEAD_TIMEOUT_S, received)
        conn.sock.setblocking(False)
        if not conn.initialized:
            conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_TIMEOUT_S, 0))
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._receive, conn, arrival))
        self._received_bytes += len(received)
        if len(self._arrivals) > MAX_RECEIVING:
            self._refuse(next(iter(self._arrivals)), "408 Request Timeout")
        # Mostly it is there already; what was sent behind the request before is looked at first, and no more is read.
        if received and conn in self._arrivals:
            self._look_at_request(conn, arrival)
        if conn in self._arrivals:
            self._receive(conn, arrival, conn.sock)

    def _receive(self, conn: Any, arrival: Arrival, sock: socket.socket) -> None:
        if conn not in self._arrivals:
            return  # let go by what came before in the same round of the loop
        try:
            chunk = sock.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            return self._forget(conn)
        if not chunk:
            return self._forget(conn)
        arrival.received += chunk
        self._received_bytes += len(chunk)
        self._look_at_request(conn, arrival)
        while self._received_bytes + self._queue.size > MAX_RECEIVED_BYTES:
            if self._queue.size > self._received_bytes:
                self._send_away()
            else:
                self._refuse(next(iter(self._arrivals)), "408 Request Timeout")

    def _look_at_request(self, conn: Any, arrival: Arrival) -> None:
        """Whether it is whole."""
        before = len(arrival.received)
        try:
            is_whole = arrival.is_whole(now=time.monotonic(), send=partial(_send, conn.sock))
        except RequestRefused as refused:
            return self._refuse(conn, str(refused))
        self._received_bytes += len(arrival.received) - before
        if is_whole:
            self._hand_over(conn, arrival)

    def _hand_over(self, conn: Any, arrival: Arrival) -> None:
        self._leave(conn)
        if conn.parser is None:
            conn.parser = http.get_parser(self.cfg, conn.sock, conn.client)
        conn.parser.unreader.unread(bytes(arrival.received))
        conn.initialized = conn.data_ready = True
        self._answers[conn] = Answer(progress(conn.sock))
        peer = str(conn.client[0]) if isinstance(conn.client, tuple) else ""
        proxies = settings.LAKEHUB_PROXIES
        client = forwarded_client(arrival.forwarded_for, peer, proxies) if proxies else peer
        self._queue.add(conn, network_of(client), len(arrival.received))
        self._give_out_threads(new=conn)

    def _give_out_threads(self, new: Any = None) -> None:
        """To those who have waited, if they are still there, and `new`."""
        while (conn := self._queue.take()) is not None:
            if conn is new or not _has_left(conn.sock):
                super().enqueue_req(conn)
                continue
            self._queue.give_back(conn)
            self._close_in_line(conn)

    def _send_away(self) -> bool:
        """The newest of the longest line; whether there was one."""
        conn = self._queue.drop()
        if conn is None:
            return False
        _send(
            conn.sock,
            b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        )
        self.log.info("A request from %s was sent away: too much waits for a thread", conn.client)
        self._close_in_line(conn)
        return True

    def _close_in_line(self, conn: Any) -> None:
        self._answers.pop(conn, None)  # not there where the answer before was broken off
        self.nr_conns -= 1
        conn.close()

    def handle(self, conn: Any) -> Any:
        """In a thread, whose lines of the log are about this request from now on."""
        clear_contextvars()
        return super().handle(conn)

    def finish_request(self, conn: Any, fs: Any) -> None:
        self._answers.pop(conn, None)
        self._queue.give_back(conn)
        if fs.cancelled() or (fs.exception() is None and not fs.result()):
            self._say_goodbye(conn)
        else:
            super().finish_request(conn, fs)
        self._give_out_threads()

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
        if self._has_no_file or self.nr_conns >= self.worker_connections:
            has_room = self._close_one()
            if self._has_no_file and not has_room:
                time.sleep(NO_FILE_S)
            self._has_no_file = False

    def _close_one(self) -> bool:
        """One that nobody waits for, else of those that wait for a thread. Whether there was one."""
        if self._leaving:
            self._close_leaving(next(iter(self._leaving)))
        elif self.keepalived_conns:
            self._close(self.keepalived_conns.popleft())
        else:
            return self._send_away()
        return True

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
        for conn in too_slow(self._answers, self._queue.most_of_one, somebody_waits=not self._queue.is_empty):
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
        self._leave(conn)
        self.nr_conns -= 1
        conn.close()

    def _leave(self, conn: Any) -> None:
        self._received_bytes -= len(self._arrivals.pop(conn).received)
        self.poller.unregister(conn.sock)

    def _close(self, conn: Any) -> None:
        """One that the loop looks at."""
        self.poller.unregister(conn.sock)
        self.nr_conns -= 1
        conn.close()


def _send(sock: socket.socket, text: bytes) -> None:
    """A few bytes that nobody waits for."""
    with suppress(OSError):
        sock.send(text)


def _has_left(sock: socket.socket) -> bool:
    try:
        return not sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _break_off(sock: socket.socket) -> None:
    """Wakes the thread that sends, which closes it. What was not sent is thrown away: the kernel would hold it for a client that takes nothing."""
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.shutdown(socket.SHUT_RDWR)
