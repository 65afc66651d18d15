"""Lakehub's own database, where it is silent: whoever asks whether the instance can work has an answer in seconds."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from django.db import ConnectionHandler
from django.test import Client

from lakehub import environment, health
from tests.polling import scaled
from tests.tcp_forwarder import TcpForwarder

pytestmark = pytest.mark.django_db


def test_ready_says_that_a_server_accepts_and_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    with TcpForwarder() as silent:
        url = f"postgresql://lakehub:secret@127.0.0.1:{silent.port}/lakehub"
        opened = ConnectionHandler({"default": environment.database(url)})["default"]
        monkeypatch.setattr(health, "connection", opened)
        monkeypatch.setattr(health, "database_verdict", health.RecentVerdict(health.ask_database))
        began = time.monotonic()
        answer = Client().get("/ready")
        assert (answer.status_code, answer.json()) == (503, {"status": "not ready", "database": "OperationalError"})
        assert time.monotonic() - began < scaled(30)
        assert silent.accepted == 1


def test_whoever_asks_often_costs_the_database_one_question_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, verdicts = [0.0], ["OperationalError", ""]
    verdict = health.RecentVerdict(lambda: verdicts.pop(0), monotonic=lambda: now_s[0])
    monkeypatch.setattr(health, "database_verdict", verdict)
    client = Client()
    for now_s[0] in (0.0, 0.5, 0.9):
        assert client.get("/ready").json() == {"status": "not ready", "database": "OperationalError"}
    for now_s[0] in (health.VERDICT_S, 1.5, 1.9):
        assert client.get("/ready").status_code == 200
    assert verdicts == []


def test_many_who_ask_at_once_wait_for_the_same_answer() -> None:
    asked: list[None] = []
    may_answer = Event()

    def ask() -> str:
        asked.append(None)
        assert may_answer.wait(scaled(30))
        return ""

    verdict = health.RecentVerdict(ask, monotonic=lambda: 0.0)
    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(verdict.get) for _ in range(4)]
        may_answer.set()
        assert [answer.result(scaled(30)) for answer in answers] == [""] * 4
    assert len(asked) == 1
