"""The instance: `manage.py up` in a folder of its own, started again whenever it ends, as systemd would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

from lakehub.processes.commands import process_commands
from lakehub.processes.supervisor.process_tree import descendants
from lakehub.setup.artifacts import PROJECT_ROOT
from tests import brief_jvms
from tests.polling import scaled

MARK = "SOAK_INSTANCE"
"""A variable that every process of the instance has, its JVM too, and no other process."""
COMM_LENGTH = 15
"""So long is a process's name as the kernel keeps it."""
RESTART_AFTER_S = 0.9
GONE_WITHIN_S = 10.0
"""So long after `up` has ended, none of its processes may be left."""
PROCESSES = tuple(process_commands())


class Instance:
    def __init__(self, home: Path, log: Path, bind: str, environment: Mapping[str, str]) -> None:
        self.home, self.log, self.url = home, log, f"http://{bind}"
        self.environment = dict(environment)
        self._findings: list[str] = []
        self.starts = 0
        self.started_at = 0.0
        """The newest of them, in seconds since 1970."""
        self._bind = bind
        self._guard: subprocess.Popen[bytes] | None = None
        self._is_stopping = Event()
        self._keeper = Thread(target=self._keep_running, daemon=True)

    # Running it

    def start(self) -> None:
        self._keeper.start()

    def stop(self) -> None:
        self._is_stopping.set()
        self.terminate()
        self._keeper.join()

    def terminate(self) -> None:
        if self._guard is not None and self._guard.poll() is None:
            self._guard.send_signal(signal.SIGTERM)

    def command(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """`manage.py ...` in the same folder, as an operator would call it."""
        env = self.environment | environment
        env.pop(MARK, None)
        return subprocess.run(
            [sys.executable, PROJECT_ROOT / "manage.py", *words],
            cwd=PROJECT_ROOT, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def take_findings(self) -> list[str]:
        """What was wrong when it ended, since the last call."""
        taken, self._findings = self._findings, []
        return taken

    def _keep_running(self) -> None:
        while not self._is_stopping.is_set():
            self.starts, self.started_at = self.starts + 1, time.time()
            command = [sys.executable, str(PROJECT_ROOT / "manage.py"), "up", "--bind", self._bind]
            with self.log.open("ab") as out:
                self._guard = subprocess.Popen(
                    command, cwd=PROJECT_ROOT, env=self.environment, stdin=subprocess.DEVNULL,
                    stdout=out, stderr=out, start_new_session=True,
                )  # fmt: skip
            self._guard.wait()
            self._expect_nothing_left()
            self._is_stopping.wait(RESTART_AFTER_S)

    def _expect_nothing_left(self) -> None:
        deadline = time.monotonic() + scaled(GONE_WITHIN_S)
        while left := self.processes():
            if time.monotonic() > deadline:
                self._findings.append(f"`up` has ended, and processes of it are left: {left}")
                for pid in left:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                return
            time.sleep(0.1)

    # Looking at it

    @property
    def guard(self) -> int:
        """The process that an operator started."""
        return self._guard.pid if self._guard is not None and self._guard.poll() is None else 0

    @property
    def supervisor(self) -> int:
        return next(iter(descendants(self.guard)), 0) if self.guard else 0

    def process(self, name: str) -> int:
        """Of the Procfile, or `java`; 0 where it does not run."""
        wanted = name if name == "java" else f"lakehub {name}"[:COMM_LENGTH]
        return next((pid for pid in descendants(self.guard) if _comm(pid) == wanted), 0) if self.guard else 0

    def is_up(self) -> bool:
        return all(self.process(name) for name in PROCESSES) and self.answers("/ready")

    def answers(self, path: str) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}{path}", timeout=scaled(5)) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def processes(self) -> dict[int, str]:
        """All of them, whoever their parents are, with their command lines."""
        mark, commands = f"{MARK}={self.home}".encode(), {}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    commands[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:120]
        return commands


def environment_of(home: Path, scratch: Path, bind: str, more: Mapping[str, str]) -> dict[str, str]:
    """What an instance sees; nothing of what another instance on this machine is told. `more`: settings besides those that each has here."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("LAKEHUB_", "DJANGO_"))}
    settings = {
        "LAKEHUB_HOME": str(home),
        "LAKEHUB_BASE_URL": f"http://{bind}",
        "LAKEHUB_WEB_WORKERS": "1",
        "LAKEHUB_LOG_FORMAT": "json",
        "LAKEHUB_SPARK_MEMORY": "512m",
        "JAVA_TOOL_OPTIONS": brief_jvms.options(),
        "TMPDIR": str(scratch),
        MARK: str(home),
        **more,
    }
    settings["LAKEHUB_SPARK_ENVIRONMENT"] = ",".join(name for name in settings if not name.startswith("LAKEHUB_"))
    return own | settings


def set_django_up(environment: Mapping[str, str]) -> None:
    """The harness reads the instance's database with the instance's own models."""
    settings = {name: value for name, value in environment.items() if name.startswith("LAKEHUB_")}
    os.environ.update(settings, DJANGO_SETTINGS_MODULE="lakehub.settings")
    from lakehub.instance import prepare_instance

    prepare_instance(will_migrate=True)
    import django

    django.setup()


def _comm(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""
