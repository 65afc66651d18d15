"""The processes of an instance, as the Procfile names them, run together by honcho: one stops, all stop."""

from __future__ import annotations

import logging
import os
import shlex
import signal
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

from honcho import manager as honcho_manager
from honcho.compat import ProcessManager
from honcho.environ import parse_procfile
from honcho.printer import Message, Printer

from lakehub.kernel.suggest import did_you_mean
from lakehub.setup.java import java_environment
from lakehub.setup.locations import PACKAGES as ROOT
from lakehub.setup.locations import cache_folder, home_folder, working_folder

logger = logging.getLogger(__name__)

WATCHED_PACKAGES = ("lakehub", "ingestion", "quality", "incidents", "frontend")
STOP_TIMEOUT_S = 20
"""How long the processes may finish what they have; a worker looks at its broker every 2 seconds."""


class _GracefulProcessManager(ProcessManager):  # type: ignore[misc]  # honcho has no types
    """Asks the process itself to end, not its whole group: a worker lets its pool finish. Killing still means the group."""

    def terminate(self, pid: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


class RawPrinter(Printer):  # type: ignore[misc]  # honcho has no types
    """Passes the processes' lines on as they are, where a program reads them; what honcho says is logged."""

    def __init__(self) -> None:
        super().__init__(sys.stdout, prefix=False)

    def write(self, message: Message) -> None:
        if message.name == honcho_manager.SYSTEM_PRINTER_NAME:
            logger.info(message.data.strip())
        else:
            super().write(message)


class UnknownProcess(LookupError):
    """The Procfile has no process of that name."""


def process_commands(only: Iterable[str] = (), *, reload: bool = False) -> dict[str, str]:
    """The command line of each process, by name. With `reload`, each starts again when code or a template changes."""
    commands: dict[str, str] = dict(parse_procfile(files("lakehub").joinpath("Procfile").read_text()).processes)
    wanted_names = list(only) or list(commands)
    for name in wanted_names:
        if name not in commands:
            raise UnknownProcess(f"There is no process `{name}`.{did_you_mean(name, commands)}")
    return {name: _with_reload(commands[name]) if reload else commands[name] for name in wanted_names}


def process_environment(bind: str, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What the processes see: this instance's folders, this interpreter's programs first, the chosen Java, unbuffered output."""
    return {
        **environ,
        **java_environment(environ),
        "LAKEHUB_HOME": str(home_folder(environ)),
        "LAKEHUB_CACHE": str(cache_folder(environ)),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environ.get('PATH', os.defpath)}",
        "LAKEHUB_BIND": bind,
        "PYTHONUNBUFFERED": "1",
    }


def supervise(lines: Mapping[str, str], env: Mapping[str, str], *, raw: bool = False) -> int:
    """Run all of them until one ends or a signal comes; the exit code. `raw`: their lines get no time and name in front."""
    honcho_manager.KILL_WAIT = STOP_TIMEOUT_S
    manager = honcho_manager.Manager(RawPrinter() if raw else None)
    manager._procmgr = _GracefulProcessManager()
    for name, line in lines.items():
        # `exec`: a signal reaches the process itself, not a shell in between.
        manager.add_process(name, f"exec {line}", env=dict(env), cwd=str(working_folder()))
    manager.loop()
    return int(manager.returncode or 0)


def _with_reload(line: str) -> str:
    folders = " ".join(shlex.quote(str(ROOT / name)) for name in WATCHED_PACKAGES)
    return f'watchfiles --filter python --sigint-timeout 10 "{line}" {folders}'
