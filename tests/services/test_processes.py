"""`manage.py up` as an operator runs it: embedded, and on PostgreSQL and Redis."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from lakehub.demo.instance import free_address
from lakehub.instance import UnusableInstance, prepare_instance
from lakehub.processes.celery_app import SPARK_NICENESS
from lakehub.processes.supervisor import process_tree
from lakehub.setup.artifacts import PROJECT_ROOT
from tests.polling import scaled, wait_until

WITHIN_S = 60


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an instance whose database is made: to make it anew for each test would take half of its time."""
    home = tmp_path_factory.mktemp("migrated")
    own = {name: value for name, value in os.environ.items() if not name.startswith(("LAKEHUB_", "DJANGO_"))}
    command = [sys.executable, str(PROJECT_ROOT / "manage.py"), "migrate", "--verbosity", "0"]
    subprocess.run(command, cwd=PROJECT_ROOT, env=own | {"LAKEHUB_HOME": str(home)}, check=True)
    return home


@pytest.fixture
def home(migrated: Path, tmp_path: Path) -> Path:
    return shutil.copytree(migrated, tmp_path / "home")


@contextmanager
def up(
    folder: Path, address: str = "", only: Sequence[str] = (), **settings: str
) -> Iterator[tuple[str, subprocess.Popen[bytes], Path]]:
    """The processes of a new instance in `folder`; its address, the supervisor and the log."""
    bind, log = address or free_address(), folder / "log"
    own = {name: value for name, value in os.environ.items() if not name.startswith(("LAKEHUB_", "DJANGO_"))}
    env = own | {"LAKEHUB_HOME": str(folder), "LAKEHUB_WEB_WORKERS": "1", "LAKEHUB_WORKERS": "1"} | settings
    command = [sys.executable, str(PROJECT_ROOT / "manage.py"), "up", *only, "--bind", bind]
    with log.open("wb") as out:
        processes = subprocess.Popen(command, cwd=PROJECT_ROOT, env=env, stdout=out, stderr=out, start_new_session=True)
    try:
        yield f"http://{bind}", processes, log
    finally:
        if processes.poll() is None:
            processes.send_signal(signal.SIGTERM)
        processes.wait(scaled(WITHIN_S))


def wait_for(holds: Callable[[], bool], log: Path) -> None:
    wait_until(holds, within_s=WITHIN_S, otherwise=lambda: log.read_text(errors="replace")[-3000:])


def answers(url: str, path: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}{path}", timeout=scaled(2)) as answer:
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


def processes_of(home: Path) -> dict[int, str]:
    """The programs that run for the instance, whoever their parents are: by the variable that all of them have."""
    programs = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"LAKEHUB_HOME={home}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                programs[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return programs


def pid_of(log: Path, name: str) -> int:
    started = next(line for line in log.read_text().splitlines() if f"{name} started" in line)
    return int(started.partition("pid=")[2].rstrip(")"))


def has_pool(log: Path) -> bool:
    """The worker's pool runs: the process of the worker, and as many children."""
    return says(log, "worker@", "ready") and bool(process_tree.descendants(pid_of(log, "worker")))


def wait_until_all_run(url: str, log: Path) -> None:
    wait_for(lambda: answers(url, "/ready"), log)
    wait_for(lambda: says(log, "web started", "worker started", "spark started", "beat started"), log)
    wait_for(lambda: has_pool(log), log)


def test_up_serves_embedded_and_ends_with_nothing_left(tmp_path: Path) -> None:
    with up(tmp_path, LAKEHUB_STOP_SECONDS=str(WITHIN_S)) as (url, processes, log):
        wait_until_all_run(url, log)
        processes.send_signal(signal.SIGTERM)
        assert processes.wait(scaled(WITHIN_S)) == 128 + signal.SIGTERM
        assert processes_of(tmp_path) == {}
    assert says(log, "web stopped", "worker stopped", "spark stopped", "beat stopped"), log.read_text()


@pytest.fixture(scope="module")
def running(migrated: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int, Path]]:
    """An instance whose processes all run, for the tests that leave it so: its address, the supervisor's pid and the log in its folder."""
    home = shutil.copytree(migrated, tmp_path_factory.mktemp("running") / "home")
    with up(home) as (url, processes, log):
        wait_until_all_run(url, log)
        yield url, processes.pid, log


def test_jobs_of_spark_come_after_pages_and_changes_and_so_does_their_session(running: tuple[str, int, Path]) -> None:
    """Each process is a session of its own, among which the niceness of a process counts for nothing, where a kernel knows that of sessions."""
    has_groups = Path("/proc/self/autogroup").exists()
    own = os.getpriority(os.PRIO_PROCESS, 0)
    after = min(19, own + SPARK_NICENESS)
    _, _, log = running

    def niceness(name: str) -> tuple[int, int | None]:
        """Of the process and of its session."""
        group = Path(f"/proc/{pid_of(log, name)}/autogroup")
        of_session = int(group.read_text().rpartition(" ")[2]) if group.exists() else None
        return os.getpriority(os.PRIO_PROCESS, pid_of(log, name)), of_session

    wait_for(lambda: says(log, "follow started", "tap started"), log)
    wait_for(lambda: niceness("spark") == (after, after if has_groups else None), log)
    assert {niceness(name) for name in ("follow", "tap")} == {(own, 0 if has_groups else None)}
    assert {niceness(name)[0] for name in ("web", "worker", "beat")} == {own}


