"""How gunicorn is told to run Lakehub."""

from __future__ import annotations

import gc
import shlex
import sys
from collections.abc import Iterator

import pytest
from gunicorn.app.wsgiapp import WSGIApplication

from lakehub.processes import gunicorn_conf
from lakehub.processes.commands import process_commands


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
