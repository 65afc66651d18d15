"""`manage.py up` as an operator runs it: embedded, and on PostgreSQL and Redis."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from lakehub.demo.instance import free_address
from lakehub.instance import UnusableInstance, prepare_instance
from lakehub.setup.artifacts import PROJECT_ROOT
from tests.polling import wait_until

WITHIN_S = 60


@contextmanager
def up(folder: Path, **settings: str) -> Iterator[tuple[str, subprocess.Popen[bytes], Path]]:
    """The processes of a new instance in `folder`; its address, the supervisor and the log."""
    bind, log = free_address(), folder / "log"
    own = {name: value for name, value in os.environ.items() if not name.startswith(("LAKEHUB_", "DJANGO_"))}
    env = own | {"LAKEHUB_HOME": str(folder), "LAKEHUB_WEB_WORKERS": "1", "LAKEHUB_WORKERS": "1"} | settings
    command = [sys.executable, str(PROJECT_ROOT / "manage.py"), "up", "--bind", bind]
    with log.open("wb") as out:
        processes = subprocess.Popen(command, cwd=PROJECT_ROOT, env=env, stdout=out, stderr=out, start_new_session=True)
    try:
        yield f"http://{bind}", processes, log
    finally:
        if processes.poll() is None:
            processes.send_signal(signal.SIGTERM)
        processes.wait(WITHIN_S)


def wait_for(holds: Callable[[], bool], log: Path) -> None:
    wait_until(holds, within_s=WITHIN_S, otherwise=lambda: log.read_text(errors="replace")[-3000:])


def answers(url: str, path: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}{path}", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def says(log: Path, *words: str) -> bool:
    text = log.read_text(errors="replace")
    return all(word in text for word in words)


@pytest.fixture
def database(postgresql_url: str) -> Iterator[str]:
    """A new, empty PostgreSQL database."""
    name = f"lakehub_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
        yield f"{postgresql_url.rpartition('/')[0]}/{name}"
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def test_up_serves_embedded_and_ends_with_nothing_left(tmp_path: Path) -> None:
    with up(tmp_path) as (url, processes, log):
        wait_for(lambda: answers(url, "/ready"), log)
        wait_for(lambda: says(log, "worker started", "spark started", "beat started"), log)
        group = processes.pid
    assert says(log, "web stopped", "worker stopped", "spark stopped", "beat stopped")
    left = subprocess.run(
        ["ps", "-o", "command=", "-s", str(group)], capture_output=True, text=True, check=False
    ).stdout
    assert left == ""


def test_one_that_dies_ends_all(tmp_path: Path) -> None:
    with up(tmp_path) as (url, processes, log):
        wait_for(lambda: answers(url, "/health"), log)
        beat = next(line for line in log.read_text().splitlines() if "beat started" in line)
        os.kill(int(beat.partition("pid=")[2].rstrip(")")), signal.SIGKILL)
        wait_for(lambda: processes.poll() is not None, log)
    assert says(log, "web stopped", "worker stopped")


def test_the_same_processes_run_on_postgresql_and_redis(tmp_path: Path, database: str, redis_url: str) -> None:
    with up(tmp_path, LAKEHUB_DATABASE_URL=database, LAKEHUB_BROKER_URL=redis_url) as (url, _, log):
        wait_for(lambda: answers(url, "/ready"), log)
        wait_for(lambda: says(log, "worker started", "beat started"), log)
    assert not says(log, "Traceback")


def test_a_server_has_the_key_of_the_host_that_migrated_it(tmp_path: Path, database: str) -> None:
    first, second = ({"LAKEHUB_HOME": str(tmp_path / name), "LAKEHUB_DATABASE_URL": database} for name in ("1", "2"))
    prepare_instance(first, will_migrate=True)
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE django_migrations ()")
    prepare_instance(first, will_migrate=True)
    with pytest.raises(UnusableInstance, match="has tables of Lakehub"):
        prepare_instance(second, will_migrate=True)
    assert [path.parent.name for path in tmp_path.glob("*/encryption_key")] == ["1"]
