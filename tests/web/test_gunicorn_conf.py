"""How gunicorn is told to run Lakehub."""

from __future__ import annotations

import errno
import gc
import selectors
import shlex
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain
from types import SimpleNamespace

import pytest
from gunicorn.app.wsgiapp import WSGIApplication
from gunicorn.config import Config
from gunicorn.workers.gthread import ThreadWorker
from pytest_django.fixtures import Settings
from structlog.contextvars import bound_contextvars, get_contextvars

from lakehub.processes.commands import process_commands
from lakehub.processes.web_server import buffered_worker, gunicorn_conf
from lakehub.processes.web_server.buffered_worker import LET_OTHERS_TIMES, Arrival, BufferedWorker


@pytest.fixture
def as_before() -> Iterator[None]:
    interval = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval)
    gc.unfreeze()


def test_gunicorn_understands_what_the_procfile_says(monkeypatch: pytest.MonkeyPatch) -> None:
    line = process_commands(["web"])["web"].replace("${LAKEHUB_BIND:-127.0.0.1:8000}", "127.0.0.1:8000")
    monkeypatch.setattr(sys, "argv", shlex.split(line.replace("${LAKEHUB_WEB_WORKERS:-2}", "2")))

    config = WSGIApplication().cfg

    assert config.keepalive == gunicorn_conf.keepalive
    assert config.post_worker_init is gunicorn_conf.post_worker_init
    assert config.logger_class is gunicorn_conf.Logger
    assert config.forwarder_headers == []


def test_a_process_of_the_server_lets_others_compute_soon(as_before: None, monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[str] = []
    monkeypatch.setattr("django.urls.resolve", known.append)

    gunicorn_conf.post_worker_init(None)

    assert known == ["/api/v1/gate"]
    assert sys.getswitchinterval() == pytest.approx(gunicorn_conf.SWITCH_S)
    assert gc.get_freeze_count() > 0


def test_a_new_connection_is_left_to_a_process_that_has_fewer_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    places = [0] * buffered_worker.MAX_WORKERS
    monkeypatch.setattr(buffered_worker, "_connections", places)
    monkeypatch.setattr(buffered_worker, "LET_OTHERS_S", 0)
    accepted: list[object] = []
    monkeypatch.setattr(ThreadWorker, "accept", lambda self, listener: accepted.append(listener))
    monkeypatch.setattr(ThreadWorker, "wait_for_and_dispatch_events", lambda self, timeout: None)
    worker = BufferedWorker.__new__(BufferedWorker)
    worker.age, worker.nr_conns, worker._left_to_others = 1, 3, 0
    worker.wait_for_and_dispatch_events(1.0)

    worker.accept("alone")
    places[2] = 3 + 1
    worker.accept("as many")
    places[2] = 2 + 1
    for _ in range(LET_OTHERS_TIMES):
        worker.accept("more")
    assert accepted == ["alone", "as many"]
    worker.accept("nobody else has come")
    assert accepted[2:] == ["nobody else has come"]
    gunicorn_conf.child_exit(None, SimpleNamespace(age=2))
    worker.accept("alone again")
    assert accepted[3:] == ["alone again"]


class Loop(BufferedWorker):
    """A worker that gives its requests to nobody; `handed_over` are those that a thread would have."""

    def __init__(self, poller: selectors.BaseSelector, threads: int = 4) -> None:
        config = Config()
        config.set("threads", threads)
        super().__init__(1, 0, [], None, 30, config, SimpleNamespace(info=lambda *_: None))
        self.poller, self.handed_over = poller, list[object]()


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    monkeypatch.setattr(ThreadWorker, "enqueue_req", lambda self, conn: self.handed_over.append(conn))
    with selectors.DefaultSelector() as poller:
        yield Loop(poller)


class Unreader:
    def __init__(self, buffered: bytes) -> None:
        self.buffered = buffered

    def take_buffered(self) -> bytes:
        return self.buffered

    def unread(self, data: bytes) -> None:
        self.buffered = data


class Connection(SimpleNamespace):
    __hash__ = object.__hash__  # type: ignore[assignment]


def connection(sock: socket.socket, *, address: str = "192.0.2.1", buffered: bytes = b"") -> Connection:
    """A connection that was kept, with what was sent behind the last request."""
    parser = SimpleNamespace(unreader=Unreader(buffered))
    return Connection(sock=sock, parser=parser, client=(address, 1), initialized=True, close=sock.close)


REQUEST = b"GET / HTTP/1.1\r\n\r\n"
Pairs = Callable[[int], list[tuple[socket.socket, socket.socket]]]


@pytest.fixture
def pairs() -> Iterator[Pairs]:
    """So many connections, our end and theirs; closed at the end."""
    with ExitStack() as stack:

        def connected(count: int) -> list[tuple[socket.socket, socket.socket]]:
            made = [socket.socketpair() for _ in range(count)]
            for end in chain.from_iterable(made):
                stack.enter_context(end)
            return made

        yield connected


def come(loop: Loop, *connections: Connection) -> None:
    for conn in connections:
        loop.nr_conns += 1
        loop.enqueue_req(conn)


def test_a_request_that_is_there_already_is_answered_before_more_is_read(loop: Loop) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"much more")
        loop.enqueue_req(conn := connection(ours, buffered=REQUEST))

        assert loop.handed_over == [conn]
        assert conn.parser.unreader.buffered == REQUEST
        assert ours.recv(100) == b"much more"