def test_a_killed_up_leaves_nothing_and_the_next_start_works(home: Path) -> None:
    with up(home) as (url, processes, log):
        wait_until_all_run(url, log)
        processes.kill()
        wait_until(lambda: processes_of(home) == {}, within_s=10, otherwise=lambda: str(processes_of(home)))
    with up(home, address=url.removeprefix("http://")) as (url, _, log):
        wait_until_all_run(url, log)


@pytest.mark.parametrize("which", ["supervisor", "web", "worker", "beat"])
def test_one_that_is_killed_ends_all(home: Path, which: str) -> None:
    with up(home) as (url, processes, log):
        wait_until_all_run(url, log)
        inner = process_tree.descendants(processes.pid)[0]
        os.kill(inner if which == "supervisor" else pid_of(log, which), signal.SIGKILL)
        assert processes.wait(scaled(15)) == 128 + signal.SIGKILL
        assert processes_of(home) == {}


def test_a_killed_child_of_the_pool_is_replaced_and_tasks_go_on(running: tuple[str, int, Path]) -> None:
    """As the kernel does when memory is short: while it waits for a task, the child holds whatever the pool shares."""
    _, _, log = running
    send_failing_task(log.parent, "first")
    wait_for(lambda: says(log, "unexpected keyword argument 'first'"), log)
    (child,) = process_tree.descendants(pid_of(log, "worker"))
    os.kill(child, signal.SIGKILL)
    send_failing_task(log.parent, "second")
    wait_for(lambda: says(log, "unexpected keyword argument 'second'"), log)


def send_failing_task(home: Path, argument: str) -> None:
    """What a child of the pool says of it is in the log."""
    program = f"from lakehub.celery import app; app.send_task('quality.tasks.run_due', kwargs={{{argument!r}: 1}})"
    environment = os.environ | {"LAKEHUB_HOME": str(home), "DJANGO_SETTINGS_MODULE": "lakehub.settings"}
    subprocess.run([sys.executable, "-c", program], cwd=PROJECT_ROOT, env=environment, check=True)


def test_what_a_process_started_in_a_session_of_its_own_ends_too(tmp_path: Path) -> None:
    """As a JVM does, or a job of `spark_submit`: it hears of nothing, and is in nobody's group."""
    start = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)'], start_new_session=True)\n"
        "print('both run', flush=True); time.sleep(600)"
    )
    supervise = (
        "import os, sys; from lakehub.processes.supervisor import run\n"
        f"sys.exit(run.supervise({{'one': {shlex.join([sys.executable, '-c', start])!r}}}, run.launch_shell))"
    )
    for stop in (signal.SIGTERM, signal.SIGKILL):
        env = os.environ | {"LAKEHUB_HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
        with subprocess.Popen(
            [sys.executable, "-c", supervise], cwd=PROJECT_ROOT, env=env, stdout=subprocess.PIPE
        ) as process:
            try:
                assert process.stdout is not None
                assert any(b"both run" in line for line in process.stdout)
                assert len(processes_of(tmp_path)) == 4
            finally:
                process.send_signal(stop)
                process.wait(scaled(15))
            wait_until(lambda: processes_of(tmp_path) == {}, within_s=10, otherwise=lambda: str(processes_of(tmp_path)))


def test_a_process_that_hangs_does_not_keep_the_others_from_ending(home: Path) -> None:
    with up(home, LAKEHUB_STOP_SECONDS="9") as (url, processes, log):
        wait_until_all_run(url, log)
        worker = pid_of(log, "worker")
        for pid in (worker, *process_tree.descendants(worker)):
            os.kill(pid, signal.SIGSTOP)
        begun = time.monotonic()
        processes.send_signal(signal.SIGTERM)
        processes.wait(scaled(WITHIN_S))
        assert 9 <= time.monotonic() - begun < 15
        assert processes_of(home) == {}
    assert says(log, "web stopped", "beat stopped", "worker did not end within 9 s: it is killed"), log.read_text()


def test_a_time_to_stop_that_is_none_is_refused(home: Path) -> None:
    with up(home, LAKEHUB_STOP_SECONDS="0") as (_, refused, log):
        assert refused.wait(scaled(WITHIN_S)) == 1
    assert says(log, "LAKEHUB_STOP_SECONDS='0' is too few: 1 is the least.")


def test_a_second_start_says_who_runs(running: tuple[str, int, Path], tmp_path: Path) -> None:
    url, supervisor, log = running
    with up(tmp_path, LAKEHUB_HOME=str(log.parent)) as (_, refused, refusal):
        assert refused.wait(scaled(WITHIN_S)) == 1
    assert says(refusal, f"already runs in {log.parent}: process {supervisor} on", f"at {url}.", "Stop it first")
    assert answers(url, "/ready")


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
