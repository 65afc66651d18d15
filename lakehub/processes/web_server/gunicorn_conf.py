"""How gunicorn runs Lakehub, besides what the Procfile says: `gunicorn lakehub.wsgi --config python:lakehub.processes.web_server.gunicorn_conf`."""

from __future__ import annotations

import gc
import resource
import sys
from typing import Any

from gunicorn import glogging

from lakehub.logs import configure_logging
from lakehub.processes.web_server.buffered_worker import forget_worker

keepalive = 15
"""Seconds: who asks every few seconds keeps the connection."""

forwarder_headers = ""
"""No header says which address is asked for: gunicorn would believe `SCRIPT_NAME` of a proxy, which may hand on a client's."""

SWITCH_S = 0.0005
"""A thread that waits for its turn, as after each query of the database, waits for so long while another one computes (0.005
unless told otherwise): an answer of five queries beside the drawing of a page is not five times as late."""


FILES = 4096
"""A process has a thousand connections, and opens files and connections of its own; many systems let it have 1,024 unless it asks."""


class Logger(glogging.Logger):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's own lines, in the form of all others."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        configure_logging()
        self.error_log.handlers.clear()
        self.error_log.propagate = True


logger_class = Logger


def post_worker_init(worker: Any) -> None:
    """Before a process takes its first request: all addresses are known, and what stays is never looked through for garbage."""
    from django.urls import resolve

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(FILES, hard)), hard))
    resolve("/api/v1/gate")
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.freeze()


def child_exit(_server: Any, worker: Any) -> None:
    forget_worker(worker)
