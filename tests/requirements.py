"""What a test may need from the machine, how to see whether it is there, and how to get it."""

from __future__ import annotations

import os
import shutil
import socket
from enum import Enum
from pathlib import Path
from urllib.parse import urlsplit

CACHE = Path(os.environ.get("LAKEHUB_CACHE", Path(__file__).resolve().parent.parent / ".cache"))


class Service(Enum):
    """Each is (the variable that says where it is, its usual address, how to get it)."""

    REDIS = (
        "LAKEHUB_TEST_REDIS_URL",
        "redis://127.0.0.1:6399/0",
        "`apt-get install redis-server`, then `deploy/services/redis start`",
    )
    POSTGRESQL = (
        "LAKEHUB_TEST_POSTGRESQL_URL",
        "postgresql://postgres@127.0.0.1:5499/postgres",
        "`apt-get install postgresql`, then `deploy/services/postgresql start`",
    )
    MARIADB = (
        "LAKEHUB_TEST_MARIADB_URL",
        "mysql://lakehub:lakehub@127.0.0.1:3399",
        "`apt-get install mariadb-server`, then `deploy/services/mariadb start`",
    )
    KAFKA = (
        "LAKEHUB_TEST_KAFKA_URL",
        "kafka://127.0.0.1:9599",
        "`deploy/services/kafka start`, which fetches it",
    )
    HBASE = (
        "LAKEHUB_TEST_HBASE_URL",
        "hbase://127.0.0.1:9699?quorum=127.0.0.1:9700",
        "`deploy/services/hbase start`, which fetches it",
    )
    OPENID = (
        "LAKEHUB_TEST_OPENID_URL",
        "http://127.0.0.1:4499",
        "`apt-get install nodejs npm`, then `deploy/services/openid start`",
    )
    AIRFLOW = ("LAKEHUB_TEST_AIRFLOW", str(CACHE / "airflow" / "bin" / "airflow"), "`make airflow`")
    CHROMIUM = ("LAKEHUB_TEST_CHROMIUM", "chromium", "`apt-get install chromium`")

    def address(self) -> str:
        variable, usual, _ = self.value
        named = os.environ.get(variable, usual)
        return named if "://" in named else shutil.which(named) or named


def missing_service(need: Service) -> str | None:
    """What is missing and how to get it; None where it is there."""
    variable, _, remedy = need.value
    address = need.address()
    if _answers(address) if "://" in address else shutil.which(address):
        return None
    return f"{need.name.lower()} is not at {address}. Get it: {remedy}; or say where it is with {variable}."


def _answers(url: str) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 0), timeout=1):
            return True
    except OSError:
        return False
