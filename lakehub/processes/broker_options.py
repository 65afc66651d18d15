"""How Celery speaks to the broker: the options of its transport. Imports no Celery, as the settings read it."""

from __future__ import annotations

import socket
from pathlib import Path

from lakehub import instance

SILENCE_S = 3
"""A server that says nothing for so long is given up by whoever sends: a web thread, `beat`. Workers wait for a task by polls of a
second, so a server that is there always answers them in time, also where there is nothing to do."""
_HEALTH_CHECK_S = 10
"""A worker whose poll is overdue by this drops its connection and makes another one."""
_KEEPALIVE = {socket.TCP_KEEPIDLE: 10, socket.TCP_KEEPINTVL: 5, socket.TCP_KEEPCNT: 3}
"""For a peer that is gone without a word: its machine, or the memory of a firewall."""
REDIS: dict[str, object] = {
    "socket_connect_timeout": SILENCE_S,
    "socket_timeout": SILENCE_S,
    "socket_keepalive": True,
    "socket_keepalive_options": _KEEPALIVE,
    "health_check_interval": _HEALTH_CHECK_S,
}


def transport_options(broker: str, home: Path) -> dict[str, object]:
    if broker.startswith("filesystem"):
        folder = instance.broker_folder(home)
        return {
            "data_folder_in": str(folder / "queue"),
            "data_folder_out": str(folder / "queue"),
            "control_folder": str(folder / "control"),
            "store_processed": False,
        }
    return dict(REDIS) if broker.startswith(("redis:", "rediss:")) else {}
