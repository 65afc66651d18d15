from __future__ import annotations

import logging
import signal
import socket
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from ingestion.captures.changelog import configured_changelog
from ingestion.captures.servers import PlannedCapture
from ingestion.runs import leases
from ingestion.tapping.parts import TapParts
from ingestion.tapping.server_tap import ServerTap
from ingestion.tapping.session import open_session
from ingestion.tapping.tap_threads import TapThread
from ingestion.tapping.tapper import Tapper
from ingestion.tapping.topics.session import open_topics_session
from lakehub import wiring
from lakehub.db.change_mark import ChangeMark
from lakehub.kernel.registry import UnknownPlugin

logger = logging.getLogger(__name__)

STEP_EVERY_S = 1.0
END_WITHIN_S = 8.0
"""A tap ends when it has heard from its server once more, which takes some seconds at most; then it is left to the end of the process."""


class Command(BaseCommand):
    help = "Read the binlogs of servers, and the topics of clusters, that datasets are captured from: the process `tap`; a second one takes over when the first ends."

    def handle(self, **options: Any) -> None:
        ended = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: ended.set())
        holder, parts = leases.own_holder_name(), _parts()

        def start(server: str, plan: Sequence[PlannedCapture]) -> TapThread:
            opened = open_topics_session if server.startswith("kafka:") else open_session
            return TapThread(ServerTap(server, plan, holder, parts, opened))

        free_leases = partial(leases.release_leases_of_dead_processes, socket.gethostname())
        tapper = Tapper(holder, mark=ChangeMark(), free_leases=free_leases, start=start, monotonic=time.monotonic)
        while not ended.wait(STEP_EVERY_S):
            _step(tapper)
        deadline = time.monotonic() + END_WITHIN_S
        for running in tapper.end():
            running.join(max(0.0, deadline - time.monotonic()))


def _step(tapper: Tapper) -> None:
    try:
        tapper.step()
    except Exception as problem:
        logger.exception("A look for servers to tap failed; it is made again")
        if isinstance(problem, DatabaseError):
            connection.close()


def _parts() -> TapParts:
    try:
        changelog = configured_changelog()
    except UnknownPlugin as unknown:
        raise CommandError(f"LAKEHUB_CHANGELOG: {unknown}") from unknown
    return TapParts(changelog, settings.SECRET_KEY, wiring.clock.now, time.monotonic, time.sleep)
