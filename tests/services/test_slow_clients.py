"""Clients that send slowly stop nobody: real connections to the real server, more of them than it has threads."""

from __future__ import annotations

import json
import os
import socket
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from lakehub.processes.supervisor import process_tree
from lakehub.processes.web_server import buffered_worker
from tests.polling import scaled, wait_until
from tests.services.test_processes import answers, up, wait_for

NORMAL = 20
ANSWER_WITHIN_S = 5
"""A thread that a slow client had would be free after 10 s at the earliest."""
HEAD = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
BODY_HEAD = b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nusername="

THREADS = 4
OF_ONE_CALLER = THREADS - 1
ELSEWHERE = "127.0.0.2"
"""An address of another caller."""
LARGE = b"GET /static/plotly/plotly.min.js HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
SIP, SIP_EVERY_S = 700, 0.5
ANSWER_AMONG_SLOW_S = 20
LET_GO_WITHIN_S = 20
MODEST_SIP, MODEST_RATE = 64 * 1024, 250_000

KEPT, THREADS = 12, 4
FORM = b"Content-Type: application/x-www-form-urlencoded\r\nCookie: csrftoken=" + b"c" * 32 + b"\r\n"
"""Whoever gets this from a thread looks for the form's token in the body, and waits for it."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    folder = tmp_path_factory.mktemp("slow")
    with up(folder, only=["web"], LAKEHUB_WEB_WORKERS="1") as (url, _, log):
        wait_for(lambda: answers(url, "/ready"), log)
        host, _, port = url.removeprefix("http://").partition(":")
        yield host, int(port)


@contextmanager
def slow_clients(server: tuple[str, int], count: int, begun: bytes) -> Iterator[list[socket.socket]]:
    """Connections on which a request has begun and does not end."""
    with ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(server, timeout=30)) for _ in range(count)]
        for client in clients:
            client.sendall(begun)
        yield clients


def ask(server: tuple[str, int]) -> int:
    url = f"http://{server[0]}:{server[1]}/health"
    with urllib.request.urlopen(url, timeout=scaled(ANSWER_WITHIN_S)) as answer:
        return int(answer.status)


@pytest.mark.parametrize("begun", [b"", HEAD, BODY_HEAD], ids=["silent", "headers", "body"])
@pytest.mark.parametrize("count", [8, 200])
def test_slow_clients_keep_nobody_from_an_answer(server: tuple[str, int], count: int, begun: bytes) -> None:
    with slow_clients(server, count, begun) as clients, ThreadPoolExecutor(4) as pool:
        statuses = list(pool.map(lambda _: ask(server), range(NORMAL)))
        if begun:
            for client in clients:
                client.sendall(b"x")  # they go on, byte by byte
        statuses += list(pool.map(lambda _: ask(server), range(NORMAL)))
    assert statuses == [200] * 2 * NORMAL


def test_a_slow_second_request_of_a_kept_connection_keeps_nobody_from_an_answer(server: tuple[str, int]) -> None:
    with slow_clients(server, 8, b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") as clients:
        for client in clients:
            assert client.recv(4096).startswith(b"HTTP/1.1 200")
            client.sendall(HEAD)
        assert [ask(server) for _ in range(NORMAL)] == [200] * NORMAL


def test_headers_that_do_not_end_in_time_are_let_go(server: tuple[str, int]) -> None:
    with slow_clients(server, 1, HEAD) as (client,):
        assert client.recv(4096).startswith(b"HTTP/1.1 408 ")
        assert client.recv(4096) == b""


def test_of_more_than_there_may_be_the_longest_on_its_way_is_let_go(server: tuple[str, int]) -> None:
    with slow_clients(server, buffered_worker.MAX_RECEIVING + 5, HEAD) as clients:
        assert clients[0].recv(4096).startswith(b"HTTP/1.1 408 ")
        assert ask(server) == 200


def test_a_request_in_pieces_is_answered(server: tuple[str, int]) -> None:
    body = json.dumps({"dataset": "none"}).encode()
    head = f"POST /api/v1/gate/batch HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with socket.create_connection(server, timeout=30) as client:
        for byte in head + body:
            client.sendall(bytes([byte]))
        assert client.recv(4096).split()[1] in (b"401", b"403", b"404", b"405")


def test_requests_that_are_sent_without_waiting_are_answered_in_turn(server: tuple[str, int]) -> None:
    request = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with socket.create_connection(server, timeout=30) as client:
        client.sendall(request * 5 + request.replace(b"Host", b"Connection: close\r\nHost"))
        answered = b"".join(iter(lambda: client.recv(65536), b""))
    assert answered.count(b"HTTP/1.1 200") == 6


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"Transfer-Encoding: chunked", b"411"),
        (b"Content-Length: 3000000", b"413"),
        (b"X-Long: " + b"x" * 70_000, b"431"),
        (b"Content-Length: 1\r\nContent-Length: 2", b"400"),
        (b"Content-Length: -1", b"400"),
        (b"Content-Length: " + b"0" * 20 + b"9", b"400"),
        (b"Content-Length:\r\n 9", b"400"),
    ],
    ids=["chunked", "too large", "long headers", "two lengths", "no length", "long length", "folded length"],
)
def test_what_cannot_be_received_is_refused_at_once(server: tuple[str, int], head: bytes, status: bytes) -> None:
    with socket.create_connection(server, timeout=30) as client:
        client.sendall(b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\n" + FORM + head + b"\r\n\r\n")
        assert client.recv(4096).split()[1] == status


def test_no_header_changes_the_address_that_is_asked_for(server: tuple[str, int]) -> None:
    """The server believes its neighbours on this machine, such as a proxy, which may hand on what a client has sent."""
    connection = HTTPConnection(*server, timeout=30)
    connection.request("GET", "/x/sign-in", headers={"SCRIPT_NAME": "/x", "PATH_INFO": "/sign-in"})
    assert connection.getresponse().status == 404
    connection.close()


def test_who_waits_for_a_word_before_the_body_gets_it(server: tuple[str, int]) -> None:
    with socket.create_connection(server, timeout=30) as client:
        client.sendall(
            b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        )
        assert client.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"{}")
        assert client.recv(65536).startswith(b"HTTP/1.1 403 ")


def test_a_large_static_file_comes_whole(server: tuple[str, int]) -> None:
    connection = HTTPConnection(*server, timeout=30)
    connection.request("GET", "/static/plotly/plotly.min.js")
    response = connection.getresponse()
    content = response.read()
    connection.close()
    assert response.status == 200
    assert len(content) == int(response.headers["Content-Length"]) > 1_000_000


def test_clients_that_take_little_of_an_answer_keep_nobody_from_one(server: tuple[str, int]) -> None:
    """Twice as many as there are threads: each of them takes something before its time is up."""
    with small_windows(server, 8) as clients, ThreadPoolExecutor(1) as pool:
        wait_until(lambda: all(client.recv(SIP) for client in clients[:OF_ONE_CALLER]))
        asked = pool.submit(ask_patiently, server)
        while not asked.done():
            sip(clients)
        assert asked.result() == 200


def test_a_caller_with_many_requests_leaves_a_thread_to_others(server: tuple[str, int]) -> None:
    """Long before the first of them is let go."""
    with small_windows(server, 3 * THREADS, address=ELSEWHERE) as clients:
        wait_until(lambda: all(client.recv(SIP) for client in clients[:OF_ONE_CALLER]))
        assert [ask(server) for _ in range(NORMAL)] == [200] * NORMAL


def test_who_takes_too_little_of_an_answer_is_let_go_though_nobody_waits(server: tuple[str, int]) -> None:
    with small_windows(server, 1) as clients:
        wait_until(lambda: not sip(clients), within_s=LET_GO_WITHIN_S)


def test_a_modest_line_gets_a_large_file_whole(server: tuple[str, int]) -> None:
    """Slower than fits into the time that a client has which takes nothing."""
    with small_windows(server, 1) as (client,):
        started, size = time.monotonic(), 0
        while chunk := client.recv(MODEST_SIP):
            size += len(chunk)
            time.sleep(max(0.0, size / MODEST_RATE - (time.monotonic() - started)))
    assert size > 1_000_000
    assert time.monotonic() - started > buffered_worker.SEND_TIMEOUT_S


@contextmanager
def small_windows(server: tuple[str, int], count: int, *, address: str = "") -> Iterator[list[socket.socket]]:
    """Clients that ask for a large file and have room for little of it."""
    with ExitStack() as stack:
        clients = [stack.enter_context(socket.socket()) for _ in range(count)]
        for client in clients:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(30)
            client.bind((address, 0))
            client.connect(server)
            client.sendall(LARGE)
        yield clients


def sip(clients: list[socket.socket]) -> int:
    """Each takes a little; how many still can."""
    time.sleep(SIP_EVERY_S)
    served = 0
    for client in clients:
        client.setblocking(False)
        try:
            served += bool(client.recv(SIP))
        except BlockingIOError:
            served += 1
        except ConnectionResetError:
            continue
    return served


def ask_patiently(server: tuple[str, int]) -> int:
    """Later than otherwise: each thread had two clients that take little."""
    with urllib.request.urlopen(
        f"http://{server[0]}:{server[1]}/health", timeout=scaled(ANSWER_AMONG_SLOW_S)
    ) as answer:
        return int(answer.status)


def test_a_stop_does_not_wait_for_slow_clients(tmp_path: Path) -> None:
    with up(tmp_path, only=["web"], LAKEHUB_WEB_WORKERS="1") as (url, processes, log):
        wait_for(lambda: answers(url, "/ready"), log)
        host, _, port = url.removeprefix("http://").partition(":")
        with slow_clients((host, int(port)), 20, BODY_HEAD):
            os.kill(processes.pid, 15)
            processes.wait(scaled(9))
    assert "web stopped (rc=0)" in log.read_text()


def test_kept_connections_are_shared_out_to_the_processes(tmp_path: Path) -> None:
    """Else few of them are mostly of the one that is awake. The second process may come later than the first answer."""
    with up(tmp_path, only=["web"], LAKEHUB_WEB_WORKERS="2") as (url, processes, log):
        wait_for(lambda: answers(url, "/ready"), log)
        host, _, port = url.removeprefix("http://").partition(":")
        wait_for(lambda: smaller_share((host, int(port)), processes.pid) >= KEPT // 3, log)


def test_who_does_not_close_its_end_holds_up_nobody(server: tuple[str, int]) -> None:
    """gunicorn waits two seconds for each, in the loop that all connections need."""
    last = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    with slow_clients(server, NORMAL, last):
        assert ask(server) == 200


def test_kept_connections_make_room_for_new_ones(tmp_path: Path) -> None:
    few = {"GUNICORN_CMD_ARGS": f"--worker-connections {KEPT} --keep-alive 60"}
    with up(tmp_path, only=["web"], LAKEHUB_WEB_WORKERS="1", **few) as (url, _, log):
        wait_for(lambda: answers(url, "/ready"), log)
        host, _, port = url.removeprefix("http://").partition(":")
        server = (host, int(port))
        with ExitStack() as stack:
            for _ in range(KEPT):  # of which gunicorn keeps some
                stack.enter_context(_kept_connection(server))
            for _ in range(THREADS):
                stack.enter_context(socket.create_connection(server, timeout=30))
            assert ask(server) == 200


def smaller_share(server: tuple[str, int], supervisor: int) -> int:
    """Of connections that are opened and kept, those of the process that has fewer."""
    with ExitStack() as stack:
        for _ in range(KEPT):
            stack.enter_context(_kept_connection(server))
        shares = connections_by_process(supervisor, server[1])
    return min(shares.values()) if len(shares) == 2 else 0


_ASK_HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def _kept_connection(server: tuple[str, int]) -> socket.socket:
    """One on which a request was answered."""
    client = socket.create_connection(server, timeout=scaled(ANSWER_WITHIN_S))
    client.sendall(_ASK_HEALTH)
    assert client.recv(4096).startswith(b"HTTP/1.1 200")
    return client


def connections_by_process(supervisor: int, port: int) -> Counter[int]:
    """How many are open on that port, by the process that has them."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if row[3] == "01" and row[1].endswith(f":{port:04X}")}
    shares: Counter[int] = Counter()
    for pid in process_tree.descendants(supervisor):
        files = list(Path(f"/proc/{pid}/fd").iterdir())
        shares[pid] = sum(os.readlink(file) in sockets for file in files if file.is_symlink())
    return +shares
