"""The driver `pymysql` on a socket that we hold, which can be shut down while the driver waits for its server."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pymysql.connections import Connection

from lakehub.source_databases.deadline import deadline
from lakehub.source_databases.stop import ConnectionStop
from lakehub.source_databases.timeouts import Timeouts


class _Connection(Connection):  # type: ignore[misc]  # it has no types
    def _force_close(self) -> None:
        """The driver would read on, for the rest of a result of which the connection is gone."""
        super()._force_close()
        if self._result is not None:
            self._result.unbuffered_active = False


def open_pymysql(keywords: Mapping[str, Any], timeouts: Timeouts, stop: ConnectionStop) -> Connection:
    """The driver's own time-out ends before the server's greeting, which may never come: this one ends with the last answer."""
    raw = _Connection(**keywords, defer_connect=True)
    opened = socket.create_connection((raw.host, raw.port), raw.connect_timeout)
    for level, name, value in (
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
        (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
        (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
        (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, timeouts.silence_s * 1000),
    ):
        opened.setsockopt(level, name, value)
    stop.opening(opened)
    with deadline(timedelta(seconds=raw.connect_timeout), stop.shut_down):
        raw.connect(opened)
    return raw