def test_what_is_received_is_bounded_for_all_together(
    loop: Loop, pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffered_worker, "MAX_RECEIVED_BYTES", 250)
    begun = b"POST / HTTP/1.1\r\nContent-Length: 1000\r\n\r\n".ljust(100, b"x")
    clients = pairs(4)
    for ours, theirs in clients:
        theirs.sendall(begun)
        come(loop, connection(ours))

    assert [theirs.recv(12) for _, theirs in clients[:2]] == [b"HTTP/1.1 408"] * 2, (
        "those that are longest on their way"
    )
    assert (len(loop._arrivals), loop._received_bytes, loop.nr_conns) == (2, 200, 2)
    clients[2][1].sendall(bytes(1000))
    for key, _ in loop.poller.select(0):
        key.data(key.fileobj)
    assert (len(loop.handed_over), loop._received_bytes) == (1, 100)


def test_who_is_gone_when_its_turn_comes_is_not_answered(loop: Loop, pairs: Pairs) -> None:
    clients = pairs(5)
    waiting = [connection(ours, buffered=REQUEST) for ours, _ in clients]
    come(loop, *waiting)
    assert loop.handed_over == waiting[:3], "one thread is left to others"
    clients[3][1].close()

    loop._queue.give_back(waiting[0])
    loop._give_out_threads()

    assert loop.handed_over == [*waiting[:3], waiting[4]]
    assert loop.nr_conns == 4


def test_who_was_broken_off_and_waits_in_line_ends_nothing(loop: Loop, pairs: Pairs) -> None:
    """The rest of an answer waits at the client, which has sent another request behind it."""
    clients = pairs(4)
    waiting = [connection(ours, buffered=REQUEST) for ours, _ in clients]
    come(loop, *waiting)
    loop._answers[waiting[3]].usual.left_s = -1.0
    loop._look_at_answers()
    loop._queue.give_back(waiting[0])
    loop._give_out_threads()
    assert (loop.handed_over, loop.nr_conns) == (waiting[:3], 3)


def test_where_there_is_no_room_the_longest_line_makes_it(loop: Loop, pairs: Pairs) -> None:
    loop.worker_connections = 6
    clients = pairs(6)
    for number, (ours, _) in enumerate(clients):
        come(loop, connection(ours, address="192.0.2.1" if number < 5 else "192.0.2.2", buffered=REQUEST))
    loop.murder_pending()
    assert loop.nr_conns == 5
    assert clients[4][1].recv(12) == b"HTTP/1.1 503"


def test_bodies_in_line_are_bounded_too(loop: Loop, pairs: Pairs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffered_worker, "MAX_RECEIVED_BYTES", 350)
    whole = b"POST / HTTP/1.1\r\nContent-Length: 60\r\n\r\n".ljust(100, b"x")
    clients = pairs(8)
    for ours, theirs in clients:
        theirs.sendall(whole)
        come(loop, connection(ours))
    assert (len(loop.handed_over), loop._queue.size, loop.nr_conns) == (3, 300, 6)
    assert [theirs.recv(12) for _, theirs in clients[6:]] == [b"HTTP/1.1 503"] * 2


def test_a_caller_is_the_client_of_a_proxy_that_is_believed(loop: Loop, pairs: Pairs, settings: Settings) -> None:
    settings.LAKEHUB_PROXIES = 1
    clients = pairs(5)
    for number, (ours, _) in enumerate(clients):
        client = 7 if number < 4 else 8
        head = f"GET / HTTP/1.1\r\nX-Forwarded-For: 198.51.100.9, 192.0.2.{client}\r\n\r\nX-Forwarded-For: 1.1.1.1"
        come(loop, connection(ours, buffered=head.encode()))
    assert len(loop.handed_over) == 4
    assert loop._queue._callers[loop.handed_over[3]] == "192.0.2.8"


def test_a_system_without_a_file_for_a_connection_ends_nothing(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was kept makes room, when nothing that was seen in the same round can be about it."""

    def refuse(self: object, listener: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(ThreadWorker, "accept", refuse)
    ours, theirs = socket.socketpair()
    with theirs:
        loop.poller.register(ours, selectors.EVENT_READ)
        loop.nr_conns = 1
        loop.keepalived_conns.append(connection(ours))
        loop.accept(object())
        assert loop.nr_conns == 1
        loop.murder_pending()
        assert (loop.nr_conns, theirs.recv(1)) == (0, b"")


def test_a_line_of_the_log_has_nothing_of_the_thread_s_request_before(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound: list[object] = []
    monkeypatch.setattr(ThreadWorker, "handle", lambda self, conn: bound.append(get_contextvars()))
    with bound_contextvars(caller="ann", request_id="1"):
        loop.handle(object())
    assert bound == [{}]


def test_what_came_of_a_request_that_was_let_go_in_the_same_round_does_not_end_the_loop() -> None:
    ours, theirs = socket.socketpair()
    with theirs, selectors.DefaultSelector() as poller:
        arrival = Arrival(0.0, bytearray())
        worker = BufferedWorker.__new__(BufferedWorker)
        worker.poller, worker.nr_conns, worker._arrivals = poller, 0, {}
        ours.close()

        worker._receive(object(), arrival, ours)

    assert worker.nr_conns == 0
