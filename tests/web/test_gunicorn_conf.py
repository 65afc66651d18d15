"""How gunicorn is told to run Lakehub."""

from __future__ import annotations

import gc
import selectors
import shlex
import socket
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from gunicorn.app.wsgiapp import WSGIApplication
from gunicorn.workers.gthread import ThreadWorker

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


def test_what_came_of_a_request_that_was_let_go_in_the_same_round_does_not_end_the_loop() -> None:
    ours, theirs = socket.socketpair()
    with theirs, selectors.DefaultSelector() as poller:
        arrival = Arrival(0.0, bytearray())
        worker = BufferedWorker.__new__(BufferedWorker)
        worker.poller, worker.nr_conns, worker._arrivals = poller, 0, {}
        ours.close()

        worker._receive(object(), arrival, ours)

    assert worker.nr_conns == 0
