"""The demo's own instance: a folder that is made anew, and the real processes in it."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lakehub.processes.commands import process_commands, process_environment
from lakehub.setup.locations import working_folder
from lakehub.setup.machine import scaled

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 25


class ProcessesNotStarted(RuntimeError):
    """The processes did not come up."""


@dataclass(frozen=True)
class Instance:
    """Where the demo lives, and the address that its web application answers on."""

    folder: Path
    bind: str

    @property
    def url(self) -> str:
        return f"http://{self.bind}"

    @property
    def log(self) -> Path:
        return self.folder / "processes.log"

    @property
    def pid_file(self) -> Path:
        return self.folder / "processes.pid"

    def environment(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """The demo's settings; what the caller set for another instance does not count here."""
        others = ("LAKEHUB_DATABASE_URL", "LAKEHUB_BROKER_URL", "LAKEHUB_STAGING", "LAKEHUB_DEBUG", "LAKEHUB_FAILPOINT")
        return {name: value for name, value in environ.items() if name not in others} | {
            "DJANGO_SETTINGS_MODULE": "lakehub.settings",
            "LAKEHUB_HOME": str(self.folder),
            "LAKEHUB_CLOCK": "shifted",
            "LAKEHUB_BIND": self.bind,
            "LAKEHUB_BASE_URL": self.url,
            "LAKEHUB_WEB_WORKERS": "1",
        }

    def clear(self) -> None:
        """End what an earlier demo left running, and remove its folder."""
        pids = self.pid_file.read_text().split() if self.pid_file.is_file() else []
        for pid in map(int, pids):
            if _is_demo_process(pid):
                _terminate(pid)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    @contextmanager
    def running(self) -> Iterator[Processes]:
        """The processes, for as long as the block lasts; their output goes to the log."""
        if not is_free(self.bind):
            raise ProcessesNotStarted(
                f"{self.bind} is taken. Name another address: LAKEHUB_BIND=127.0.0.1:8001 lakehub demo, or make demo"
            )
        processes = Processes(self)
        try:
            processes.start_all()
            yield processes
        finally:
            processes.stop()

    def log_tail(self, lines: int = 30) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.is_file() else ""

    def is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=2) as answer:  # noqa: S310  our own address
                return bool(answer.status == 200)
        except OSError:
            return False


class Processes:
    """What runs: `manage.py up` without the follower, which runs beside it, so that the story can kill it."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._env = process_environment(instance.bind, instance.environment())
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start_all(self) -> None:
        names = [name for name in process_commands() if name != "follow"]
        self._start(
            "others", [sys.executable, "-m", "lakehub", "up", "--no-migrate", *names, "--bind", self._instance.bind]
        )
        self.start_follower()
        self._instance.pid_file.write_text(" ".join(str(process.pid) for process in self._running.values()))

    def start_follower(self) -> None:
        self._start("follow", shlex.split(process_commands(["follow"])["follow"]))

    def kill_follower(self) -> None:
        """As a power cut would: the process and its JVM at once, with no chance to end well."""
        follower = self._running["follow"]
        os.killpg(follower.pid, signal.SIGKILL)
        follower.wait()

    def are_alive(self) -> bool:
        return all(process.poll() is None for process in self._running.values())

    def wait_until_healthy(self) -> None:
        deadline = time.monotonic() + scaled(START_TIMEOUT_S)
        while not self._instance.is_healthy():
            if not self.are_alive() or time.monotonic() > deadline:
                raise ProcessesNotStarted(
                    f"The processes did not come up; the end of {self._instance.log}:\n{self._instance.log_tail()}"
                )
            time.sleep(0.1)

    def stop(self) -> None:
        for process in self._running.values():
            process.send_signal(signal.SIGTERM)
        for process in self._running.values():
            try:
                process.wait(scaled(STOP_TIMEOUT_S))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
        self._instance.pid_file.unlink(missing_ok=True)

    def _start(self, name: str, command: list[str]) -> None:
        with self._instance.log.open("ab") as log:
            self._running[name] = subprocess.Popen(
                command,
                cwd=working_folder(),
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


def is_free(bind: str) -> bool:
    host, _, port = bind.rpartition(":")
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except OSError:
            return False
    return True


def free_address() -> str:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def _is_demo_process(pid: int) -> bool:
    """Still the supervisor that the file was written for, not another process that got its number."""
    command = subprocess.run(
        ["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    return any(program in command for program in ("-m lakehub up", "lakehub.processes.supervisor", "lakehub.celery"))


def _terminate(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + scaled(STOP_TIMEOUT_S)
    while _is_demo_process(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
