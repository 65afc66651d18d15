from __future__ import annotations

import logging
import random
import signal
import socket
import threading
import time
from functools import partial
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError, connection

from ingestion.following.follower import LONGEST_WAIT, Follower
from ingestion.following.look_threads import LookThreads
from ingestion.following.news import News
from ingestion.launchers.configured import DeferredLauncher
from ingestion.ports import input_gate
from ingestion.runs import leases
from ingestion.runs.run_worker import Worker
from lakehub import wiring
from lakehub.db.change_mark import ChangeMark
from lakehub.kernel.error_isolation import log_and_continue

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Follow the loaded copies: the process `follow`, as many as there are batches at once."

    def handle(self, **options: Any) -> None:
        stop, wake = threading.Event(), threading.Event()

        def end(*_: object) -> None:
            stop.set()
            wake.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        launcher = DeferredLauncher()
        free_leases, clock = partial(leases.release_leases_of_dead_processes, socket.gethostname()), time.monotonic
        news = News(ChangeMark(), free_leases=free_leases, monotonic=clock)
        follower = Follower(_worker(launcher), LookThreads(), has_news=news, wake=wake.set, monotonic=clock)
        wait_s = 0.0
        while not stop.is_set():
            wake.wait(wait_s)
            wake.clear()
            wait_s = _step(follower)
        with log_and_continue("Giving the follow runs back"):
            follower.give_back()
        launcher.close()


def _step(follower: Follower) -> float:
    """Seconds until the next."""
    try:
        return follower.step().total_seconds()
    except Exception as problem:
        logger.exception("A step of following failed; it is tried again")
        if isinstance(problem, DatabaseError):
            connection.close()
        return LONGEST_WAIT.total_seconds()


def _worker(launcher: DeferredLauncher) -> Worker:
    return Worker(
        name=leases.own_holder_name(),
        launcher=launcher,
        staging=settings.LAKEHUB_STAGING.as_uri(),
        clock=wiring.clock.now,
        clock_offset=wiring.clock.ahead,
        draw_jitter=random.random,
        gate=input_gate(),
    )
