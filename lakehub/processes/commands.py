"""The processes of an instance as the Procfile names them: their command lines and what they see."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path

from honcho.environ import parse_procfile

from lakehub.kernel.suggest import did_you_mean
from lakehub.setup.java import java_environment
from lakehub.setup.locations import PACKAGES as ROOT
from lakehub.setup.locations import cache_folder, home_folder

WATCHED_PACKAGES = ("lakehub", "ingestion", "quality", "incidents", "frontend")


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


def _with_reload(line: str) -> str:
    folders = " ".join(shlex.quote(str(ROOT / name)) for name in WATCHED_PACKAGES)
    return f'watchfiles --filter python --sigint-timeout 10 "{line}" {folders}'
