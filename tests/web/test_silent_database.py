"""Lakehub's own database, where it is silent: whoever asks whether the instance can work has an answer in seconds."""

from __future__ import annotations

import time

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
        began = time.monotonic()
        answer = Client().get("/ready")
        assert (answer.status_code, answer.json()) == (503, {"status": "not ready", "database": "OperationalError"})
        assert time.monotonic() - began < scaled(30)
        assert silent.accepted == 1
