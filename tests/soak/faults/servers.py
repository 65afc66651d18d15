"""The instance's database and broker: killed and started again, locked by somebody else, removed."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from random import Random

from lakehub.instance import broker_folder
from tests.soak.faults import Fault, only_on
from tests.soak.stand.stage import Stage

_DOWN_S = (0.5, 12.0)
_LOCKED_S = (2.0, 12.0)
"""Less than SQLite is waited for."""


def _kill_server(kind: str, stage: Stage, rng: Random) -> Sequence[str]:
    server = stage.servers[kind]
    server.kill()
    time.sleep(rng.uniform(*_DOWN_S))
    server.start()
    return ()


def _lock_database(stage: Stage, rng: Random) -> Sequence[str]:
    """As a backup does that copies the file."""
    with closing(sqlite3.connect(stage.instance.home / "lakehub.db", timeout=60, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        time.sleep(rng.uniform(*_LOCKED_S))
        db.execute("ROLLBACK")
    return ()


def _remove_broker(stage: Stage, _rng: Random) -> Sequence[str]:
    shutil.rmtree(broker_folder(stage.instance.home), ignore_errors=True)
    return ()


FAULTS = (
    Fault(
        "kill -9 PostgreSQL",
        partial(_kill_server, "postgresql"),
        missing=only_on("postgresql"),
        explains="OperationalError|InterfaceError|AdminShutdown|connection|CannotConnectNow",
    ),
    Fault(
        "kill -9 Redis",
        partial(_kill_server, "redis"),
        missing=only_on("postgresql"),
        # The last two: where kombu loses its connection at a moment that it does not expect, the worker ends, and is started again.
        explains="OperationalError|ConnectionError|ConnectionRefused|Error 111|Unrecoverable error|Error on stopping Hub",
    ),
    Fault("database locked", _lock_database, missing=only_on("sqlite"), explains="database is locked"),
    Fault("broker's folder removed", _remove_broker, missing=only_on("sqlite"), explains="FileNotFoundError"),
)
