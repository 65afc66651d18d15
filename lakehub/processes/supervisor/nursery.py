"""A program of this environment in a fork of a process that has imported it all: it starts at once, and shares its memory.

What forks is never collected and never run: it has read the code and waits for its children.
"""

from __future__ import annotations

import atexit
import gc
import os
import runpy
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import NoReturn

from lakehub.processes.supervisor.process_tree import end_with_parent, name_process

_PROGRAMS = (
    "gunicorn.app.wsgiapp",
    "lakehub.processes.web_server.buffered_worker",
    "celery.__main__",
    "celery.apps.worker",
)
"""What the lines of the Procfile import first."""


def preload() -> None:
    """Django with all addresses and tasks, for `fork`. Opens no connection and starts no thread."""
    from importlib import import_module

    import django
    from django.urls import resolve

    from lakehub.processes.celery_app import app

    django.setup()
    app.loader.import_default_modules()

    resolve("/api/v1/gate")
    for module in _PROGRAMS:
        import_module(module)
    gc.collect()
    # Objects that no collection touches stay on pages that all processes share.
    gc.freeze()


def words_of(command: str, environ: Mapping[str, str]) -> list[str]:
    """The words of a line as the shell reads it: with its variables, and their defaults."""
    show = f"for word in {command}; do printf '%s\\0' \"$word\"; done"
    shell = subprocess.run(["sh", "-c", show], env=dict(environ), capture_output=True, text=True, check=True)
    return shell.stdout.split("\0")[:-1]


def fork(name: str, words: Sequence[str], output: int) -> int:
    """Runs a console script of this environment (`gunicorn`, `celery`) or `python -m ...` in a child; its id. `output`: where it writes."""
    parent, child = os.getpid(), os.fork()
    if child:
        return child
    try:
        end_with_parent(parent)
        name_process(f"lakehub {name}")
        os.setsid()
        for stream in (1, 2):
            os.dup2(output, stream)
        _reset_signals()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    _run(words)


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _run(words: Sequence[str]) -> NoReturn:
    """As the interpreter runs a script to its end; also a child's that the program forks itself."""
    code: object = 1
    try:
        if words[:2] == ["python", "-m"]:
            sys.argv = list(words[2:])
            runpy.run_module(words[2], run_name="__main__", alter_sys=True)
            code = 0
        else:
            (script,) = entry_points(group="console_scripts", name=words[0])
            sys.argv = list(words)
            code = script.load()()
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)
